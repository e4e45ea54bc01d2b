// In this file, top to bottom: set-up (enable and names), one firing, loops, one clause, faults.
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

/// What one run of the object may cost, in simple instructions: calls and strings go over strings.
std::uint64_t work_of(const Difo& difo, std::uint64_t over_strings) {
  std::uint64_t work = difo.text.size();
  for (const std::uint32_t word : difo.text) {
    if (Insn{word}.op() == Opcode::Call) work += over_strings;
  }
  return work + (difo.result.kind == ValueKind::String ? over_strings : difo.result.size / 16);
}

std::uint64_t work_of(const Clause& clause, std::uint32_t string_size) {
  const std::uint64_t over_strings = 16 + string_size / 16;
  std::uint64_t work = 1 + clause.actions.size();
  if (clause.predicate) work += work_of(*clause.predicate, over_strings);
  for (const Action& action : clause.actions) {
    for (const Difo& difo : action.arguments) work += work_of(difo, over_strings);
  }
  return work;
}

bool has(const Clause& clause, ActionKind kind) {
  return std::ranges::any_of(clause.actions, [kind](const Action& a) { return a.kind == kind; });
}

}  // namespace

ClauseRunner::ClauseRunner(const Program& program, const EngineOptions& options, unsigned vcpus,
                           RecordShapes& shapes)
    : program_(program),
      options_(options),
      vcpus_(vcpus),
      shapes_(shapes),
      evaluator_(program, options),
      speculations_(options, vcpus, shapes),
      names_(1),
      key_(longest_key(program, options.string_size)),
      frames_(deepest_stack(program)),
      chilled_(vcpus) {
  shapes_.assign(1, {});
  evaluator_.set_speculations(speculations_);
  evaluator_.memory().set_arena(Arena::Names, names_);
}

std::uint32_t ClauseRunner::add_name(const std::string& text) {
  if (text.empty()) return 0;
  const auto at = static_cast<std::uint32_t>(names_.size());
  const auto bytes = std::as_bytes(std::span(text));
  names_.insert(names_.end(), bytes.begin(), bytes.end());
  names_.push_back(std::byte{0});
  evaluator_.memory().set_arena(Arena::Names, names_);
  return at;
}

const ClauseRunner::EnabledProbe* ClauseRunner::find(ProbeId id) const {
  const bool known = id.value < probe_index_.size() && probe_index_[id.value] != 0;
  return known ? &probes_[probe_index_[id.value] - 1] : nullptr;
}

ClauseRunner::EnabledProbe& ClauseRunner::probe(ProbeId id, const ProbeDescription& name) {
  if (probe_index_.size() <= id.value) probe_index_.resize(id.value + std::size_t{1});
  std::uint32_t& index = probe_index_[id.value];
  if (index == 0) {
    EnabledProbe fresh{name, {id, {}}, {}};
    fresh.identity.names = {add_name(name.provider), add_name(name.module), add_name(name.function),
                            add_name(name.name)};
    probes_.push_back(std::move(fresh));
    index = static_cast<std::uint32_t>(probes_.size());
  }
  return probes_[index - 1];
}

EcbId ClauseRunner::enable(std::uint32_t clause, ProbeId id, const ProbeDescription& name) {
  CHECK(clause < program_.clauses.size());
  const Clause& enabled = program_.clauses[clause];
  RecordLayout layout = layout_record(enabled, options_.string_size);
  Ecb ecb;
  ecb.info = {EcbId{static_cast<std::uint32_t>(ecbs_.size() + 1)}, clause, id,
              std::move(layout.fields)};
  ecb.clause = &enabled;
  ecb.kind = layout.kind;
  ecb.commits_beside = layout.kind == RecordKind::Principal && has(enabled, ActionKind::Commit);
  ecb.exits = layout.kind == RecordKind::Principal && has(enabled, ActionKind::Exit);
  // A record that no buffer can hold is never made, so it needs no second place either.
  const bool can_be = layout.shape.size <= options_.buffer_size;
  if ((ecb.commits_beside || ecb.exits) && can_be && beside_.size() < layout.shape.data_size) {
    beside_.resize(layout.shape.data_size);
  }
  EnabledProbe& fired = probe(id, name);
  ecb.work = work_of(enabled, options_.string_size);
  if (enabled.repeat) {
    fired.loops = true;
    const auto in_loop = [&](std::uint32_t index) {
      return ecbs_[index].info.clause >= enabled.repeat->first;
    };
    const auto first = std::ranges::find_if(fired.ecbs, in_loop);
    ecb.loop_start = static_cast<std::size_t>(first - fired.ecbs.begin());
  }
  fired.ecbs.push_back(static_cast<std::uint32_t>(ecbs_.size()));
  shapes_.push_back(layout.shape);
  ecbs_.push_back(std::move(ecb));
  return ecbs_.back().info.id;
}

