// The options of one compilation, and the sources of D libraries that it may use. The session fills
// them from the command line, and the parser from `#pragma D option`.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::d {

/// A D library: parsed before the program, left out silently when what it depends on is not there.
struct LibrarySource {
  std::string name;  // "procfs.d", as `depends_on library` names it
  std::string text;
};

struct CompileOptions {
  std::string source_name;                     // for messages: "-n 'BEGIN...'" or a file name
  std::vector<std::string> macro_arguments;    // $0 is the script, $1...
  std::map<std::string, std::int64_t> macros;  // pid, target, uid, gid, ppid, ...
  bool target_differs = false;                 // $target is each machine's own, known to bind()
  bool default_arguments = false;              // -x defaultargs
  bool unused_arguments = false;               // -x argref: no D_MACRO_UNUSED
  bool allow_zero_matches = false;             // -Z
  bool allow_empty = false;                    // -x empty
  bool is_file = false;                        // -s: a description alone is no clause
  bool destructive = false;                    // -w
  std::uint32_t string_size = 256;
  std::vector<LibrarySource> libraries;                      // system libraries, then those of -L
  std::optional<dif::Attributes> attribute_minimum;          // -x amin: below it D_ATTR_MIN
  unsigned integer_registers = dif::kRegisters;              // -x iregs, including r0
  unsigned tuple_registers = dif::kTupleSlots;               // -x tregs
  std::uint32_t stack_frames = 20, user_stack_frames = 100;  // -x stackframes, ustackframes
  std::uint32_t java_stack_frames = 50;                      // -x jstackframes
  std::optional<std::array<unsigned, 3>> version;  // -x version=x.y.z: newer names are hidden
  bool list_desugared = false;                     // -d: fills Compiled::desugared
  /// Sets an option for `#pragma D option name=value`, as soon as it is read, and whatever of
  /// `options` depends on it. The error's message says why it cannot be. Null: nothing is set.
  std::function<Result<void>(std::string_view name, std::string_view value,
                             CompileOptions& options)>
      set_option;
  /// How -P -m -f -n -i place a bare description: the name's position when fields are missing.
  enum class Specifier { Name, Function, Module, Provider } specifier = Specifier::Name;
};

}  // namespace ringside::d
