// The contexts of firings without a trap (vcpu_context.h), one for each vCPU, used in its turn. The
// sampler and the vm provider each have their own set. Fire context: operator[] and locate() yes.
#pragma once

#include <deque>
#include <optional>

#include "providers/context/linux_contexts.h"
#include "providers/context/vcpu_context.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/online_cpus.h"

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
               const std::optional<LinuxGuest>& guest) {
    if (guest) online_.emplace(guest->kernel, memory);
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
    return online_ && online_->is_offline(cpu, registers);
  }

 private:
  std::optional<guest_linux::OnlineCpusInRam> online_;
  std::deque<VcpuContext> contexts_;
};

}  // namespace ringside::providers
