// The fire thread's half of the engine: which clauses a probe has, and what one firing of one does.
// Predicate first; then each action in turn. A fault ends the clause, throws away the record that
// it was making, is reported, and fires dtrace:::ERROR; the probe's other clauses still run.
// Loops (Clause::repeat) are jumps back in a probe's list of clauses; each is bounded by its limit,
// and all jumps of one firing by kMostTrips and by what the clauses cost that they lead back to.
// clause_runner.cc: set-up, one firing, faults. clause_actions.cc: what the actions do.
// Fire context: fire() yes; everything else no.
#pragma once

#include <atomic>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "dif/engine/recorded_processes.h"
#include "dif/engine/speculations.h"
#include "dif/evaluate/collection.h"
#include "dif/evaluate/evaluate.h"
#include "dif/program/record_layout.h"

namespace ringside::dif {

class ClauseRunner {
 public:
  /// `shapes` gets a row for each ECB; both must outlive this.
  ClauseRunner(const Program& program, const EngineOptions& options, unsigned vcpus,
               RecordShapes& shapes);

  EcbId enable(std::uint32_t clause, ProbeId probe, const ProbeDescription& name);
  const EcbInfo& ecb(EcbId id) const;
  const ProbeDescription& probe_name(ProbeId probe) const;
  void set_error_probe(ProbeId probe) { error_probe_ = probe; }
  void set_end_probe(ProbeId probe) { end_probe_ = probe; }
  std::optional<int> exit_status() const;
  /// Bytes of a buffer that END's records need.
  std::size_t end_reserve() const;
  /// Whether an empty principal buffer has room for each record, and with Fill for all of END's.
  bool records_fit() const;

  void fire(ProbeId probe, const FireRecord& record, const GuestContext& guest, Collection& out);
  /// Committed speculations' records that wait to be copied are copied now.
  void copy_committed(Collection& out) { speculations_.copy_committed(out); }
  RecordedProcesses& recorded_processes() { return recorded_processes_; }

 private:
  friend class testing::StatePeer;
  struct Ecb {
    EcbInfo info;
    const Clause* clause;
    RecordKind kind;
    std::uint64_t work = 0;       // what a run costs at most, in simple instructions
    std::size_t loop_start = 0;   // of its loop: index into EnabledProbe::ecbs
    std::size_t scratch = 0;      // in use before it ran, in a probe that loops
    std::uint32_t trips = 0;      // of its loop, since the firing came to it
    bool commits_beside = false;  // has both commit() and a record of its own
    bool exits = false;           // has exit()
  };
  struct EnabledProbe {
    ProbeDescription name;
    ProbeIdentity identity;
    std::vector<std::uint32_t> ecbs;  // indices into ecbs_
    bool loops = false;
  };
  /// One clause in one firing.
  struct Run {
    const Ecb& ecb;
    const FireRecord& record;
    Collection& out;
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
  /// What follows an action that did not fault.
  enum class Next : std::uint8_t { GoOn, EndClause };
  /// chill() of one vCPU in the interval that began at `start`.
  struct Chilled {
    std::uint64_t start = 0, spent = 0;
  };

  template <class Bytes>
  std::size_t sum_over_end(Bytes bytes) const;
  EnabledProbe& probe(ProbeId id, const ProbeDescription& name);
  std::uint32_t add_name(const std::string& text);
  const EnabledProbe* find(ProbeId id) const;

  void clean_when_due(std::uint64_t now, Collection& out);
  void count_drops(std::uint32_t vcpu, Collection& out);
  void fire_clauses(const EnabledProbe& probe, const FireRecord& record, Collection& out);
  bool jumps_back(const EnabledProbe& probe, std::size_t at, Outcome outcome);
  void end_loops_around(const EnabledProbe& probe, std::size_t at);
  Outcome run_clause(const Ecb& ecb, const FireRecord& record, Collection& out);
  Result<Outcome, Fault> run_body(Run& run);
  bool find_room(Run& run);
  void leave(std::uint64_t status);
  bool leaving() const { return exit_.load(std::memory_order_relaxed) != kRunning; }
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
  Result<void, Fault> record_arguments(Run& run, const Action& action);
  Result<void, Fault> record_tracemem(Run& run, const Action& action);
  Result<void, Fault> aggregate(Run& run, const Action& action);
  // What they have in common.
  Result<std::uint64_t, Fault> speculation_to_end(Run& run, const Action& action);
  Result<std::uint64_t, Fault> evaluate(Run& run, const Difo& difo);
  Result<std::span<std::byte>, Fault> next_field(Run& run);
  Result<void, Fault> record_value(Run& run, std::uint64_t value);
  Result<std::size_t, Fault> put_value(const ValueType& type, std::uint64_t value,
                                       std::span<std::byte> out);
  Result<std::size_t, Fault> put_stack(ValueKind kind, std::span<std::byte> out);
  /// The process whose code addresses are recorded.
  Result<std::uint64_t, Fault> recorded_pid();

  static constexpr std::int64_t kRunning = std::numeric_limits<std::int64_t>::min();

  const Program& program_;
  const EngineOptions options_;
  const unsigned vcpus_;
  RecordShapes& shapes_;
  Evaluator evaluator_;
  Speculations speculations_;
  std::deque<Ecb> ecbs_;
  std::deque<EnabledProbe> probes_;
  std::vector<std::uint32_t> probe_index_;  // by ProbeId: index into probes_ plus 1, or 0
  std::vector<std::byte> names_;            // the Names arena
  std::vector<std::byte> key_;              // of the aggregation that is being updated
  std::vector<std::uint64_t> frames_;       // of the stack that is being recorded
  std::vector<std::byte> beside_;           // a record while a commit goes before it, or no room
  std::vector<Chilled> chilled_;            // by vCPU
  std::uint64_t order_ = 0;                 // updates so far, for AggregateEntry::first_seen
  std::uint64_t trips_ = 0;                 // jumps back that this firing made
  std::uint64_t work_ = 0;                  // what its clauses so far may have cost
  std::optional<std::uint64_t> cleaned_;    // when; empty before the first firing
  std::optional<ProbeId> error_probe_, end_probe_;
  const EnabledProbe* current_ = nullptr;
  const GuestContext* guest_ = nullptr;
  std::uint64_t now_ = 0;  // of the firing
  RecordedProcesses recorded_processes_;
  bool in_error_ = false, ended_ = false;
  std::atomic<std::int64_t> exit_ = kRunning;
};

}  // namespace ringside::dif
