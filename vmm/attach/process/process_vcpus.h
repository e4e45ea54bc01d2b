// The vCPUs of a process that runs its guest by KVM, stopped and read without the process's help.
// Their threads are stopped by ptrace, which makes KVM_RUN return -EINTR, as any signal does.
// Registers: if kvm_valid_regs asks for it, KVM stores them whenever KVM_RUN returns, in the page
// that it shares with the process (struct kvm_run of linux/kvm.h). That page is ordinary memory of
// the process. So a pause sets kvm_valid_regs from outside, and restores it afterwards. A thread
// that was not in KVM_RUN when it stopped has no registers to show. Nobody tells us of a vCPU that
// is plugged in or out: a pause looks at the threads that the process has. One that is unplugged is
// gone from the next pause on, and those after it move up. Code is written directly to memory: a
// real processor sees such writes.
// Threads: every function from any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/attach/process/thread_stopper.h"
#include "vmm/attach/process/vcpu_threads.h"
#include "vmm/code_writer.h"
#include "vmm/copied_bytes.h"
#include "vmm/guest_memory.h"
#include "vmm/machine.h"

namespace ringside::vmm {

/// Finds the GS base that `swapgs` would load (kernel_gs_base) of a vCPU. KVM does not show it:
/// KVM_SYNC_X86_REGS and KVM_SYNC_X86_SREGS do not store it. A vCPU in user mode has the base with
/// which it left the kernel.
class KernelGs {
 public:
  /// Fills kernel_gs_base in, where the vCPU of this number has been seen in the kernel. In the
  /// kernel itself it is the program's, and 0 says that nobody knows.
  void complete(unsigned vcpu, Registers& registers) {
    if (registers.in_user_mode()) {
      registers.kernel_gs_base = last_[vcpu];
    } else if (arch::in_kernel_half(GuestVirt(registers.gs_base))) {
      // Before its swapgs it has the program's.
      last_[vcpu] = registers.gs_base;
    }
  }

 private:
  std::map<unsigned, std::uint64_t> last_;  // 0: never seen there
};

class ProcessVcpus final : public Vcpus, public CodeWriter {
 public:
  /// Finds the threads. `process_memory`: offsets are the process's addresses; `guest` is what code
  /// is written to and lives as long as this.
  static Result<std::unique_ptr<ProcessVcpus>> open(const HostProcess& process,
                                                    std::shared_ptr<CopiedBytes> process_memory,
                                                    GuestMemory& guest);
  ~ProcessVcpus() override;

  unsigned count() const override { return count_.load(std::memory_order_acquire); }

 private:
  ProcessVcpus(HostProcess process, std::shared_ptr<CopiedBytes> memory, GuestMemory& guest)
      : process_(std::move(process)), memory_(std::move(memory)), guest_(&guest) {}

  Result<void> pause() override;
  Result<void> resume() override;
  Result<Registers> registers(unsigned vcpu) override;
  Result<void> write(std::span<const CodeWrite> writes) override;
  bool is_needed() const override { return false; }

  Result<void> stop_all();
  Result<void> stop_threads();
  Result<void> find_plugged();
  void ask_for_registers();
  void cancel_stop_requests();
  /// The registers that KVM stored for a stopped thread; empty if there are none.
  std::optional<Registers> stored_registers(std::size_t vcpu);
  bool all_show_registers();

  HostProcess process_;
  std::shared_ptr<CopiedBytes> memory_;
  GuestMemory* guest_;
  std::mutex mutex_;
  ThreadStopper stopper_;
  std::vector<VcpuThread> threads_;
  KernelGs kernel_gs_;
  std::vector<pid_t> tasks_;  // threads of the process when its vCPUs were last looked for
  unsigned looks_left_ = 0;   // that follow a change of those
  std::chrono::steady_clock::time_point next_look_;
  std::atomic<unsigned> count_{0};
  std::vector<std::uint64_t> asked_;  // the bits that we added to each one's kvm_valid_regs
  unsigned pauses_ = 0;
};

}  // namespace ringside::vmm