/// Adds up what `bytes` (of a shape, and all before it) says of the records of END.
template <class Bytes>
std::size_t ClauseRunner::sum_over_end(Bytes bytes) const {
  const EnabledProbe* const end = end_probe_ ? find(*end_probe_) : nullptr;
  std::size_t sum = 0;
  if (end == nullptr) return sum;
  for (const std::uint32_t index : end->ecbs) {
    if (ecbs_[index].kind == RecordKind::Principal) sum += bytes(shapes_[index + 1], sum);
  }
  return sum;
}

std::size_t ClauseRunner::end_reserve() const {
  return sum_over_end([](const RecordShape& shape, std::size_t) {
    return std::size_t{shape.size} + shape.alignment - 4;
  });
}

bool ClauseRunner::records_fit() const {
  const auto fits = [&](const Ecb& ecb) {
    return ecb.kind != RecordKind::Principal ||
           shapes_[ecb.info.id.value].size <= options_.buffer_size;
  };
  if (!std::ranges::all_of(ecbs_, fits)) return false;
  const std::size_t of_end = sum_over_end([](const RecordShape& shape, std::size_t before) {
    const std::size_t past = before % shape.alignment;
    return shape.size + (past == 0 ? 0 : shape.alignment - past);
  });
  return options_.buffer_policy != BufferPolicy::Fill || of_end <= options_.buffer_size;
}

const EcbInfo& ClauseRunner::ecb(EcbId id) const {
  CHECK(id.value >= 1 && id.value <= ecbs_.size());
  return ecbs_[id.value - 1].info;
}

const ProbeDescription& ClauseRunner::probe_name(ProbeId id) const {
  const EnabledProbe* found = find(id);
  CHECK(found != nullptr);
  return found->name;
}

std::optional<int> ClauseRunner::exit_status() const {
  const std::int64_t status = exit_.load(std::memory_order_acquire);
  return status == kRunning ? std::nullopt : std::optional(static_cast<int>(status));
}

void ClauseRunner::fire(ProbeId id, const FireRecord& fired_as, const GuestContext& guest,
                        Collection& out) {
  const EnabledProbe* const fired = find(id);
  const bool is_end = end_probe_ == id;
  if (fired == nullptr || ended_ || (leaving() && !is_end)) return;
  FireRecord record = fired_as;
  if (options_.cpu && record.vcpu != *options_.cpu) {
    // What the host fires (BEGIN, END, tick) is on no vCPU, so it takes place on the one wanted.
    if (guest.registers() != nullptr || *options_.cpu >= vcpus_) return;
    record.vcpu = *options_.cpu;
  }
  CHECK(record.vcpu < vcpus_);

  const FireScope scope;
  clean_when_due(record.timestamp, out);
  if (is_end) {
    ended_ = true;
    out.set_room(Room::Final);
    speculations_.copy_committed(out);
  }
  current_ = fired;
  guest_ = &guest;
  now_ = record.timestamp;
  trips_ = work_ = 0;
  evaluator_.begin_firing(fired->identity, record, guest);
  fire_clauses(*fired, record, out);
  count_drops(record.vcpu, out);
  out.set_room(Room::Ordinary);
}

/// A clock that went backward by more than the interval counts as due, too.
void ClauseRunner::clean_when_due(std::uint64_t now, Collection& out) {
  if (!cleaned_) cleaned_ = now;
  const std::uint64_t since = now - *cleaned_;
  const bool backward = since > UINT64_MAX / 2;
  if ((backward ? 0 - since : since) < options_.clean_interval) return;
  cleaned_ = now;
  evaluator_.variables().clean();
  speculations_.clean(out);
}

void ClauseRunner::count_drops(std::uint32_t vcpu, Collection& out) {
  const Variables::DynamicDrops dynamic = evaluator_.variables().take_dynamic_drops();
  out.drop(vcpu, DropKind::Dynamic, dynamic.plain);
  out.drop(vcpu, DropKind::DynamicDirty, dynamic.dirty);
  out.drop(vcpu, DropKind::DynamicRinse, dynamic.rinsing);
  out.drop(vcpu, DropKind::SpeculationBusy, speculations_.take_busy());
  out.drop(vcpu, DropKind::SpeculationUnavailable, speculations_.take_unavailable());
}

