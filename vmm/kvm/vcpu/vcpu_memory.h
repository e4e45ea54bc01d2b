// Guest memory as one vCPU sees it: through its page tables, or one to one where it does not page.
// Used by the classes that handle exits. Threads: any while the vCPU is out of KVM_RUN.
// Fire context: yes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/guest_memory.h"
#include "vmm/kvm/api/kvm_vcpu.h"

namespace ringside::vmm::kvm {

class VcpuMemory {
 public:
  /// Both must outlive it.
  VcpuMemory(GuestMemory& ram, const VcpuCalls& kvm) : ram_(ram), kvm_(kvm) {}

  GuestMemory& ram() const { return ram_; }
  /// `registers`: of this vCPU; they say whether it pages and by which table. Empty where nothing
  /// is mapped. 32-bit page tables are walked by KVM, by those that the vCPU has now.
  std::optional<GuestPhys> locate(const Registers& registers, GuestVirt at) const;
  /// Fills `code` from `at` on, our breakpoints' bytes included, up to the first page that is not
  /// there; returns how many bytes it filled.
  std::size_t read_code(const Registers& registers, GuestVirt at, std::span<std::byte> code) const;

 private:
  GuestMemory& ram_;
  const VcpuCalls& kvm_;
};

/// The stack for an instruction that we execute instead of the vCPU. Takes only words that cross no
/// page, and none of user mode: a page there may be one that a write must first copy.
class VcpuStack {
 public:
  /// Both must outlive it.
  VcpuStack(const VcpuMemory& memory, const Registers& registers)
      : memory_(memory), registers_(registers) {}

  /// Both fail where the instruction would fault.
  std::optional<std::uint64_t> load(GuestVirt at);
  bool store(GuestVirt at, std::uint64_t value);

 private:
  std::optional<GuestPhys> locate_word(GuestVirt at) const;

  const VcpuMemory& memory_;
  const Registers& registers_;
};

}  // namespace ringside::vmm::kvm
