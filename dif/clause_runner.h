// The fire thread's half of the engine: which clauses a probe has, and what one firing of one does.
// Predicate first; then each action in turn. A fault ends the clause, throws away the record that
// it was making, is reported, and fires dtrace:::ERROR; the probe's other clauses still run.
// Fire context: fire() yes; everything else no.
#pragma once

#include <atomic>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "dif/collection.h"
#include "dif/evaluate.h"
#include "dif/record_layout.h"

namespace ringside::dif {

class ClauseRunner {
 public:
  ClauseRunner(const Program& program, const EngineOptions& options, unsigned vcpus);

  EcbId enable(std::uint32_t clause, ProbeId probe, const ProbeDescription& name);
  const EcbInfo& ecb(EcbId id) const;
  const ProbeDescription& probe_name(ProbeId probe) const;
  void set_error_probe(ProbeId probe) { error_probe_ = probe; }
  void set_end_probe(ProbeId probe) { end_probe_ = probe; }
  std::optional<int> exit_status() const;

  void fire(ProbeId probe, const FireRecord& record, const GuestContext& guest, Collection& out);

 private:
  struct Ecb {
    EcbInfo info;
    const Clause* clause;
    std::uint32_t record_size;
    bool records;
  };
  struct EnabledProbe {
    ProbeDescription name;
    ProbeIdentity identity;
    std::vector<std::uint32_t> ecbs;  // indices into ecbs_
  };
  /// One clause in one firing.
  struct Run {
    const Ecb& ecb;
    const FireRecord& record;
    Collection& out;
    std::span<std::byte> data;  // of the record
    std::size_t next_field = 0;
    std::uint32_t action = 0;  // number for reports: 0 is the predicate
  };

  EnabledProbe& probe(ProbeId id, const ProbeDescription& name);
  std::uint32_t add_name(const std::string& text);
  const EnabledProbe* find(ProbeId id) const;

  void fire_clauses(const EnabledProbe& probe, const FireRecord& record, Collection& out);
  void run_clause(const Ecb& ecb, const FireRecord& record, Collection& out);
  Result<void, Fault> run_body(Run& run);
  Result<void, Fault> run_action(Run& run, const Action& action);
  Result<std::uint64_t, Fault> evaluate(Run& run, const Difo& difo);
  Result<void, Fault> record_arguments(Run& run, const Action& action);
  Result<void, Fault> record_value(Run& run, std::uint64_t value);
  Result<void, Fault> aggregate(Run& run, const Action& action);
  Result<std::size_t, Fault> append_key(std::size_t at, const ValueType& type, std::uint64_t value);
  void leave(std::uint64_t status);
  bool leaving() const { return exit_.load(std::memory_order_relaxed) != kRunning; }
  void report(const Run& run, const Fault& fault);

  static constexpr std::int64_t kRunning = std::numeric_limits<std::int64_t>::min();

  const Program& program_;
  const std::uint32_t string_size_;
  const unsigned vcpus_;
  Evaluator evaluator_;
  std::deque<Ecb> ecbs_;
  std::deque<EnabledProbe> probes_;
  std::vector<std::uint32_t> probe_index_;  // by ProbeId: index into probes_ plus 1, or 0
  std::vector<std::byte> names_;            // the Names arena
  std::vector<std::byte> key_;              // of the aggregation that is being updated
  std::uint64_t order_ = 0;                 // updates so far, for AggregateEntry::first_seen
  std::optional<ProbeId> error_probe_, end_probe_;
  const EnabledProbe* current_ = nullptr;
  bool in_error_ = false, ended_ = false;
  std::atomic<std::int64_t> exit_ = kRunning;
};

}  // namespace ringside::dif
