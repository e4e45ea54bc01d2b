// Changes the machine's breakpoints for a vCPU's thread, which may not pause the machine itself. A
// separate thread pauses the machine and changes them, while the vCPU waits outside the guest. Used
// by the boot tracer. Threads: set() on one vCPU's thread at a time. Fire context: no.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "vmm/machine.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

class BreakpointSetter {
 public:
  /// `machine` and its `exits` must outlive it. `loaded_at` as VcpuExits::set_breakpoints takes it.
  BreakpointSetter(vmm::Machine& machine, vmm::VcpuExits& exits,
                   vmm::VcpuExits::LoadedAt loaded_at);
  /// Whoever waits in set() is answered.
  ~BreakpointSetter();
  BreakpointSetter(const BreakpointSetter&) = delete;
  BreakpointSetter& operator=(const BreakpointSetter&) = delete;

  /// VcpuExits::set_breakpoints in a pause.
  Result<void> set(std::vector<GuestVirt> addresses);

 private:
  void body();
  Result<void> set_paused(const std::vector<GuestVirt>& addresses);

  vmm::Machine& machine_;
  vmm::VcpuExits& exits_;
  const vmm::VcpuExits::LoadedAt loaded_at_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::vector<GuestVirt>> request_;
  std::optional<Result<void>> answer_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace ringside::providers
