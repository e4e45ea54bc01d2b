// How much of a guest's time traps may take, and what is to be taken out where they take more.
// Pure: the caller reads the clock and the counters (budget_enforcer.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "providers/dispatch/dispatch_table.h"
#include "providers/dispatch/trap_tally.h"

namespace ringside::providers {

struct Budget {
  std::optional<std::uint64_t> max_rate{};  // traps a second, of all vCPUs together
  std::optional<unsigned> max_slow{};       // percent of the time of the vCPU that traps most

  bool limits() const { return max_rate || max_slow.value_or(100) < 100; }
};

/// Traps beyond the budget, over one window.
struct Overrun {
  double rate = 0;       // traps a second
  double slow = 0;       // the share of its time that the vCPU which traps most has waited, 0 to 1
  bool by_rate = false;  // of the two, which is over budget
  double kept = 0;       // the share of the traps that fits, 0 to 1
};

/// Looks at the counters now and then. Traps that are over budget from one look to the next, and
/// then once more, are too much: one burst is not.
class BudgetKeeper {
 public:
  explicit BudgetKeeper(const Budget& budget) : budget_(budget) {}

  enum class Verdict : std::uint8_t { Fine, Suspicious, TooMuch };
  /// `now` in ns; `cpus` as TrapTally counts, since tracing began.
  Verdict look(std::uint64_t now, std::vector<CpuTraps> cpus);
  /// After TooMuch.
  const Overrun& overrun() const { return overrun_; }
  /// Begins anew: something was taken out.
  void forget();

 private:
  std::optional<Overrun> judge(double seconds, std::span<const CpuTraps> cpus) const;

  const Budget budget_;
  std::optional<std::uint64_t> looked_;
  std::vector<CpuTraps> before_;
  Overrun overrun_;
  bool suspicious_ = false;
};

/// One line for the user: what was too much, the first of the probes that were taken out by name,
/// of `count` in all, and the way out.
std::string describe(const Budget& budget, const Overrun& overrun,
                     std::span<const std::string> names, std::size_t count);

/// The places to take out so that at most this share of all hits is left: the hottest first, and at
/// least `least` of them where there are so many.
std::vector<DispatchTable::Hits> hottest(std::vector<DispatchTable::Hits> places, double kept,
                                         std::size_t least);

}  // namespace ringside::providers
