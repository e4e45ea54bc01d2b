// Built-in variables and subroutines by name and by number: what the compiler needs to type and
// emit them, the verifier to check them and the listing to name them. Their work is done in
// builtin_variables.cc and subroutines.cc. The table is builtin.def.
//
// Calls: arguments are pushed in order with pushtr (strings: TupleType::String) or pushtv
// (integers and pointers), then `call id, rd`, which empties the tuple stack.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ringside::dif {

/// Array built-ins, for ldga. args[n] has the type that the probe says; arg0..arg9 are Builtin.
inline constexpr std::uint8_t kArgsArray = 0x00;
inline constexpr unsigned kMaxProbeArguments = 10;

/// Scalar built-ins, for ldgs.
enum class Builtin : std::uint16_t {
#define DIF_BUILTIN(name, id, text, type) name = id,
#include "dif/builtin.def"
};

enum class Subroutine : std::uint16_t {
#define DIF_SUBROUTINE(name, id, text, result, least, most, a1, a2, a3, status) name = id,
#include "dif/builtin.def"
};
inline constexpr std::size_t kSubroutines = 49;

enum class BuiltinType : std::uint8_t {
  Void,
  Signed32,
  Signed64,
  Unsigned16,
  Unsigned32,
  Unsigned64,
  Pointer,  // an address in guest kernel memory, or in D's scratch where a subroutine made it
  String,
};

enum class ArgumentKind : std::uint8_t { None, Integer, Pointer, String };
enum class SubroutineStatus : std::uint8_t { Works, Missing };

struct BuiltinInfo {
  Builtin id;
  std::string_view name;
  BuiltinType type;
};

struct SubroutineInfo {
  Subroutine id;
  std::string_view name;
  BuiltinType result;
  std::uint8_t least, most;  // how many arguments
  std::array<ArgumentKind, 3> arguments;
  SubroutineStatus status;
};

std::optional<BuiltinInfo> find_builtin(std::string_view name);
std::optional<BuiltinInfo> find_builtin(std::uint16_t id);
std::optional<SubroutineInfo> find_subroutine(std::string_view name);
std::optional<SubroutineInfo> find_subroutine(std::uint16_t id);
const SubroutineInfo& subroutine_info(Subroutine which);

}  // namespace ringside::dif
