#include "providers/budget/budget.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace ringside::providers {
namespace {

/// ns that a trap takes beside its wait: the exception, the shim's own instructions, the way back.
constexpr double kTrapItself = 500;
/// Where nothing is left of a vCPU, what it would do with a little more is not known.
constexpr double kMostSlow = 0.999;
/// As much as this of the budget is filled again, so that it is not exceeded at once once more.
constexpr double kRefill = 0.5;

/// With so much less time in traps the guest does more, and so traps more often: the ratio of the
/// time in traps to all other time goes down by the share of the traps that is kept.
double kept_for_slow(double slow, double allowed) {
  const double most = std::min(allowed, kMostSlow) * kRefill;
  return most / (1 - most) / (slow / (1 - slow));
}

double kept_for_rate(double rate, double slow, double allowed) {
  const double most = allowed * kRefill;
  return most * (1 - slow) / std::max(rate - most * slow, 1.0);
}

}  // namespace

std::optional<Overrun> BudgetKeeper::judge(double seconds, std::span<const CpuTraps> cpus) const {
  Overrun seen;
  for (std::size_t n = 0; n < cpus.size() && n < before_.size(); ++n) {
    const auto traps = static_cast<double>(cpus[n].traps - before_[n].traps);
    const auto waited = static_cast<double>(cpus[n].waited - before_[n].waited);
    seen.rate += traps / seconds;
    seen.slow = std::max(seen.slow, (waited + traps * kTrapItself) / (seconds * 1e9));
  }
  const double slow = std::min(seen.slow, kMostSlow);
  seen.slow = std::min(seen.slow, 1.0);
  seen.kept = 1;
  const double allowed = budget_.max_slow.value_or(100) / 100.0;
  const bool slowed = allowed < 1 && slow > allowed;
  if (slowed) seen.kept = kept_for_slow(slow, allowed);
  if (budget_.max_rate && seen.rate > static_cast<double>(*budget_.max_rate)) {
    seen.by_rate = !slowed;
    seen.kept =
        std::min(seen.kept, kept_for_rate(seen.rate, slow, static_cast<double>(*budget_.max_rate)));
  }
  return slowed || seen.by_rate ? std::optional(seen) : std::nullopt;
}

BudgetKeeper::Verdict BudgetKeeper::look(std::uint64_t now, std::vector<CpuTraps> cpus) {
  const bool first = !looked_ || now <= *looked_;
  const double seconds = first ? 0 : static_cast<double>(now - *looked_) / 1e9;
  const auto overrun = first ? std::nullopt : judge(seconds, cpus);
  looked_ = now;
  before_ = std::move(cpus);
  const bool again = std::exchange(suspicious_, overrun.has_value());
  if (!overrun) return Verdict::Fine;
  overrun_ = *overrun;
  return again ? Verdict::TooMuch : Verdict::Suspicious;
}

void BudgetKeeper::forget() {
  looked_.reset();
  suspicious_ = false;
}

std::string describe(const Budget& budget, const Overrun& overrun,
                     std::span<const std::string> names, std::size_t count) {
  std::string who = fmt::format("{}", fmt::join(names, ", "));
  if (count > names.size()) who += fmt::format(" and {} more", count - names.size());
  const std::string limit = overrun.by_rate
                                ? fmt::format("maxrate={}", budget.max_rate.value_or(0))
                                : fmt::format("maxslow={}", budget.max_slow.value_or(100));
  return fmt::format(
      "over budget ({}): {:.0f} traps a second, {:.0f} % of a vCPU's time; from now on {} {} off "
      "and not counted; -x {} sets no limit",
      limit, overrun.rate, overrun.slow * 100, who, count == 1 ? "is" : "are",
      overrun.by_rate ? "maxrate=none" : "maxslow=100");
}

std::vector<DispatchTable::Hits> hottest(std::vector<DispatchTable::Hits> places, double kept,
                                         std::size_t least) {
  std::ranges::stable_sort(places, std::ranges::greater(), &DispatchTable::Hits::count);
  double left = 0;
  for (const auto& place : places) left += static_cast<double>(place.count);
  const double wanted = left * kept;
  std::size_t taken = 0;
  while (taken < places.size() && (left > wanted || taken < least)) {
    left -= static_cast<double>(places[taken++].count);
  }
  places.resize(taken);
  return places;
}

}  // namespace ringside::providers
