// Finds the guest's own place of a vCPU that was stopped inside the shim, so that a sample names
// the guest's code and not ours. Fire context: yes.
#pragma once

#include <optional>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/shim/mailboxes.h"

namespace ringside::providers {

/// The registers that a vCPU had at the trap point through which it came into the shim's region.
/// `now` has its registers there, while it does not wait for an answer. It may be in a displaced
/// instruction or in a jump's record. Or it is on the shim's way to the mailbox or back, with the
/// frame of its exception, or of the record's call, on the stack; then rax, rcx, rdx and rbx may be
/// the shim's. Empty: memory does not show it.
std::optional<Registers> before_shim(const Registers& now, const vmm::Mailboxes& shim,
                                     const GuestReader& kernel);

}  // namespace ringside::providers