void ClauseRunner::fire_clauses(const EnabledProbe& probe, const FireRecord& record,
                                Collection& out) {
  if (probe.loops) {
    for (const std::uint32_t index : probe.ecbs) ecbs_[index].trips = 0;
  }
  for (std::size_t at = 0; at < probe.ecbs.size(); ++at) {
    if (leaving() && !ended_) return;  // exit() in one clause: the next ones do not run
    Ecb& ecb = ecbs_[probe.ecbs[at]];
    if (!ecb.clause->continues) evaluator_.memory().begin_clause();
    ecb.scratch = evaluator_.memory().scratch_used();
    const Outcome outcome = run_clause(ecb, record, out);
    work_ += ecb.work;
    if (!probe.loops || !jumps_back(probe, at, outcome)) continue;
    // What a round made in scratch memory ends with it, so that many rounds do not run out.
    evaluator_.memory().free_scratch(ecbs_[probe.ecbs[ecb.loop_start]].scratch);
    at = ecb.loop_start - 1;  // ++ undoes the -1
  }
}

/// What the clause at `at` ended with decides about its loop, if it ends one, and a fault about
/// all loops that it is in.
bool ClauseRunner::jumps_back(const EnabledProbe& probe, std::size_t at, Outcome outcome) {
  if (outcome == Outcome::Faulted) end_loops_around(probe, at);
  Ecb& ecb = ecbs_[probe.ecbs[at]];
  const auto& repeat = ecb.clause->repeat;
  if (!repeat || outcome != Outcome::Done) return false;
  if (ecb.trips >= repeat->limit || trips_ >= kMostTrips || work_ >= kMostWork) return false;
  ++ecb.trips;
  ++trips_;
  // The firing comes to the inner loops again.
  for (std::size_t i = ecb.loop_start; i < at; ++i) ecbs_[probe.ecbs[i]].trips = 0;
  return true;
}

void ClauseRunner::end_loops_around(const EnabledProbe& probe, std::size_t at) {
  for (std::size_t i = at; i < probe.ecbs.size(); ++i) {
    Ecb& ecb = ecbs_[probe.ecbs[i]];
    if (ecb.clause->repeat && ecb.loop_start <= at) ecb.trips = ecb.clause->repeat->limit;
  }
}

ClauseRunner::Outcome ClauseRunner::run_clause(const Ecb& ecb, const FireRecord& record,
                                               Collection& out) {
  evaluator_.begin_clause(ecb.info.id);
  Run run{ecb, record, out};
  const auto done = run_body(run);
  if (done) return *done;
  report(run, done.error());
  return Outcome::Faulted;
}

Result<ClauseRunner::Outcome, Fault> ClauseRunner::run_body(Run& run) {
  const Clause& clause = *run.ecb.clause;
  if (clause.predicate) {
    const std::uint64_t value = TRY(evaluator_.evaluate(*clause.predicate));
    if (value == 0) return Outcome::Skipped;
  }
  if (run.ecb.kind == RecordKind::Principal && !find_room(run)) return Outcome::Skipped;
  for (const Action& action : clause.actions) {
    const Next next = TRY(run_action(run, action));
    if (next == Next::EndClause) return Outcome::Skipped;
  }
  // A clause may end the very speculation that it records in; its record went with that.
  const bool gone = run.speculation != 0 && !speculations_.records(run.speculation);
  if (run.buffer != nullptr && !gone) run.buffer->commit(run.record.timestamp);
  return Outcome::Done;
}

/// A clause whose record has no room does not run. One with exit() does, or a full buffer would
/// trace for ever; its record is made beside the buffer and dropped.
bool ClauseRunner::find_room(Run& run) {
  RecordBuffer& buffer = run.out.records(run.record.vcpu);
  run.data = buffer.reserve(run.ecb.info.id, run.out.room());
  if (run.data.data() != nullptr) {
    run.buffer = &buffer;
    return true;
  }
  run.out.drop_record(run.record.vcpu);
  const std::uint32_t size = shapes_[run.ecb.info.id.value].data_size;
  const bool ends_anyway = options_.buffer_policy == BufferPolicy::Fill;
  if (!run.ecb.exits || ends_anyway || beside_.size() < size) return false;
  run.data = std::span(beside_).first(size);
  return true;
}

/// exit(): the last one counts, as for a consumer that reads the records in order.
void ClauseRunner::leave(std::uint64_t status) {
  exit_.store(static_cast<std::int32_t>(status), std::memory_order_release);
}

void ClauseRunner::report(const Run& run, const Fault& fault) {
  if (in_error_) {
    run.out.drop(run.record.vcpu, DropKind::DoubleError);
    return;
  }
  run.out.add_fault({run.ecb.info.id, run.record.vcpu, run.record.timestamp, run.action, fault});
  const EnabledProbe* error = error_probe_ ? find(*error_probe_) : nullptr;
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
