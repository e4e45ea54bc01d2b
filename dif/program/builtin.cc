#include "dif/program/builtin.h"

#include <algorithm>

namespace ringside::dif {

namespace {

constexpr BuiltinInfo kBuiltins[] = {
#define DIF_BUILTIN(name, id, text, type, source) \
  {Builtin::name, text, BuiltinType::type, BuiltinSource::source},
#include "dif/program/builtin.def"
};

constexpr BuiltinArrayInfo kArrays[] = {
    {kArgsArray, "args"}, {kRegsArray, "regs"}, {kUregsArray, "uregs"}};

constexpr SubroutineInfo kSubroutineTable[] = {
// clang-format off
#define DIF_SUBROUTINE(name, id, text, result, least, most, a1, a2, a3, changes, call, why) \
  {Subroutine::name, text, BuiltinType::result, least, most,                               \
   {ArgumentKind::a1, ArgumentKind::a2, ArgumentKind::a3}, Changes::changes,               \
   std::string_view(why).empty() ? SubroutineStatus::Works : SubroutineStatus::Missing, why},
#include "dif/program/builtin.def"
    // clang-format on
};
constexpr bool ids_are_positions() {
  for (std::size_t i = 0; i < std::size(kSubroutineTable); ++i) {
    const auto id = static_cast<std::size_t>(kSubroutineTable[i].id);
    const bool published = i < kPublishedSubroutines;
    if (id != (published ? i : i - kPublishedSubroutines + kFirstPrivateSubroutine)) return false;
  }
  return true;
}
static_assert(ids_are_positions(), "subroutine_info() relies on it");

struct AbsentBuiltin {
  std::string_view name, reason;
};
constexpr AbsentBuiltin kAbsent[] = {
    {"jid", "numbers a FreeBSD jail, which Linux does not have"},
    {"jailname", "names a FreeBSD jail, which Linux does not have"},
    {"vmregs", "shows a hypervisor's registers of its guest; regs[] are the guest's already"},
    {"irql", "is an interrupt request level of Windows; Linux has ipl"},
    {"dispatchqaddr", "is a dispatch queue of macOS, which Linux does not have"},
    {"pthread_self", "is a Mach thread's; Linux has tid"},
    {"machtimestamp", "is the time base of Mach; Linux has timestamp"},
};

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

std::optional<BuiltinArrayInfo> find_builtin_array(std::string_view name) {
  return find_in(kArrays, [&](const BuiltinArrayInfo& row) { return row.name == name; });
}

std::optional<BuiltinArrayInfo> find_builtin_array(std::uint8_t id) {
  return find_in(kArrays, [&](const BuiltinArrayInfo& row) { return row.id == id; });
}

std::string_view absent_builtin(std::string_view name) {
  const auto found = find_in(kAbsent, [&](const AbsentBuiltin& row) { return row.name == name; });
  return found ? found->reason : std::string_view{};
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
  const auto id = static_cast<std::size_t>(which);
  return kSubroutineTable[id < kFirstPrivateSubroutine
                              ? id
                              : id - kFirstPrivateSubroutine + kPublishedSubroutines];
}

}  // namespace ringside::dif
