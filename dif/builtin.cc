#include "dif/builtin.h"

#include <algorithm>

namespace ringside::dif {

namespace {

constexpr BuiltinInfo kBuiltins[] = {
#define DIF_BUILTIN(name, id, text, type) {Builtin::name, text, BuiltinType::type},
#include "dif/builtin.def"
};

constexpr SubroutineInfo kSubroutineTable[] = {
#define DIF_SUBROUTINE(name, id, text, result, least, most, a1, a2, a3, status) \
  {Subroutine::name,                                                            \
   text,                                                                        \
   BuiltinType::result,                                                         \
   least,                                                                       \
   most,                                                                        \
   {ArgumentKind::a1, ArgumentKind::a2, ArgumentKind::a3},                      \
   SubroutineStatus::status},
#include "dif/builtin.def"
};
static_assert(std::size(kSubroutineTable) == kSubroutines, "ids are the table's positions");

template <class Table, class Match>
auto find_in(const Table& table, Match match) {
  const auto at = std::find_if(std::begin(table), std::end(table), match);
  return at == std::end(table) ? std::nullopt : std::optional(*at);
}

}  // namespace

std::optional<BuiltinInfo> find_builtin(std::string_view name) {
  return find_in(kBuiltins, [&](const BuiltinInfo& row) { return row.name == name; });
}

std::optional<BuiltinInfo> find_builtin(std::uint16_t id) {
  return find_in(kBuiltins,
                 [&](const BuiltinInfo& row) { return static_cast<std::uint16_t>(row.id) == id; });
}

std::optional<SubroutineInfo> find_subroutine(std::string_view name) {
  return find_in(kSubroutineTable, [&](const SubroutineInfo& row) { return row.name == name; });
}

std::optional<SubroutineInfo> find_subroutine(std::uint16_t id) {
  return find_in(kSubroutineTable, [&](const SubroutineInfo& row) {
    return static_cast<std::uint16_t>(row.id) == id;
  });
}

const SubroutineInfo& subroutine_info(Subroutine which) {
  return kSubroutineTable[static_cast<std::size_t>(which)];
}

}  // namespace ringside::dif
