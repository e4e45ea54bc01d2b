// Where a vCPU really is that was stopped inside the shim: a sample names the guest's own code, not
// ours. Fire context: yes.
#pragma once

#include <optional>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

/// The registers at the tracepoint that brought a vCPU into the shim's region, where `now` it is,
/// without waiting there: in a displaced instruction or a jump's record, or on the shim's way to
/// the mailbox or back, with the frame of its exception, or the record's call, on the stack (then
/// rax, rcx, rdx and rbx may be the shim's). Empty: memory does not show it.
std::optional<Registers> before_shim(const Registers& now, const vmm::Shim& shim,
                                     const GuestReader& kernel);

}  // namespace ringside::providers
