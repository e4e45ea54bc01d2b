// The Linux contexts of a machine's vCPUs, one for each. A firing on a vCPU (a trap, a sample or an
// event) uses that vCPU's context while it holds the vCPU's turn (dif/engine/engine.h). So no
// context is used by two firings at once. Fire context: operator[] yes; everything else no.
#pragma once

#include <deque>

#include "providers/context/linux_context.h"

namespace ringside::providers {

class LinuxContexts {
 public:
  /// The parts of each LinuxContext; they share their RunTimes.
  LinuxContexts(unsigned vcpus, vmm::GuestMemory& memory, const guest_linux::Kernel& kernel,
                const LinuxContextParts& parts = {}) {
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
      contexts_.emplace_back(memory, kernel, run_times_, parts);
    }
  }

  LinuxContext& operator[](std::uint32_t vcpu) { return contexts_[vcpu]; }
  unsigned size() const { return static_cast<unsigned>(contexts_.size()); }
  auto begin() { return contexts_.begin(); }
  auto end() { return contexts_.end(); }

 private:
  RunTimes run_times_;
  std::deque<LinuxContext> contexts_;
};

}  // namespace ringside::providers
