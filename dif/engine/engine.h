// The engine: evaluates the clauses of a verified program when probes fire, and keeps what they
// produce (records, aggregations, variables, drops) until the consumer takes it.
//
// Threads: one thread fires at a time (a lock of whoever fires sees to that), exactly one thread
// consumes. They meet only in take(): the consumer asks, the fire thread hands over
// between two firings (serve_requests()), so the engine takes no lock. A fire thread that ends, the
// last of all firings, calls stop_serving() as its last act; from then on take() helps itself.
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
#include "dif/engine/fire_record.h"
#include "dif/program/options.h"
#include "dif/program/program.h"

namespace ringside::dif {

/// A program whose every DIFO passed the verifier. Only verify_program() makes one.
class VerifiedProgram;

struct EcbId {
  std::uint32_t value = 0;  // dtrace's EPID; 0 is none
  auto operator<=>(const EcbId&) const = default;
};

/// Everything one clause recorded in one firing. `data` holds, one after the other, what each
/// recording action produced, laid out as RecordLayout says.
struct Record {
  EcbId ecb;
  std::uint32_t vcpu = 0;
  std::uint64_t timestamp = 0;  // ns, the firing's
  std::span<const std::byte> data;
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

/// An enabled clause on one probe: what the consumer needs to print its records.
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
  SpeculationBusy,
  SpeculationUnavailable,
  StackString,
  DoubleError,
};
inline constexpr std::size_t kDropKinds = 10;

/// A fault of one clause, as dtrace reports it on stderr:
/// "error on enabled probe ID E (ID N: name): invalid address (0x..) in action #K at DIF offset O".
inline constexpr std::uint32_t kNoPc = UINT32_MAX;  // Fault::pc of a fault outside any DIF
struct FaultReport {
  EcbId ecb;
  std::uint32_t vcpu = 0;
  std::uint64_t timestamp = 0;
  // 0: the predicate. Actions count from 1, and as in dtrace each argument of printf() and each
  // key of an aggregation is an action of its own.
  std::uint32_t action = 0;
  Fault fault;
};

/// What the fire thread hands over in one exchange. Records are in firing order per vCPU; the
/// bytes they point at belong to the Harvest.
struct Harvest {
  std::vector<std::vector<std::byte>> storage;  // one buffer per vCPU
  std::vector<Record> records;                  // merged by timestamp across vCPUs
  std::vector<FaultReport> faults;
  std::uint64_t fault_reports_lost = 0;    // beyond what one harvest can hold
  std::vector<AggregateEntry> aggregates;  // changes since the last harvest, to be merged
  std::vector<std::array<std::uint64_t, kDropKinds>> drops;  // per vCPU, since the last harvest
  bool finished = false;  // exit() fired; nothing follows but END's records
  /// Fill policy: the vCPUs whose buffer is full; one is enough to end tracing everywhere.
  std::vector<std::uint32_t> filled;
};

/// What enabling a clause on one probe takes: a place for the pair, and for each value that it
/// records. All clauses on all their probes together may take kMostEnabled, some 300 MB.
std::uint64_t enabled_size(const Clause& clause);
inline constexpr std::uint64_t kMostEnabled = 8 << 20;

class Engine {
 public:
  /// Buffers for which the host has no room are made smaller, whatever bufresize says: call
  /// plan_buffers() first where it says manual. check_storage() must have been content with the
  /// program and the size of strings.
  Engine(VerifiedProgram program, const EngineOptions& options, unsigned vcpus);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Program& program() const;
  /// The buffers that had to be made smaller.
  const std::vector<LoweredBuffer>& lowered() const;

  /// Enables clause `clause` on `probe`; several clauses fire in the order of these calls.
  /// Before fire() is first called.
  EcbId enable(std::uint32_t clause, ProbeId probe, const ProbeDescription& name);
  const EcbInfo& ecb(EcbId id) const;
  const ProbeDescription& probe_name(ProbeId probe) const;
  /// Whether every record that its ECBs make can lie in a principal buffer at all, and with Fill
  /// all of END's at once. One that cannot is dropped whenever it would be made.
  bool records_fit() const;
  /// The probe that faults are reported through (dtrace:::ERROR), when it is enabled.
  void set_error_probe(ProbeId probe);

  /// Evaluates every clause enabled on `probe`. One thread at a time.
  void fire(ProbeId probe, const FireRecord& record, const GuestContext& guest);
  /// What exit(n) was called with, once it was; from then on fire() evaluates nothing but `END`
  /// (set_end_probe). Any thread.
  std::optional<int> exit_status() const;
  void set_end_probe(ProbeId probe);

  /// A process of which code addresses were recorded lately (recorded_processes.h); empty when
  /// there is no other. Consumer only.
  std::optional<std::uint64_t> next_recorded_process();

  /// Hands data over if the consumer asked. Fire thread, between firings; cheap when nobody asked.
  void serve_requests();
  /// The fire thread is about to end.
  void stop_serving();
  /// Asks for everything produced so far and waits until the fire thread served it, or stopped
  /// serving. Consumer only. The records of policies ring and fill are not among it: they stay
  /// until take_quiescent().
  Harvest take();
  /// The same when no fire thread runs (before start, after stop).
  Harvest take_quiescent();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringside::dif
