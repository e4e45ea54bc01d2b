// Where a function's entry and return tracepoints stand (design: entry is the first instruction
// after the ftrace site; return is every ret and every jump that leaves the function, .cold parts
// included). Pure: text in, sites out.
// Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "disasm/decoder.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// One way out of a function.
struct ReturnSite {
  GuestVirt address;
  std::uint32_t offset = 0;       // from the function's start: arg0 of fbt's return
  bool has_value = false;         // a ret: arg1 is the return value (rax)
  std::uint8_t condition = 0xff;  // a jcc that leaves: fires only when condition_holds()
};

/// The first instruction after the ftrace nop (at +0, or +4 behind endbr64 or its sealed forms).
/// Error (Unsupported): the function has no ftrace site, or does not decode.
Result<GuestVirt> entry_site(const GuestReader& text, const guest_linux::Symbol& function);

/// All ways out; empty for a function that never returns. `symbols` tells jumps within the
/// function (and to and from its .cold part) from jumps that leave. The .cold part is included.
Result<std::vector<ReturnSite>> return_sites(const GuestReader& text,
                                             const guest_linux::SymbolTable& symbols,
                                             const guest_linux::Symbol& function);

}  // namespace ringside::providers
