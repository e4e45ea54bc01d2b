// Executes the instruction under a breakpoint on a vCPU's registers, if it is one of the few that
// most functions begin with. For any other the caller single-steps the vCPU while the others are
// held, which costs a hundred times as much. Pure over the registers and the stack. 64-bit mode
// only. Intel SDM volume 2 for the encodings, volume 1, 3.4.3.1 for the flags.
// Fire context: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/kvm/vcpu/vcpu_memory.h"

namespace ringside::vmm::kvm {

enum class Emulated : std::uint8_t {
  Done,       // `registers` are those after it
  Halts,      // it was hlt: rip is after it, the vCPU has to wait for an interrupt
  NotSimple,  // nothing has changed
};

/// `code`: the instruction's bytes and what follows, as far as they could be read. Changes
/// `registers` and the stack as the instruction does.
Emulated emulate(std::span<const std::byte> code, Registers& registers, VcpuStack& stack);

}  // namespace ringside::vmm::kvm
