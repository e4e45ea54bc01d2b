// The contexts of firings without a trap (vcpu_context.h), one for each vCPU, used in its turn. The
// sampler and the vm provider each have their own set. Fire context: operator[] and locate() yes.
#pragma once

#include <deque>
#include <optional>

#include "providers/context/linux_contexts.h"
#include "providers/context/vcpu_context.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/online_cpus.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

/// The Linux in a machine, as far as firing contexts need it. Both must outlive the LinuxGuest.
struct LinuxGuest {
  const guest_linux::Kernel& kernel;
  LinuxContexts& contexts;  // by vCPU
};

class VcpuContexts {
 public:
  /// One for each of `vcpus`; parameters as VcpuContext has them.
  VcpuContexts(const vmm::GuestMemory& memory, unsigned vcpus,
               const std::optional<LinuxGuest>& guest)
      : memory_(memory), kernel_(guest ? &guest->kernel : nullptr) {
    if (guest) online_.emplace(guest->kernel);
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
      std::optional<LinuxVcpu> inside;
      if (guest) inside.emplace(LinuxVcpu{guest->kernel, guest->contexts[vcpu]});
      contexts_.emplace_back(memory, vcpus, inside);
    }
  }

  VcpuContext& operator[](std::uint32_t vcpu) { return contexts_[vcpu]; }
  unsigned size() const { return static_cast<unsigned>(contexts_.size()); }
  /// Which CPU the guest calls this vCPU; below size().
  CpuPlace locate(const Registers& registers, unsigned vcpu) const {
    return contexts_[vcpu].locate(registers, vcpu);
  }
  /// Whether Linux does not use the vCPU that has these registers and that Linux calls `cpu`: it
  /// took the CPU offline, or has not started it since it was plugged in. False if that is not
  /// known.
  bool is_offline(std::uint32_t cpu, const Registers& registers) const {
    if (kernel_ == nullptr) return false;
    // Not by the vCPU's own page tables: one that waits for its start has none.
    const vmm::PageTableReader reader(memory_, kernel_->table());
    if (!online_->has_any(reader)) return false;  // it boots, or has no such mask
    return !arch::pages(registers) || online_->has(reader, cpu) == false;
  }

 private:
  const vmm::GuestMemory& memory_;
  const guest_linux::Kernel* const kernel_;
  std::optional<guest_linux::OnlineCpus> online_;
  std::deque<VcpuContext> contexts_;
};

}  // namespace ringside::providers
