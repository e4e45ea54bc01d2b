// The firing half of the engine: runs the clauses of one firing, on one vCPU. The predicate runs
// first, then each action in order. A fault ends the clause, drops the record that it was making,
// is reported, and fires dtrace:::ERROR. The probe's other clauses still run. A loop
// (Clause::repeat) is a jump back in the probe's list of clauses. Each loop is bounded by its
// limit. All jumps of one firing are bounded by kMostTrips, and by the cost of the clauses that
// they repeat. A firing that still takes too long ends with a fault, because a vCPU waits for it.
// clause_runner.cc: one firing, loops, faults. clause_actions.cc: the actions.
// Threads: fire() of one runner on one thread at a time; several runners may fire at once.
// Fire context: fire() yes; everything else no.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "dif/engine/enablings.h"
#include "dif/engine/recorded_processes.h"
#include "dif/engine/speculations.h"
#include "dif/engine/vcpu_output.h"
#include "dif/evaluate/evaluate.h"
#include "dif/evaluate/lazy_memory.h"

namespace ringside::dif {

/// Limits the time of a firing, because a vCPU waits for it. Each step of a clause asks. The clock
/// is read only when the steps so far may have cost enough, so a firing of a few steps never reads
/// it.
class FiringTime {
 public:
  /// ns, from the first look on; dtrace:::ERROR gets as much once more. The shim's timeout is as
  /// long, and the guest's watchdogs are far more patient.
  static constexpr std::uint64_t kMost = 3'000'000'000;
  /// Simple instructions between two looks. A step counts as some at least, since what it reads may
  /// be far away.
  static constexpr std::uint64_t kLookEvery = 1 << 14, kLeastOfStep = 1 << 9;

  void begin() { *this = {}; }
  /// Whether the firing is to end here. `work` is what the step may cost; `now()` tells ns.
  template <class Clock>
  bool is_over(std::uint64_t work, Clock now) {
    work_ += std::max(work, kLeastOfStep);
    return work_ >= kLookEvery && has_passed(now());
  }
  bool was_over() const { return was_over_; }

 private:
  bool has_passed(std::uint64_t time) {
    work_ = 0;
    if (last_ == 0) last_ = time + kMost;
    if (time <= last_) return false;
    if (!was_over_) last_ = time + kMost;
    was_over_ = true;
    return true;
  }

  std::uint64_t work_ = 0;  // since the last look
  std::uint64_t last_ = 0;  // ns; 0: there was no look yet
  bool was_over_ = false;
};

/// The state that the runners of all vCPUs have in common.
struct Firings {
  Firings(const Program& program, const EngineOptions& options, unsigned vcpus,
          GlobalsShare share = {})
      : shared(program, options, vcpus, std::move(share)),
        enablings(program, options, shared.variables),
        speculations(options, vcpus, enablings.shapes()) {}

  std::optional<int> exit_status() const {
    const std::int64_t status = exit.load(std::memory_order_acquire);
    return status == kRunning ? std::nullopt : std::optional(static_cast<int>(status));
  }

  static constexpr std::int64_t kRunning = std::numeric_limits<std::int64_t>::min();

  SharedState shared;
  Enablings enablings;
  Speculations speculations;
  std::atomic<std::int64_t> exit = kRunning;
  std::atomic<bool> ended = false;       // END has begun: nothing else fires any more
  std::atomic<std::uint64_t> order = 0;  // keys that were added, for AggregateEntry::first_seen
};

class ClauseRunner {
 public:
  /// `firings` must outlive this.
  ClauseRunner(Firings& firings, unsigned vcpu);

  /// For what was enabled since the last call.
  void make_room();

  /// `record` is of this runner's vCPU. Nobody may enable clauses beside it.
  void fire(ProbeId probe, const FireRecord& record, const GuestContext& guest, VcpuOutput& out);
  RecordedProcesses& recorded_processes() { return recorded_processes_; }

 private:
  friend class testing::StatePeer;
  /// The loop state of a clause in a probe's list, while the probe fires.
  struct Round {
    std::size_t scratch = 0;  // in use before the clause ran
    std::uint32_t trips = 0;  // of the loop that it ends, since the firing came to it
  };
  /// One clause in one firing.
  struct Run {
    const Ecb& ecb;
    const FireRecord& record;
    VcpuOutput& out;
    RecordBuffer* buffer = nullptr;  // where the record goes; null while there is none
    std::span<std::byte> data = {};  // of the record, or of one that is made and dropped
    std::uint64_t speculation = 0;   // whose buffer that is; 0: the vCPU's own
    std::size_t next_field = 0;
    std::uint32_t action = 0;  // number for reports: 0 is the predicate
  };
  enum class Outcome : std::uint8_t {
    Skipped,  // the predicate was false, or there was no room for the record
    Done,
    Faulted,
  };
  /// The next step after an action that did not fault.
  enum class Next : std::uint8_t { GoOn, EndClause };
  /// chill() of one vCPU in the interval that began at `start`.
  struct ChillTime {
    std::uint64_t start = 0, spent = 0;
  };

