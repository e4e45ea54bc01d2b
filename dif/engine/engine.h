// The engine: evaluates the clauses of a verified program when probes fire, and keeps what they
// produce (records, aggregations, variables, drops) until the consumer takes it.
//
// Threads: several vCPUs fire at once. One vCPU fires on one thread at a time, which holds that
// vCPU's firing lock. This lock protects the vCPU's own state: evaluator, line caches,
// scratch, this-> variables, record and aggregation buffers, counters. State that all vCPUs share
// has locks of its own (dif/evaluate/shared_locks.h).
// Exactly one thread consumes, and it stops no vCPU. Each vCPU has two sets of buffers. take()
// switches all vCPUs to the other set by one store, waits until each firing that began before the
// store is over, and then empties the old set. So all records of one take() end at the same moment:
// if a firing is not in it, nothing that happened after that firing is in it either.
// Fire context: fire() yes; everything else no.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dif/engine/buffer_plan.h"
#include "dif/evaluate/guest_context.h"
#include "dif/evaluate/variables.h"
#include "dif/program/options.h"
#include "dif/program/program.h"
#include "dif/verify/record_needs.h"
#include "vmm/base/brief_lock.h"

namespace ringside::dif {

/// A program whose every DIFO passed the verifier. Only verify_program() makes one.
class VerifiedProgram;

/// Everything one clause recorded in one firing. `data` holds, one after the other, what each
/// recording action produced, laid out as RecordLayout says.
struct Record {
  EcbId ecb;
  std::uint32_t vcpu = 0;
  std::uint64_t timestamp = 0;  // ns, the firing's
  std::span<const std::byte> data;
  std::uint64_t committed = 0;  // ns: when commit() let it out of a speculation, else 0

