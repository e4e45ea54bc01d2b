// In this file, top to bottom: set-up (enable and names), one firing, one clause, actions,
// aggregations, faults.
#include "dif/clause_runner.h"

#include <algorithm>

#include "dif/aggregate_function.h"
#include "dif/fire_context.h"
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

/// A fault outside DIF has no offset in it.
tl::unexpected<Fault> outside_dif(Fault fault) {
  fault.pc = kNoPc;
  return tl::unexpected<Fault>(fault);
}

}  // namespace

ClauseRunner::ClauseRunner(const Program& program, const EngineOptions& options, unsigned vcpus)
    : program_(program),
      string_size_(options.string_size),
      vcpus_(vcpus),
      evaluator_(program, options),
      names_(1),
      key_(longest_key(program, options.string_size)) {
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
  RecordLayout layout = layout_record(enabled, string_size_);
  const EcbId ecb{static_cast<std::uint32_t>(ecbs_.size() + 1)};
  ecbs_.push_back(
      {{ecb, clause, id, std::move(layout.fields)}, &enabled, layout.size, layout.records});
  probe(id, name).ecbs.push_back(ecb.value - 1);
  return ecb;
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

void ClauseRunner::fire(ProbeId id, const FireRecord& record, const GuestContext& guest,
                        Collection& out) {
  const EnabledProbe* fired = find(id);
  const bool is_end = end_probe_ == id;
  if (fired == nullptr || ended_ || (leaving() && !is_end)) return;
  CHECK(record.vcpu < vcpus_);

  const FireScope scope;
  ended_ = is_end;
  current_ = fired;
  evaluator_.begin_firing(fired->identity, record, guest);
  fire_clauses(*fired, record, out);
  if (const std::uint64_t drops = evaluator_.variables().take_dynamic_drops(); drops != 0) {
    out.drop(record.vcpu, DropKind::Dynamic, drops);
  }
}

void ClauseRunner::fire_clauses(const EnabledProbe& probe, const FireRecord& record,
                                Collection& out) {
  for (const std::uint32_t index : probe.ecbs) {
    if (leaving() && !ended_) return;  // exit() in one clause: the next ones do not run
    run_clause(ecbs_[index], record, out);
  }
}

void ClauseRunner::run_clause(const Ecb& ecb, const FireRecord& record, Collection& out) {
  evaluator_.begin_clause(ecb.info.id);
  Run run{ecb, record, out, {}};
  if (const auto done = run_body(run); !done) report(run, done.error());
}

Result<void, Fault> ClauseRunner::run_body(Run& run) {
  const Clause& clause = *run.ecb.clause;
  if (clause.predicate) {
    const std::uint64_t value = TRY(evaluator_.evaluate(*clause.predicate));
    if (value == 0) return {};
  }
  RecordBuffer& buffer = run.out.records(run.record.vcpu);
  if (run.ecb.records) {
    run.data = buffer.reserve(run.ecb.record_size);
    if (run.data.data() == nullptr) {
      run.out.drop(run.record.vcpu, DropKind::Principal);
      return {};
    }
  }
  for (const Action& action : clause.actions) TRY(run_action(run, action));
  if (run.ecb.records) buffer.commit(run.ecb.info.id, run.record.timestamp);
  return {};
}

Result<void, Fault> ClauseRunner::run_action(Run& run, const Action& action) {
  switch (action.kind) {
    case ActionKind::Aggregate: return aggregate(run, action);
    case ActionKind::Evaluate: TRY(evaluate(run, action.arguments[0])); return {};
    case ActionKind::Exit: {
      const std::uint64_t status = TRY(evaluate(run, action.arguments[0]));
      TRY(record_value(run, status));
      leave(status);
      return {};
    }
    case ActionKind::Trace:
    case ActionKind::Printf:
    case ActionKind::Printa:
    case ActionKind::Tracemem:
    case ActionKind::Clear:
    case ActionKind::Trunc:
    case ActionKind::Normalize:
    case ActionKind::Denormalize:
    case ActionKind::Setopt: return record_arguments(run, action);
  }
  return {};
}

/// Evaluates one argument, which for reports is an action of its own.
Result<std::uint64_t, Fault> ClauseRunner::evaluate(Run& run, const Difo& difo) {
  ++run.action;
  return evaluator_.evaluate(difo);
}

Result<void, Fault> ClauseRunner::record_arguments(Run& run, const Action& action) {
  if (action.arguments.empty()) ++run.action;
  for (const Difo& difo : action.arguments) {
    const std::uint64_t value = TRY(evaluate(run, difo));
    TRY(record_value(run, value));
  }
  return {};
}

/// Puts a value where the layout wants the next one.
Result<void, Fault> ClauseRunner::record_value(Run& run, std::uint64_t value) {
  const RecordField& field = run.ecb.info.fields[run.next_field++];
  const auto out = run.data.subspan(field.offset, field.size);
  Memory& memory = evaluator_.memory();
  switch (field.type.kind) {
    case ValueKind::Void: return {};
    case ValueKind::Integer: std::memcpy(out.data(), &value, out.size()); return {};
    case ValueKind::Bytes: {
      const auto read = memory.read(value, out);
      return read ? read : outside_dif(read.error());
    }
    case ValueKind::String: {
      memory.release_staging();
      const auto text = memory.string(value, out.size());
      if (!text) return outside_dif(text.error());
      const auto rest = std::ranges::copy(std::as_bytes(std::span(*text)), out.begin()).out;
      std::fill(rest, out.end(), std::byte{0});
      return {};
    }
  }
  return {};
}

Result<void, Fault> ClauseRunner::aggregate(Run& run, const Action& action) {
  const std::uint32_t index = action.aggregations[0];
  const Aggregation& aggregation = program_.aggregations[index];
  std::size_t key_size = 0, next = 0;
  for (const ValueType& type : aggregation.keys) {
    const std::uint64_t key = TRY(evaluate(run, action.arguments[next++]));
    const auto end = append_key(key_size, type, key);
    if (!end) return outside_dif(end.error());
    key_size = *end;
  }
  std::uint64_t value = 0;
  if (aggregation.function == AggregateFunction::Count) {
    ++run.action;
  } else {
    value = TRY(evaluate(run, action.arguments[next++]));
  }
  std::int64_t increment = 1;
  if (action.quantize_increment) {
    increment = static_cast<std::int64_t>(TRY(evaluate(run, action.arguments[next])));
  }
  const auto slot = run.out.aggregations().find_or_add(index, std::span(key_).first(key_size),
                                                       aggregate_words(aggregation), ++order_);
  if (slot.words.empty()) {
    run.out.drop(run.record.vcpu, DropKind::Aggregation);
    return {};
  }
  aggregate_value(aggregation, slot.words, value, increment, slot.fresh);
  return {};
}

/// Adds one field to the key as AggregateEntry::key documents; answers with the new size.
Result<std::size_t, Fault> ClauseRunner::append_key(std::size_t at, const ValueType& type,
                                                    std::uint64_t value) {
  const std::size_t most = stored_size(type, string_size_);
  const auto out = std::span(key_).subspan(at);
  switch (type.kind) {
    case ValueKind::Void: return at;
    case ValueKind::Integer: std::memcpy(out.data(), &value, most); return at + most;
    case ValueKind::Bytes: TRY(evaluator_.memory().read(value, out.first(most))); return at + most;
    case ValueKind::String: {
      evaluator_.memory().release_staging();
      const std::string_view text = TRY(evaluator_.memory().string(value, most));
      if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
      out[text.size()] = std::byte{0};
      return at + text.size() + 1;
    }
  }
  return at;
}

/// exit(): the first one counts.
void ClauseRunner::leave(std::uint64_t status) {
  if (leaving()) return;
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
