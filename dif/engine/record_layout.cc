#include "dif/engine/record_layout.h"

#include <algorithm>

#include "dif/engine/packet_record.h"
#include "dif/evaluate/variables.h"
#include "dif/program/action_kind.h"
#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace {

std::uint32_t alignment(const ValueType& type) {
  switch (type.kind) {
    case ValueKind::Integer: return type.size;
    case ValueKind::Bytes:
    case ValueKind::KernelStack:
    case ValueKind::UserStack:
    case ValueKind::KernelSymbol:
    case ValueKind::KernelModule:
    case ValueKind::UserSymbol:
    case ValueKind::UserModule:
    case ValueKind::UserAddress: return 8;
    case ValueKind::String:
    case ValueKind::Void: return 1;
  }
  return 1;
}

ValueType recorded_type(const Action& action, std::uint32_t argument,
                        const EngineOptions& options) {
  if (action.kind == ActionKind::Pcap && argument == 0) {
    const std::uint32_t size = sizeof(PacketHeader) + options.packet_size;
    return {ValueKind::Bytes, false, size};
  }
  if (!dumps_memory(action.kind)) return action.arguments[argument].result;
  if (argument == 1) return {ValueKind::Integer, false, 8};
  return {ValueKind::Bytes, false, static_cast<std::uint32_t>(action.argument)};
}

RecordKind kind_of(const Clause& clause) {
  const auto is_speculate = [](const Action& a) { return a.kind == ActionKind::Speculate; };
  if (std::ranges::any_of(clause.actions, is_speculate)) return RecordKind::Speculative;
  return makes_records(clause) ? RecordKind::Principal : RecordKind::None;
}

}  // namespace

RecordLayout layout_record(const Clause& clause, const EngineOptions& options) {
  RecordLayout layout;
  layout.kind = kind_of(clause);
  std::uint32_t end = kRecordHeaderSize;  // fields are aligned within the record, not the data
  for (std::uint32_t a = 0; a < clause.actions.size(); ++a) {
    const Action& action = clause.actions[a];
    if (!records_data(action.kind)) continue;
    for (std::uint32_t i = 0; i < action.arguments.size(); ++i) {
      const ValueType type = recorded_type(action, i, options);
      const std::uint32_t align = alignment(type), size = stored_size(type, options.string_size);
      const std::uint32_t at = round_up(end, align);
      layout.fields.push_back({a, i, at - kRecordHeaderSize, size, type});
      layout.shape.alignment = std::max(layout.shape.alignment, align);
      end = at + size;
    }
  }
  layout.shape.data_size = end - kRecordHeaderSize;
  layout.shape.size = round_up(end, 4);
  return layout;
}

}  // namespace ringside::dif