  /// Its place in the order of records: records that were committed together stay together.
  std::uint64_t order() const { return committed != 0 ? committed : timestamp; }
};

/// Where one argument of an action lies in Record::data. Code addresses and stacks lie there as
/// program.h says of their ValueKind. TracememDynamic has two: the most bytes that it may show,
/// and how many of them it does show (8 bytes, never more than there are).
struct RecordField {
  std::uint32_t action = 0;    // index into Clause::actions
  std::uint32_t argument = 0;  // index into Action::arguments
  std::uint32_t offset = 0;    // aligned in the record, whose header of 12 bytes is not in `data`
  std::uint32_t size = 0;      // bytes; strings take strsize
  ValueType type;
};

/// An enabled clause on one probe, with all that the consumer needs to print its records.
struct EcbInfo {
  EcbId id;
  std::uint32_t clause = 0;  // index into Program::clauses
  ProbeId probe;
  std::vector<RecordField> fields;
};

/// One key of one aggregation with its value; the layout of `words` depends on the function:
/// count sum min max: {value}; avg: {count, sum}; stddev: {count, sum, sum of squares low, high};
/// quantize: 127 buckets; lquantize, llquantize: underflow, levels..., overflow.
struct AggregateEntry {
  std::uint32_t aggregation = 0;
  std::uint64_t first_seen = 0;  // order of first appearance, for ties
  std::vector<std::byte> key;    // fields in order, each at its natural size; strings are
                                 // NUL-terminated at their length, preceded by nothing
  std::vector<std::int64_t> words;
};

enum class DropKind : std::uint8_t {
  Principal,
  Aggregation,
  Dynamic,
  DynamicRinse,
  DynamicDirty,
  Speculation,
  SpeculationUnavailable,
  StackString,
  DoubleError,
};
inline constexpr std::size_t kDropKinds = static_cast<std::size_t>(DropKind::DoubleError) + 1;

inline constexpr std::uint32_t kNoPc = UINT32_MAX;  // Fault::pc of a fault outside any DIF

/// A fault of one clause, as dtrace reports it on stderr:
/// "error on enabled probe ID E (ID N: name): invalid address (0x..) in action #K at DIF offset O".
struct FaultReport {
  EcbId ecb;
  std::uint32_t vcpu = 0;
  std::uint64_t timestamp = 0;
  // 0: the predicate. Actions count from 1, and as in dtrace each argument of printf() and each
  // key of an aggregation is an action of its own.
  std::uint32_t action = 0;
  Fault fault;
};

/// Drops of one clause, as part of all of its vCPU.
struct ClauseDrops {
  std::uint32_t vcpu = 0;
  DropKind kind = DropKind::Principal;
  std::uint32_t clause = 0;  // index into Program::clauses
  std::uint64_t count = 0;
};

/// All that the consumer takes at once. Records are in firing order per vCPU; the bytes they point
/// at belong to the TraceData.
struct TraceData {
  std::vector<std::vector<std::byte>> storage;  // one buffer per vCPU
  std::vector<Record> records;                  // merged by Record::order() across vCPUs
  std::vector<FaultReport> faults;
  std::uint64_t fault_reports_lost = 0;  // beyond what one take can hold
  /// Changes since the last take, to be merged; a key that several vCPUs had comes once for
  /// each.
  std::vector<AggregateEntry> aggregates;
  std::vector<std::array<std::uint64_t, kDropKinds>> drops;  // per vCPU, since the last take
  std::vector<ClauseDrops> clause_drops;                     // of those, what a clause lost
  bool finished = false;  // exit() fired; nothing follows but END's records
  /// Fill policy: the vCPUs whose buffer is full; one is enough to end tracing everywhere.
  std::vector<std::uint32_t> filled;
};

/// The places that enabling a clause on one probe takes: one for the pair, and one for each value
/// that it records. All clauses on all their probes together may take kMostEnabled, some 300 MB.
std::uint64_t enabled_size(const Clause& clause);
inline constexpr std::uint64_t kMostEnabled = 8 << 20;

class Engine {
 public:
  /// Buffers for which the host has no room are made smaller, whatever bufresize says: call
  /// plan_buffers() first where it says manual. check_storage() must have been content with the
  /// program and the size of strings.
  /// `share` is for engines of several machines that run one program: their globals are the same.
  Engine(VerifiedProgram program, const EngineOptions& options, unsigned vcpus,
         GlobalsShare share = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Program& program() const;
  /// The buffers that had to be made smaller.
  const std::vector<LoweredBuffer>& lowered() const;
  /// Why the program is interpreted although machine code was wanted; empty: it is not.
  const std::string& jit_refusal() const;

  /// Enables clause `clause` on `probe`; several clauses fire in the order of these calls.
  /// Before fire() is first called.
  EcbId enable(std::uint32_t clause, ProbeId probe, const ProbeDescription& name);
  /// This clause may be enabled later, beside firings.
  void expect(std::uint32_t clause);
  struct Enabling {
    std::uint32_t clause = 0;
    ProbeId probe;
    ProbeDescription name;
  };
  /// As enable() for each of them, for clauses that were expected. Call it on the consumer's
  /// thread; no lock is taken.
  void enable_beside_firings(std::span<const Enabling> enablings);
  const EcbInfo& ecb(EcbId id) const;
  const ProbeDescription& probe_name(ProbeId probe) const;
  /// With Fill: whether every record that its ECBs make can lie in a principal buffer at all, and
  /// all of END's at once. With other policies one that cannot is a drop whenever it would be made.
  bool records_fit() const;
  /// The needs of the clauses enabled on the probe, and of those of ERROR, which fire inside of
  /// it: of the record of a trap. Before fire() is first called.
  RecordNeeds record_needs(ProbeId probe, EntryArguments entrys = EntryArguments::Gone);
  /// The probe that faults are reported through (dtrace:::ERROR). Before fire() is first called.
  void set_error_probe(ProbeId probe);
  /// Whether faults are reported through it; they are, unless it was muted. Beside firings: the
  /// firings that begin after this see it.
  void unmute_error_probe();
  void mute_error_probe();

  /// Held by the thread that fires on this vCPU, beside other threads, around fire() and what leads
  /// to it. The outermost lock of all that firings take.
  BriefLock& firing_lock(std::uint32_t vcpu);
  /// Returns when every firing that holds its lock now is over.
  void wait_for_firings();
  /// The vCPU number under which BEGIN, END and tick fire, which happen on no vCPU: 0, or the one
  /// of the option `cpu`.
  std::uint32_t host_vcpu() const;

  /// Evaluates every clause enabled on `probe`.
  void fire(ProbeId probe, const FireRecord& record, const GuestContext& guest);
  /// The argument of exit(n), once it was called; from then on fire() evaluates nothing but `END`
  /// (set_end_probe). Any thread.
  std::optional<int> exit_status() const;
  void set_end_probe(ProbeId probe);

  /// A process of which code addresses were recorded lately (recorded_processes.h); empty when
  /// there is no other. Consumer only.
  std::optional<std::uint64_t> next_recorded_process();

  /// Everything produced so far, beside firings. Consumer only, without a firing lock. The records
  /// of policies ring and fill are not among it: they stay until take_quiescent().
  TraceData take();
  /// The same with those records. Only while nobody fires.
  TraceData take_quiescent();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringside::dif
