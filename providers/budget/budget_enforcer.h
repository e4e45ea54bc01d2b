// Keeps the traps of a trace to a budget (budget.h). Its thread reads the counters once a second,
// and takes out the hottest probes if the traps are over budget. It has a thread of its own because
// the session's thread may wait for a stopped terminal or a pipe that nobody reads. Probes that it
// has taken out stay out.
// Used by the tracer. Threads: take_taken_out() on any; the others on the session's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "dif/program/probe_description.h"
#include "providers/budget/budget.h"
#include "vmm/base/result.h"

namespace ringside::providers {

/// It works on these, on its thread.
struct BudgetEnforcerParts {
  std::function<std::vector<CpuTraps>()> loads;
  /// The counts of the current table (DispatchTable::counts(), hits_since()).
  std::function<DispatchTable::Counts()> counts;
  std::function<std::vector<DispatchTable::Hits>(const DispatchTable::Counts&)> hits_since;
  /// When it returns these probes fire no more.
  std::function<Result<void>(std::span<const dif::ProbeId>)> take_out;
};

class BudgetEnforcer {
 public:
  /// `parts` work until this is gone. Two looks that are over budget, one after the other, are too
  /// much.
  BudgetEnforcer(const Budget& budget, BudgetEnforcerParts parts,
                 std::chrono::milliseconds look_every = std::chrono::seconds(1));
  ~BudgetEnforcer() { end(); }
  BudgetEnforcer(const BudgetEnforcer&) = delete;
  BudgetEnforcer& operator=(const BudgetEnforcer&) = delete;

  /// When it returns nothing is being taken out any more. Idempotent.
  void end();

  /// Probes that were taken out together, the hottest first.
  struct TakenOut {
    Overrun overrun;
    std::vector<dif::ProbeId> probes;
    Result<void> done;
  };
  /// The probes that were taken out since the last call.
  std::vector<TakenOut> take_taken_out();
  /// How many probes so far. On any thread.
  std::uint64_t count() const;

 private:
  void body();
  void look();
  void take_out();

  const std::chrono::milliseconds look_every_;
  BudgetKeeper keeper_;
  const BudgetEnforcerParts parts_;
  DispatchTable::Counts before_;  // when it began to be too much
  std::size_t places_out_ = 0;
  mutable std::mutex lock_;  // of all that follows
  std::condition_variable ends_;
  bool end_ = false;
  std::vector<TakenOut> taken_out_;
  std::uint64_t count_ = 0;
  std::thread thread_;
};

}  // namespace ringside::providers
