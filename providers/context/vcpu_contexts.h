// The contexts of firings at no instruction of ours, one for each vCPU, used in its turn. The
// sampler and the vm provider have a set each. Fire context: operator[] and locate() yes.
#pragma once

#include <deque>
#include <optional>

#include "providers/context/linux_contexts.h"
#include "providers/context/vcpu_context.h"
#include "vmm/linux/online_cpus.h"

namespace ringside::providers {

/// The Linux in a machine, as far as firing contexts need it; both outlive whoever has it.
struct LinuxGuest {
  const guest_linux::Kernel& kernel;
  LinuxContexts& contexts;  // by vCPU
};

class VcpuContexts {
 public:
  /// One for each of `vcpus`; parameters as VcpuContext has them.
  VcpuContexts(const vmm::GuestMemory& memory, unsigned vcpus,
               const std::optional<LinuxGuest>& guest) {
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
  /// Whether Linux runs nothing on `cpu`, whose moment has begun, since it has taken it offline.
  /// Not where nobody knows.
  bool is_offline(std::uint32_t cpu) const {
    if (!online_) return false;
    const GuestReader& memory = contexts_[cpu].kernel();
    return online_->has(memory, cpu) == false && online_->has_any(memory);
  }

 private:
  std::optional<guest_linux::OnlineCpus> online_;
  std::deque<VcpuContext> contexts_;
};

}  // namespace ringside::providers
