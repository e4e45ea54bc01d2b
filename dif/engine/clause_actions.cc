// The actions of a clause, carried out in a firing: values into the record, aggregations,
// speculations, and the destructive ones that the firing thread carries out itself.
// Fire context: yes.
#include <algorithm>
#include <cstring>

#include "dif/engine/clause_runner.h"
#include "dif/engine/packet_record.h"
#include "dif/program/action_kind.h"
#include "dif/program/aggregate_function.h"

namespace ringside::dif {

namespace {

/// chill() may use up half of each interval (Dynamic Tracing Guide, "Destructive Actions").
constexpr std::uint64_t kChillInterval = 1'000'000'000;
constexpr std::uint64_t kMostChill = 500'000'000;

/// A fault outside DIF has no offset in it.
tl::unexpected<Fault> outside_dif(Fault fault) {
  fault.pc = kNoPc;
  return tl::unexpected<Fault>(fault);
}

/// The place of the stack `given` in a key of type `key`, all of whose bytes count.
std::span<std::byte> stack_in_key(const ValueType& given, const ValueType& key,
                                  std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  if (given.kind == key.kind) return out.first(given.size);
  std::memcpy(out.data(), &kKernelFrames, sizeof kKernelFrames);
  return out.subspan(sizeof kKernelFrames, given.size);
}

}  // namespace

Result<ClauseRunner::Next, Fault> ClauseRunner::run_action(Run& run, const Action& action) {
  switch (action.kind) {
// clang-format off
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  case ActionKind::kind: return next(fire(run, action));
#define DIF_ACTION_FORM(kind, number, changes, records, verify, fire, show) \
  case ActionKind::kind: return next(fire(run, action));
#include "dif/program/actions.def"
    // clang-format on
  }
  return Next::GoOn;
}

Result<void, Fault> ClauseRunner::evaluate_effect(Run& run, const Action& action) {
  TRY(evaluate(run, action.arguments[0]));
  return {};
}

Result<void, Fault> ClauseRunner::exit(Run& run, const Action& action) {
  const std::uint64_t status = TRY(evaluate(run, action.arguments[0]));
  TRY(record_value(run, status));
  leave(status);
  return {};
}

/// Leads the record to a speculation. Without one there is nothing left to do in the clause.
Result<ClauseRunner::Next, Fault> ClauseRunner::speculate(Run& run, const Action& action) {
  const std::uint64_t id = TRY(evaluate(run, action.arguments[0]));
  evaluator_.access().take_program();
  RecordBuffer* const buffer = firings_.speculations.speculate(id, vcpu_);
  if (buffer == nullptr) return Next::EndClause;
  run.data = buffer->reserve(run.ecb.info.id);
  if (run.data.data() == nullptr) {
    run.out.drop_of(run.ecb.info.clause, DropKind::Speculation);
    return Next::EndClause;
  }
  run.buffer = buffer;
  run.speculation = id;
  return Next::GoOn;
}

/// The argument of commit() or discard(): a speculation, or 0 for none.
Result<std::uint64_t, Fault> ClauseRunner::speculation_to_end(Run& run, const Action& action) {
  const std::uint64_t id = TRY(evaluate(run, action.arguments[0]));
  evaluator_.access().take_program();
  if (id <= firings_.speculations.count()) return id;
  return outside_dif(Fault{FaultKind::IllegalOperation, 0, 0});
}

/// The committed records go before the record that the clause itself is making, if it makes one.
Result<ClauseRunner::Next, Fault> ClauseRunner::commit(Run& run, const Action& action) {
  const std::uint64_t id = TRY(speculation_to_end(run, action));
  const bool beside = run.ecb.commits_beside && run.buffer != nullptr;
  if (beside) std::ranges::copy(run.data, beside_.bytes().begin());
  if (!firings_.speculations.commit(id, run.out.records(), now_, run.out.room())) {
    run.out.drop_record(run.ecb.info.clause);
  }
  if (!beside) return Next::GoOn;
  run.data = run.buffer->reserve(run.ecb.info.id, room_of(run));
  if (run.data.data() == nullptr) {
    run.out.drop_record(run.ecb.info.clause);
    return Next::EndClause;
  }
  std::ranges::copy(beside_.bytes().first(run.data.size()), run.data.begin());
  return Next::GoOn;
}

Result<void, Fault> ClauseRunner::discard(Run& run, const Action& action) {
  firings_.speculations.discard(TRY(speculation_to_end(run, action)));
  return {};
}

Result<void, Fault> ClauseRunner::perform(Run& run, const Action& action) {
  std::uint64_t argument = 0;
  if (action.arguments.empty()) {
    ++run.action;
  } else {
    argument = TRY(evaluate(run, action.arguments[0]));
  }
  const auto done = guest_->perform(action.kind, argument);
  return done ? done : outside_dif(done.error());
}

Result<void, Fault> ClauseRunner::chill(Run& run, const Action& action) {
  const std::uint64_t wanted = TRY(evaluate(run, action.arguments[0]));
  if (run.record.timestamp - chilled_.start >= kChillInterval) {
    chilled_ = {run.record.timestamp, 0};
  }
  if (wanted > kMostChill - chilled_.spent) {
    return outside_dif(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  chilled_.spent += wanted;
  const auto done = guest_->wait(wanted);
  return done ? done : outside_dif(done.error());
}

/// The consumer writes the file, by the record.
Result<void, Fault> ClauseRunner::snapshot(Run& run, const Action& action) {
  TRY(record_arguments(run, action));
  const auto kept = guest_->keep_still();
  return kept ? kept : outside_dif(kept.error());
}

Result<void, Fault> ClauseRunner::record_arguments(Run& run, const Action& action) {
  if (action.arguments.empty()) ++run.action;
  for (const Difo& difo : action.arguments) {
    const std::uint64_t value = TRY(evaluate(run, difo));
    TRY(record_value(run, value));
  }
  return {};
}

/// As many bytes as the firing wants, at most as many as the layout has; then how many.
Result<void, Fault> ClauseRunner::record_tracemem(Run& run, const Action& action) {
  const std::uint64_t address = TRY(evaluate(run, action.arguments[0]));
  const std::uint64_t wanted = TRY(evaluate(run, action.arguments[1]));
  const auto bytes = TRY(next_field(run));
  // 0 is no limit, as is what does not fit: a negative number is huge.
  const std::uint64_t most = bytes.size();
  const std::uint64_t shown = wanted == 0 ? most : std::min(wanted, most);
  const auto read = evaluator_.memory().read(address, bytes.first(shown));
  if (!read) return outside_dif(read.error());
  std::ranges::fill(bytes.subspan(shown), std::byte{0});
  return record_value(run, shown);
}

/// Its header and bytes, then the link type that it has.
Result<void, Fault> ClauseRunner::record_packet(Run& run, const Action& action) {
  const std::uint64_t skb = TRY(evaluate(run, action.arguments[0]));
  const std::uint64_t link = TRY(evaluate(run, action.arguments[1]));
  if (link > kMostLinkType) return outside_dif(Fault{FaultKind::IllegalOperation, 0, 0});
  const auto field = TRY(next_field(run));
  const auto bytes = field.subspan(sizeof(PacketHeader));
  const auto packet = guest_->packet(GuestVirt(skb), part_of_packet(link), bytes);
  if (!packet) return outside_dif(packet.error());
  PacketHeader header{.walltimestamp = run.record.walltimestamp,
                      .captured = static_cast<std::uint32_t>(packet->captured),
                      .length = packet->length,
                      .device = packet->device};
  const auto pid = guest_->variable(ContextVariable::Pid);
  const auto name = guest_->execname(header.process);
  if (pid && name) {
    header.pid = static_cast<std::int32_t>(*pid);
  } else {
    header.process = {};
  }
  std::memcpy(field.data(), &header, sizeof header);
  std::ranges::fill(bytes.subspan(packet->captured), std::byte{0});
  const bool lacks_link = part_of_packet(link) == PacketPart::Link && !packet->has_link;
  return record_value(run, lacks_link ? kLinkTypeOfIp : link);
}

/// Where the layout wants the next value.
Result<std::span<std::byte>, Fault> ClauseRunner::next_field(Run& run) {
  if (run.data.data() == nullptr) return outside_dif(Fault{FaultKind::IllegalOperation, 0, 0});
  const RecordField& field = run.ecb.info.fields[run.next_field++];
  return run.data.subspan(field.offset, field.size);
}

Result<void, Fault> ClauseRunner::record_value(Run& run, std::uint64_t value) {
  const auto out = TRY(next_field(run));
  const ValueType& type = run.ecb.info.fields[run.next_field - 1].type;
  const auto put = put_value(type, value, out);
  if (!put) return outside_dif(put.error());
  std::ranges::fill(out.subspan(*put), std::byte{0});
  return {};
}

/// Writes a value in the form that records and keys have; answers with how many bytes it took, at
/// most out.size(): the type's stored size, and for a key's string that of its NUL. Only strings
/// may take less.
Result<std::size_t, Fault> ClauseRunner::put_value(const ValueType& type, std::uint64_t value,
                                                   std::span<std::byte> out) {
  const auto put_words = [out](const auto&... words) {
    const std::array<std::uint64_t, sizeof...(words)> all{words...};
    if (out.size() < sizeof all) {
      std::memcpy(out.data(), all.data(), out.size());
      return out.size();
    }
    std::memcpy(out.data(), all.data(), sizeof all);
    return sizeof all;
  };
  Memory& memory = evaluator_.memory();
  switch (type.kind) {
    case ValueKind::Void: return 0;
    case ValueKind::Integer:
    case ValueKind::KernelSymbol:
    case ValueKind::KernelModule: return put_words(value);
    case ValueKind::UserSymbol:
    case ValueKind::UserModule:
    case ValueKind::UserAddress: {
      const std::uint64_t pid = TRY(recorded_pid());
      return put_words(pid, value);
    }
    case ValueKind::KernelStack:
    case ValueKind::UserStack: return put_stack(type.kind, out);
    case ValueKind::Bytes: TRY(memory.read(value, out)); return out.size();
    case ValueKind::String: {
      const std::size_t most = stored_size(type, options_.string_size);
      const std::string_view text = TRY(memory.string(value, most));
      std::memcpy(out.data(), text.data(), text.size());
      if (text.size() == out.size()) return out.size();
      out[text.size()] = std::byte{0};
      return text.size() + 1;
    }
  }
  return 0;
}

Result<std::size_t, Fault> ClauseRunner::put_stack(ValueKind kind, std::span<std::byte> out) {
  auto words =
      std::span(frames_).first(std::min(out.size() / sizeof(std::uint64_t), frames_.size()));
  std::ranges::fill(words, 0);
  if (kind == ValueKind::KernelStack) {
    TRY(guest_->kernel_stack(words));
  } else if (!words.empty()) {
    words[0] = TRY(recorded_pid());
    TRY(guest_->user_stack(words.subspan(1)));
  }
  std::ranges::copy(std::as_bytes(words), out.begin());
  return words.size_bytes();
}

Result<std::uint64_t, Fault> ClauseRunner::recorded_pid() {
  const std::uint64_t pid = TRY(guest_->variable(ContextVariable::Pid));
  // The host's own firings are in no process of the guest.
  if (guest_->is_on_vcpu()) recorded_processes_.note(pid, guest_->address_space(), now_);
  return pid;
}

/// One key, evaluated; answers with how many bytes of `out` it takes.
Result<std::size_t, Fault> ClauseRunner::put_key(Run& run, const ValueType& type, const Difo& difo,
                                                 std::span<std::byte> out) {
  const std::uint64_t value = TRY(evaluate(run, difo));
  const std::size_t nul = type.kind == ValueKind::String ? 1 : 0;
  out = out.first(stored_size(type, options_.string_size) + nul);
  const bool stack = is_stack(type.kind);
  const auto put = stack ? put_stack(difo.result.kind, stack_in_key(difo.result, type, out))
                         : put_value(type, value, out);
  if (!put) return outside_dif(put.error());
  return stack ? out.size() : *put;
}

Result<void, Fault> ClauseRunner::aggregate(Run& run, const Action& action) {
  const std::uint32_t index = action.aggregations[0];
  const Aggregation& aggregation = program_.aggregations[index];
  const Difo* argument = action.arguments.data();
  std::size_t key_size = 0;
  for (const ValueType& type : aggregation.keys) {
    key_size += TRY(put_key(run, type, *argument++, key_.bytes().subspan(key_size)));
  }
  std::uint64_t value = 0;
  if (aggregation.function == AggregateFunction::Count) {
    ++run.action;
  } else {
    value = TRY(evaluate(run, *argument++));
  }
  std::int64_t increment = 1;
  if (action.quantize_increment) {
    increment = static_cast<std::int64_t>(TRY(evaluate(run, *argument)));
  }
  AggregationBuffer& buffer = run.out.aggregations();
  const auto slot =
      buffer.find_or_add(index, key_.bytes().first(key_size), aggregate_words(aggregation));
  if (slot.words.empty()) {
    run.out.drop_of(run.ecb.info.clause, DropKind::Aggregation);
    return {};
  }
  if (slot.fresh) buffer.set_order(firings_.order.fetch_add(1, std::memory_order_relaxed) + 1);
  aggregate_value(aggregation, slot.words, value, increment, slot.fresh);
  return {};
}

}  // namespace ringside::dif
