#include "providers/budget/budget_enforcer.h"

#include <pthread.h>

#include <chrono>
#include <unordered_set>
#include <utility>

#include "providers/clock/host_clock.h"
#include "vmm/base/process.h"

namespace ringside::providers {
namespace {

std::vector<dif::ProbeId> probes_of(const std::vector<DispatchTable::Hits>& places) {
  std::vector<dif::ProbeId> probes;
  std::unordered_set<std::uint32_t> known;
  for (const auto& place : places) {
    for (const dif::ProbeId probe : place.probes) {
      if (known.insert(probe.value).second) probes.push_back(probe);
    }
  }
  return probes;
}

}  // namespace

BudgetEnforcer::BudgetEnforcer(const Budget& budget, BudgetEnforcerParts parts,
                               std::chrono::milliseconds look_every)
    : look_every_(look_every), keeper_(budget), parts_(std::move(parts)) {
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { body(); });
  pthread_setname_np(thread_.native_handle(), "ringside-budget");
}

void BudgetEnforcer::end() {
  {
    const std::lock_guard lock(lock_);
    end_ = true;
  }
  ends_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BudgetEnforcer::body() {
  std::unique_lock lock(lock_);
  while (!ends_.wait_for(lock, look_every_, [this] { return end_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void BudgetEnforcer::look() {
  switch (keeper_.look(monotonic_ns(), parts_.loads())) {
    case BudgetKeeper::Verdict::Fine: return;
    case BudgetKeeper::Verdict::Suspicious: before_ = parts_.counts(); return;
    case BudgetKeeper::Verdict::TooMuch: return take_out();
  }
}

/// At least as many places as ever before, so that few rounds do, whatever the guest does next.
void BudgetEnforcer::take_out() {
  const auto places = hottest(parts_.hits_since(before_), keeper_.overrun().kept, places_out_);
  keeper_.forget();
  TakenOut taken{keeper_.overrun(), probes_of(places), {}};
  if (taken.probes.empty()) return;
  taken.done = parts_.take_out(taken.probes);
  places_out_ += places.size();
  const std::lock_guard lock(lock_);
  count_ += taken.probes.size();
  taken_out_.push_back(std::move(taken));
}

std::vector<BudgetEnforcer::TakenOut> BudgetEnforcer::take_taken_out() {
  const std::lock_guard lock(lock_);
  return std::exchange(taken_out_, {});
}

std::uint64_t BudgetEnforcer::count() const {
  const std::lock_guard lock(lock_);
  return count_;
}

}  // namespace ringside::providers
