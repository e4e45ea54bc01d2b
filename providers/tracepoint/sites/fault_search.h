// Some instructions may fault, and the kernel handles the fault by looking up its address in the
// exception table. The address of a slot is not in that table. So the function that searches the
// table has a tracepoint of ours. Its slot turns an address in a slot into the instruction's own
// address (Shim::fault_search). That runs in the guest alone, so it works even if we die. The rest
// is the kernel's: it brings the missing page, and the instruction runs on in its slot without a
// second firing. This tracepoint is made with the first probe on an instruction that may fault. It
// is restored last, once nobody is in a slot.
// Places (kernel/extable.c, arch/x86/mm/extable.c, since 5.17 with data in each entry):
//   search_exception_tables(address): for each vector, asked by fixup_exception() and by others
// Used by SiteExaminer and the tracepoint table.
#pragma once

#include "disasm/decoder.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// The place where the kernel's search begins. Unsupported, with the reason, if a tracepoint there
/// would miss some searches, or if the table's entries do not tell how they handle a fault.
Result<GuestVirt> find_fault_search(const GuestReader& text, const guest_linux::Kernel& kernel);

/// Whether a fault of the instruction in a slot is mended as it is in its place. `entry` is of the
/// exception table, and names the instruction.
bool mends_in_slot(const guest_linux::Kernel::PatchedSite& entry,
                   const disasm::Instruction& instruction);

}  // namespace ringside::providers
