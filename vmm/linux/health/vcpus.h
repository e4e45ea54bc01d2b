// The state of a guest's vCPUs: where each one is, whether its interrupts are on, which of Linux's
// CPUs it is, and the task that it runs, with its stack. Source: struct rq (kernel/sched/sched.h);
// the Intel SDM for the state after reset.
// Used by examine(), in a pause.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vmm/linux/health/tasks.h"
#include "vmm/machine.h"

namespace ringside::guest_linux {

/// By its registers alone; `view` is null without a Linux.
VcpuReport describe_vcpu(unsigned vcpu, const Registers& registers, const KernelView* view);

struct VcpuRegisters {
  std::map<unsigned, Registers> known;  // by vCPU
  std::vector<std::string> unknown;     // why another's are not, a line each
};
VcpuRegisters read_registers(vmm::PausedMachine& machine);

/// Every CPU that is online or that a vCPU is; fills the CPU of each of `vcpus` as well.
std::vector<CpuReport> describe_cpus(const KernelView& view, const Tasks& tasks,
                                     const VcpuRegisters& registers,
                                     std::vector<VcpuReport>& vcpus);

}  // namespace ringside::guest_linux
