// Names for addresses in the guest's code: the interface that printers ask, and the text that they
// make of its answer. Used by everything that prints stacks, symbols and modules.
// Does not: know where names come from (the session's view of a program answers).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vmm/base/address.h"

namespace ringside::cli {

class CodeNames {
 public:
  virtual ~CodeNames() = default;
  /// Kernel code: "module`symbol+0x10", "module`0xffffffffc0001000" or "0xffffffff81000000".
  virtual std::string describe(GuestVirt address) const = 0;
  /// The same for code of a process; a number when nobody knows better.
  virtual std::string describe_user(std::uint64_t pid, GuestVirt address) const;
};

/// The parts of an address's description. Views of the text that was split.
struct CodeName {
  std::string_view module, symbol;  // empty: unknown
  std::uint64_t offset = 0;         // into the symbol
};
CodeName split_code_name(std::string_view description);

/// The description without "+0x10", as sym(), func() and usym() print it.
std::string_view without_offset(std::string_view description);
/// The module alone, as mod() and umod() print it; the whole description when there is none.
std::string_view module_of(std::string_view description);

}  // namespace ringside::cli
