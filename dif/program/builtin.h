// Built-in variables and subroutines by name and by number: what the compiler needs to emit them,
// the verifier to check them, and the listing to name them. builtin_variables.cc and the classes of
// subroutines.h implement them. The table is builtin.def.
//
// Calls: arguments are pushed in order with pushtr (strings: TupleType::String) or pushtv
// (integers and pointers), then `call id, rd`, which empties the tuple stack.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dif/program/action_kind.h"

namespace ringside::dif {

/// Array built-ins, for ldga. args[n] has the type that the probe says; arg0..arg9 are Builtin.
/// regs[] are the registers at the probe, uregs[] those of the process; both are indexed as
/// the guest's architecture numbers them for D (R_RAX and others of its library) and hold uint64_t.
inline constexpr std::uint8_t kArgsArray = 0x00, kRegsArray = 0x01, kUregsArray = 0x02;
inline constexpr unsigned kMaxProbeArguments = 10;

/// Scalar built-ins, for ldgs.
enum class Builtin : std::uint16_t {
#define DIF_BUILTIN(name, id, text, type, source) name = id,
#include "dif/program/builtin.def"
};

enum class Subroutine : std::uint16_t {
#define DIF_SUBROUTINE(name, id, text, result, least, most, a1, a2, a3, changes, call, reason) \
  name = id,
#include "dif/program/builtin.def"
};
/// From here on the numbers are ours.
inline constexpr std::uint16_t kFirstPrivateSubroutine = 0x80;
inline constexpr std::size_t kPublishedSubroutines = 49;  // 0..48, without gaps

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

/// Where a variable's value comes from, which decides when it can be evaluated.
enum class BuiltinSource : std::uint8_t {
  Moment,  // what a trap's record holds, or nothing of the guest: later, too
  Words,   // words of the guest's memory that are known beforehand: later, where they are recorded
  Guest,   // the guest's memory and state: only while the vCPU stands still
};

enum class ArgumentKind : std::uint8_t {
  None,
  Integer,
  Pointer,  // what it points at, or an object itself, a string as well
  Address,  // of the guest's memory: a pointer or a number, no string
  Place,    // a pointer to what is written
  String,
};
enum class SubroutineStatus : std::uint8_t { Works, Missing };

struct BuiltinInfo {
  Builtin id;
  std::string_view name;
  BuiltinType type;
  BuiltinSource source;
};

struct SubroutineInfo {
  Subroutine id;
  std::string_view name;
  BuiltinType result;
  std::uint8_t least, most;  // how many arguments
  std::array<ArgumentKind, 3> arguments;
  Changes changes;  // Nothing or Guest, which is destructive
  SubroutineStatus status;
  /// Missing: why, as what follows "NAME() " in a message.
  std::string_view reason;
};

/// args, regs, uregs: arrays that ldga reads. The contents of args depend on the probe, the
/// elements of the others are uint64_t.
struct BuiltinArrayInfo {
  std::uint8_t id;
  std::string_view name;
};
std::optional<BuiltinArrayInfo> find_builtin_array(std::string_view name);
std::optional<BuiltinArrayInfo> find_builtin_array(std::uint8_t id);

std::optional<BuiltinInfo> find_builtin(std::string_view name);
/// The reason why a variable of another system's dtrace does not exist here, worded to follow its
/// name in a message; empty for any other name.
std::string_view absent_builtin(std::string_view name);
std::optional<BuiltinInfo> find_builtin(std::uint16_t id);
std::optional<SubroutineInfo> find_subroutine(std::string_view name);
std::optional<SubroutineInfo> find_subroutine(std::uint16_t id);
const SubroutineInfo& subroutine_info(Subroutine which);

}  // namespace ringside::dif
