#include "dif/program/action_kind.h"

#include <algorithm>

namespace ringside::dif {
namespace {

constexpr ActionInfo kActions[] = {
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  {ActionKind::kind, number, text, least, most, Changes::changes, RecordedData::records},
#define DIF_ACTION_FORM(kind, number, changes, records, verify, fire, show) \
  {ActionKind::kind, number, "", 0, 0, Changes::changes, RecordedData::records},
#include "dif/program/actions.def"
};

constexpr AggregatingInfo kAggregating[] = {
#define DIF_AGGREGATING(function, number, text, least, most, result) \
  {AggregateFunction::function, text, least, most, AggregatingInfo::Result::result},
#include "dif/program/actions.def"
};

struct NamedPrototype {
  std::string_view name;
  Prototype prototype;
};
constexpr NamedPrototype kPrototypes[] = {
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  {text, {least, most}},
#define DIF_CODE_ACTION(number, text, least, most, value, bytes) {text, {least, most}},
#include "dif/program/actions.def"
};

}  // namespace

const ActionInfo& action_info(ActionKind kind) {
  return kActions[static_cast<std::size_t>(kind)];
}

bool is_order(ActionKind kind) {
  switch (kind) {
    case ActionKind::Exit:
    case ActionKind::Printa:
    case ActionKind::System:
    case ActionKind::Freopen: return true;
    case ActionKind::Pcap: return false;  // DTrace has it, but under a number that is taken
    case ActionKind::TellThread: return false;
    // Numbers of ours are those of actions that DTrace's library does by itself.
    default: return action_info(kind).number >= kFirstPrivateAction && records_data(kind);
  }
}

std::optional<ActionKind> find_action(std::uint16_t number) {
  const auto* const row = std::ranges::find(kActions, number, &ActionInfo::number);
  return row == std::end(kActions) ? std::nullopt : std::optional(row->kind);
}

const AggregatingInfo& aggregating_info(AggregateFunction function) {
  return kAggregating[static_cast<std::size_t>(function)];
}

std::optional<AggregatingInfo> find_aggregating(std::string_view name) {
  const auto* const row = std::ranges::find(kAggregating, name, &AggregatingInfo::name);
  return row == std::end(kAggregating) ? std::nullopt : std::optional(*row);
}

std::optional<Prototype> action_prototype(std::string_view name) {
  const auto* const row = std::ranges::find(kPrototypes, name, &NamedPrototype::name);
  return row == std::end(kPrototypes) ? std::nullopt : std::optional(row->prototype);
}

}  // namespace ringside::dif
