// Lists the instructions of a function, in order: what the provider `instr` publishes. Only
// functions with an ftrace site and their .cold parts are listed: a compiler made those, so their
// text has only instructions. Padding (int3 after code that does not go on, nops at the end) is
// left out.
// Pure: text in, instructions out. Does not: say where a probe may stand (site_examiner.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "disasm/decoder.h"
#include "providers/trap_points/sites/function_sites.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

struct InstructionList {
  /// Their addresses ascend. The ftrace site is one of five bytes that does nothing, whatever
  /// stands there now. A jump to a return thunk is a Ret, and a branch to an indirect thunk is a
  /// branch by that thunk's register.
  std::vector<disasm::Operation> instructions;
  std::optional<FtraceSite> ftrace;  // none in a .cold part
  std::string trouble;               // why the list ends before the function; else empty
};

/// Error (Unsupported): the function has no ftrace site, or no known size.
Result<InstructionList> list_instructions(const GuestReader& text,
                                          const guest_linux::SymbolTable& symbols,
                                          const guest_linux::Symbol& function);

/// Whether an instruction begins at `at`, where one that does something was decoded: then it is in
/// the list, which this does not make. Errors as above.
Result<bool> has_instruction(const GuestReader& text, const guest_linux::SymbolTable& symbols,
                             const guest_linux::Symbol& function, GuestVirt at);

}  // namespace ringside::providers
