#include "dif/record_layout.h"

#include <algorithm>

#include "dif/variables.h"

namespace ringside::dif {

namespace {

std::uint32_t alignment(const ValueType& type) {
  switch (type.kind) {
    case ValueKind::Integer: return type.size;
    case ValueKind::Bytes: return 8;
    case ValueKind::String:
    case ValueKind::Void: return 1;
  }
  return 1;
}

/// True when the arguments' values go into the record.
bool records_arguments(ActionKind kind) {
  return kind != ActionKind::Aggregate && kind != ActionKind::Evaluate;
}

}  // namespace

RecordLayout layout_record(const Clause& clause, std::uint32_t string_size) {
  RecordLayout layout;
  for (std::uint32_t a = 0; a < clause.actions.size(); ++a) {
    const Action& action = clause.actions[a];
    if (!records_arguments(action.kind)) continue;
    for (std::uint32_t i = 0; i < action.arguments.size(); ++i) {
      ValueType type = action.arguments[i].result;
      if (action.kind == ActionKind::Tracemem) {
        type = {ValueKind::Bytes, false, static_cast<std::uint32_t>(action.argument)};
      }
      const std::uint32_t align = alignment(type);
      const std::uint32_t offset = (layout.size + align - 1) / align * align;
      const std::uint32_t size = stored_size(type, string_size);
      layout.fields.push_back({a, i, offset, size, type});
      layout.size = offset + size;
    }
  }
  layout.records =
      clause.actions.empty() || std::ranges::any_of(clause.actions, [](const Action& action) {
        return records_arguments(action.kind);
      });
  return layout;
}

}  // namespace ringside::dif