  void count_dynamic_drops(VcpuOutput& out);
  void fire_clauses(const EnabledProbe& probe, const FireRecord& record, VcpuOutput& out);
  std::vector<Round>& rounds() { return rounds_[in_error_ ? 1 : 0]; }
  bool jumps_back(const EnabledProbe& probe, std::size_t at, Outcome outcome);
  void end_loops_around(const EnabledProbe& probe, std::size_t at);
  Outcome run_clause(const Ecb& ecb, const FireRecord& record, VcpuOutput& out);
  Result<Outcome, Fault> run_body(Run& run);
  /// Before each step of a clause.
  bool is_out_of_time(const Run& run) {
    return time_.is_over(run.ecb.step_work, options_.host_time);
  }
  bool find_room(Run& run);
  Room room_of(const Run& run) const {
    const bool keeps = options_.buffer_policy == BufferPolicy::Switch;
    return keeps && run.ecb.orders ? Room::Order : run.out.room();
  }
  void leave(std::uint64_t status);
  bool leaving() const {
    return firings_.exit.load(std::memory_order_acquire) != Firings::kRunning;
  }
  void report(const Run& run, const Fault& fault);

  // clause_actions.cc
  Result<Next, Fault> run_action(Run& run, const Action& action);
  static Result<Next, Fault> next(Result<Next, Fault> done) { return done; }
  static Result<Next, Fault> next(const Result<void, Fault>& done) {
    return done ? Result<Next, Fault>(Next::GoOn) : tl::make_unexpected(done.error());
  }
  // The functions that actions.def names.
  Result<void, Fault> evaluate_effect(Run& run, const Action& action);
  Result<void, Fault> exit(Run& run, const Action& action);
  Result<Next, Fault> speculate(Run& run, const Action& action);
  Result<Next, Fault> commit(Run& run, const Action& action);
  Result<void, Fault> discard(Run& run, const Action& action);
  Result<void, Fault> perform(Run& run, const Action& action);
  Result<void, Fault> chill(Run& run, const Action& action);
  Result<void, Fault> snapshot(Run& run, const Action& action);
  Result<void, Fault> record_arguments(Run& run, const Action& action);
  Result<void, Fault> record_tracemem(Run& run, const Action& action);
  Result<void, Fault> record_packet(Run& run, const Action& action);
  Result<void, Fault> aggregate(Run& run, const Action& action);
  // Parts that they have in common.
  Result<std::uint64_t, Fault> speculation_to_end(Run& run, const Action& action);
  /// Evaluates one argument, which for reports is an action of its own. A stack has no code: the
  /// guest has it.
  Result<std::uint64_t, Fault> evaluate(Run& run, const Difo& difo) {
    ++run.action;
    if (difo.text.empty()) return 0;
    return evaluator_.evaluate(difo);
  }
  Result<std::size_t, Fault> put_key(Run& run, const ValueType& type, const Difo& difo,
                                     std::span<std::byte> out);
  Result<std::span<std::byte>, Fault> next_field(Run& run);
  Result<void, Fault> record_value(Run& run, std::uint64_t value);
  Result<std::size_t, Fault> put_value(const ValueType& type, std::uint64_t value,
                                       std::span<std::byte> out);
  Result<std::size_t, Fault> put_stack(ValueKind kind, std::span<std::byte> out);
  /// The process whose code addresses are recorded.
  Result<std::uint64_t, Fault> recorded_pid();

  Firings& firings_;
  const Enablings& enablings_;
  const Program& program_;
  const EngineOptions& options_;
  const unsigned vcpu_;
  Evaluator evaluator_;
  LazyMemory key_;                            // of the aggregation that is being updated
  std::vector<std::uint64_t> frames_;         // of the stack that is being recorded
  LazyMemory beside_;                         // a record while a commit goes before it, or no room
  std::array<std::vector<Round>, 2> rounds_;  // by place in the probe's list; and ERROR's
  ChillTime chilled_;
  std::uint64_t trips_ = 0;  // jumps back that this firing made
  std::uint64_t work_ = 0;   // what its clauses so far may have cost
  FiringTime time_;
  const EnabledProbe* current_ = nullptr;
  const GuestContext* guest_ = nullptr;
  std::uint64_t now_ = 0;  // of the firing
  RecordedProcesses recorded_processes_;
  bool in_error_ = false;
};

}  // namespace ringside::dif
