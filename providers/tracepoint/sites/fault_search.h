// Instructions whose faults the kernel mends: it looks up the address of the fault in its exception
// table, and in a slot it would find none. So the function that looks it up has a tracepoint, too,
// whose slot turns the address in a slot into the instruction's own place (Shim::fault_search).
// That works without us, should we die, and the rest is the kernel's: a page that was not there is
// brought, and the instruction goes on in its slot, where it fires no second time. That tracepoint
// comes with the first instruction that may fault, and is the last one to be restored, once nobody
// is in a slot.
// Places (kernel/extable.c, arch/x86/mm/extable.c, since 5.17 with data in each entry):
//   search_exception_tables(address): for each vector, asked by fixup_exception() and by others
// Used by SiteExaminer and the tracepoint table.
#pragma once

#include "disasm/decoder.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// Where the kernel's search begins. Unsupported, with the reason, where a tracepoint there would
/// not reach all of it, or where entries do not tell how they mend.
Result<GuestVirt> find_fault_search(const GuestReader& text, const guest_linux::Kernel& kernel);

/// Whether a fault of the instruction in a slot is mended as it is in its place. `entry` is of the
/// exception table, and names the instruction.
bool mends_in_slot(const guest_linux::Kernel::PatchedSite& entry,
                   const disasm::Instruction& instruction);

}  // namespace ringside::providers
