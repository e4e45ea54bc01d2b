// Finds out which of Linux's CPUs a vCPU is, from its registers: which GS base has the per-cpu base
// depends on swapgs, not only on the mode. Used wherever the host looks at a vCPU that did not trap
// into the shim. The registers are the guest's, so they are hostile. Fire context: yes.
#pragma once

#include <cstdint>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

struct CpuPlace {
  std::uint32_t cpu = 0;     // below `vcpus`
  GuestVirt percpu_base{0};  // 0: nobody knows; the kernel has not set it up yet
};

/// If neither GS base is a CPU's per-cpu base, the CPU is the one with the vCPU's index.
inline CpuPlace locate_cpu(const guest_linux::Kernel& kernel, const Registers& registers,
                           unsigned vcpu, unsigned vcpus) {
  for (const arch::Register which : arch::kPerCpuBases) {
    const GuestVirt base(registers.*which);
    const auto cpu = kernel.cpu_of(base);
    if (cpu && *cpu < vcpus) return {*cpu, base};
  }
  const auto bases = kernel.percpu_bases();
  return {vcpu, GuestVirt(vcpu < bases.size() ? bases[vcpu] : 0)};
}

}  // namespace ringside::providers
