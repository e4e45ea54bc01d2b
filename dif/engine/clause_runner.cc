// In this file, top to bottom: set-up, one firing, loops, one clause, faults.
#include "dif/engine/clause_runner.h"

#include <algorithm>

#include "dif/engine/fire_context.h"
#include "dif/program/insn.h"
#include "vmm/base/check.h"

namespace ringside::dif {

namespace {

std::size_t longest_key(const Program& program, std::uint32_t string_size) {
  std::size_t longest = 0;
  for (const Aggregation& aggregation : program.aggregations) {
    std::size_t size = 0;
    for (const ValueType& key : aggregation.keys) size += stored_size(key, string_size) + 1;
    longest = std::max(longest, size);
  }
  return longest;
}

std::size_t deepest_stack(const Program& program) {
  std::uint32_t most = 0;
  for (const Clause& clause : program.clauses) {
    for (const Action& action : clause.actions) {
      for (const Difo& difo : action.arguments) {
        const ValueKind kind = difo.result.kind;
        const bool stack = kind == ValueKind::KernelStack || kind == ValueKind::UserStack;
        if (stack) most = std::max(most, difo.result.size);
      }
    }
  }
  return most / sizeof(std::uint64_t);
}

constexpr std::uint64_t kMostWork = 1 << 29;  // of a firing that loops: a few seconds

tl::unexpected<Fault> out_of_time() {
  return tl::make_unexpected(Fault{FaultKind::IllegalOperation, kNoPc, 0});
}

}  // namespace

ClauseRunner::ClauseRunner(Firings& firings, unsigned vcpu)
    : firings_(firings),
      enablings_(firings.enablings),
      program_(enablings_.program()),
      options_(enablings_.options()),
      vcpu_(vcpu),
      evaluator_(program_, options_, firings.shared, firings.speculations, vcpu),
      key_(longest_key(program_, options_.string_size)),
      frames_(deepest_stack(program_)) {}

void ClauseRunner::make_room() {
  evaluator_.memory().set_arena(Arena::Names, enablings_.names());
  for (std::vector<Round>& rounds : rounds_) {
    if (rounds.size() < enablings_.most_clauses()) rounds.resize(enablings_.most_clauses());
  }
  if (beside_.bytes().size() < enablings_.largest_beside()) {
    beside_ = LazyMemory(enablings_.largest_beside());
  }
}

void ClauseRunner::fire(ProbeId id, const FireRecord& record, const GuestContext& guest,
                        VcpuOutput& out) {
  const EnabledProbe* const fired = enablings_.find(id);
  const bool is_end = enablings_.is_end(id);
  if (fired == nullptr || firings_.ended.load(std::memory_order_relaxed)) return;
  if (leaving() && !is_end) return;
  SharedAccess& access = evaluator_.access();
  access.begin(fired->program_first);
  if (is_end) {
    firings_.ended.store(true, std::memory_order_relaxed);
    out.set_room(Room::Final);
  }
  current_ = fired;
  guest_ = &guest;
  now_ = record.timestamp;
  trips_ = work_ = 0;
  time_.begin();
  evaluator_.begin_firing(fired->identity, record, guest);
  fire_clauses(*fired, record, out);
  if (evaluator_.variables().has_dropped()) count_dynamic_drops(out);
  if (access.owns_program()) {  // else it asked for no speculation
    out.drop(DropKind::SpeculationUnavailable, firings_.speculations.take_unavailable());
  }
  access.end();
  out.set_room(Room::Ordinary);
}

void ClauseRunner::count_dynamic_drops(VcpuOutput& out) {
  const Variables::DynamicDrops dynamic = evaluator_.variables().take_dynamic_drops();
  out.drop(DropKind::Dynamic, dynamic.plain);
  out.drop(DropKind::DynamicDirty, dynamic.dirty);
  out.drop(DropKind::DynamicRinse, dynamic.rinsing);
}

void ClauseRunner::fire_clauses(const EnabledProbe& probe, const FireRecord& record,
                                VcpuOutput& out) {
  std::vector<Round>& rounds = this->rounds();
  if (probe.loops) std::ranges::fill(rounds, Round{});
  for (std::size_t at = 0; at < probe.ecbs.size(); ++at) {
    // exit() in one clause: the next ones do not run.
    if (leaving() && !firings_.ended.load(std::memory_order_relaxed)) return;
    const Ecb& ecb = *probe.ecbs[at];
    if (!ecb.continues) evaluator_.memory().begin_clause();
    if (probe.loops) rounds[at].scratch = evaluator_.memory().scratch_used();
    const Outcome outcome = run_clause(ecb, record, out);
    if (time_.was_over() && !in_error_) return;
    work_ += ecb.work;
    if (!probe.loops || !jumps_back(probe, at, outcome)) continue;
    // Scratch memory of a round ends with it, so that many rounds do not run out.
    evaluator_.memory().free_scratch(rounds[ecb.loop_start].scratch);
    at = ecb.loop_start - 1;  // ++ undoes the -1
  }
}

/// Whether the loop that the clause at `at` ends, if any, goes round again, by the outcome of that
/// clause. A fault ends all loops that it is in.
bool ClauseRunner::jumps_back(const EnabledProbe& probe, std::size_t at, Outcome outcome) {
  if (outcome == Outcome::Faulted) end_loops_around(probe, at);
  const Ecb& ecb = *probe.ecbs[at];
  const auto& repeat = ecb.clause->repeat;
  if (!repeat || outcome != Outcome::Done) return false;
  std::vector<Round>& rounds = this->rounds();
  if (rounds[at].trips >= repeat->limit || trips_ >= kMostTrips || work_ >= kMostWork) return false;
  ++rounds[at].trips;
  ++trips_;
  // The firing comes to the inner loops again.
  for (std::size_t i = ecb.loop_start; i < at; ++i) rounds[i].trips = 0;
  return true;
}

void ClauseRunner::end_loops_around(const EnabledProbe& probe, std::size_t at) {
  for (std::size_t i = at; i < probe.ecbs.size(); ++i) {
    const Ecb& ecb = *probe.ecbs[i];
    if (ecb.clause->repeat && ecb.loop_start <= at) rounds()[i].trips = ecb.clause->repeat->limit;
  }
}

ClauseRunner::Outcome ClauseRunner::run_clause(const Ecb& ecb, const FireRecord& record,
                                               VcpuOutput& out) {
  evaluator_.begin_clause(ecb.info.id);
  Run run{ecb, record, out};
  const auto done = run_body(run);
  if (done) return *done;
  report(run, done.error());
  return Outcome::Faulted;
}

Result<ClauseRunner::Outcome, Fault> ClauseRunner::run_body(Run& run) {
  const Clause& clause = *run.ecb.clause;
  if (is_out_of_time(run)) return out_of_time();
  if (clause.predicate) {
    const std::uint64_t value = TRY(evaluator_.evaluate(*clause.predicate));
    if (value == 0) return Outcome::Skipped;
  }
  if (run.ecb.kind == RecordKind::Principal && !find_room(run)) return Outcome::Skipped;
  for (const Action& action : clause.actions) {
    if (is_out_of_time(run)) return out_of_time();
    const Next next = TRY(run_action(run, action));
    if (next == Next::EndClause) return Outcome::Skipped;
  }
  // A clause may end the very speculation that it records in; its record went with that.
  const bool gone = run.speculation != 0 &&
                    firings_.speculations.state(run.speculation) != SpeculationState::Recording;
  if (run.buffer != nullptr && !gone) run.buffer->commit(run.record.timestamp);
  return Outcome::Done;
}

/// A clause whose record has no room does not run. One with exit() does, or a full buffer would
/// trace for ever; its record is made beside the buffer and dropped.
bool ClauseRunner::find_room(Run& run) {
  RecordBuffer& buffer = run.out.records();
  run.data = buffer.reserve(run.ecb.info.id, room_of(run));
  if (run.data.data() != nullptr) {
    run.buffer = &buffer;
    return true;
  }
  run.out.drop_record(run.ecb.info.clause);
  const std::uint32_t size = enablings_.shapes()[run.ecb.info.id.value].data_size;
  const bool ends_anyway = options_.buffer_policy == BufferPolicy::Fill;
  if (!run.ecb.exits || ends_anyway || beside_.bytes().size() < size) return false;
  run.data = beside_.bytes().first(size);
  return true;
}

/// exit(): the last one counts, as for a consumer that reads the records in order.
void ClauseRunner::leave(std::uint64_t status) {
  firings_.exit.store(static_cast<std::int32_t>(status), std::memory_order_release);
}

void ClauseRunner::report(const Run& run, const Fault& fault) {
  if (in_error_) {
    run.out.drop(DropKind::DoubleError);
    return;
  }
  run.out.add_fault({run.ecb.info.id, run.record.vcpu, run.record.timestamp, run.action, fault});
  const EnabledProbe* const error = enablings_.error_probe();
  if (error == nullptr) return;

  const std::uint64_t offset = fault.pc == kNoPc ? UINT64_MAX : fault.pc;
  const ProbeArgumentValues arguments{0,
                                      run.ecb.info.id.value,
                                      run.action,
                                      offset,
                                      static_cast<std::uint64_t>(fault.kind),
                                      fault.address};
  in_error_ = true;
  evaluator_.builtins().begin_error(error->identity, arguments);
  fire_clauses(*error, run.record, run.out);
  evaluator_.builtins().end_error(current_->identity);
  in_error_ = false;
}

}  // namespace ringside::dif
