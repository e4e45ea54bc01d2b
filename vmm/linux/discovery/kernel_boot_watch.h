// Finds the place that a kernel which unpacks and moves itself has moved to (KASLR); the
// decompressor tells nobody. The kernel's first write to a model-specific register at its own
// addresses (GS_BASE or EFER, at the end of arch/x86/kernel/head_64.S, before any C runs there)
// shows that it is at its new place. Its banner and its first page of text, searched for through
// that vCPU's page tables, tell the place. Used where a machine is held before it begins. Needs a
// host that tells writes of MSRs as events. Does not: hold the machine at its start, or wait (there
// is a descriptor to poll). Threads: watch(), take() and the destructor on one thread; the
// ExitSink's calls on vCPUs'.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "vmm/base/unique_fd.h"
#include "vmm/kernel_file/elf_file.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/vcpu_exits.h"

namespace ringside::guest_linux {

/// How far the kernel of a file has moved, by a page table that maps it; empty when it is not
/// there. `payload`: the result of KernelFile::elf().
std::optional<KaslrOffset> find_kaslr_offset(std::span<const std::byte> payload,
                                             const vmm::GuestMemory& memory,
                                             const vmm::PageTable& table);

class KernelBootWatch final : public vmm::ExitSink {
 public:
  /// Becomes the sink of a machine with exits() that has not begun; it is until take() or its end.
  /// `machine` must outlive it. Unsupported where the host does not tell writes of MSRs.
  static Result<std::unique_ptr<KernelBootWatch>> watch(vmm::Machine& machine);
  ~KernelBootWatch() override;
  KernelBootWatch(const KernelBootWatch&) = delete;
  KernelBootWatch& operator=(const KernelBootWatch&) = delete;

  /// Readable once the kernel has arrived; stays this object's.
  int fd() const { return event_.get(); }

  struct BootedKernel {
    KaslrOffset move;
    vmm::PausedMachine paused;  // while it lives, the kernel stands where it arrived
  };
  /// Call it when fd() is readable. Ends the listening. NotFound, with the way out, when the kernel
  /// that arrived is not that of `file`.
  Result<BootedKernel> take(const vmm::KernelFile& file);

  void on_doorbell(vmm::StoppedVcpu&, std::uint32_t) override {}
  void on_breakpoint(vmm::StoppedVcpu&, GuestVirt) override {}
  void on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) override;

 private:
  KernelBootWatch(vmm::Machine& machine, UniqueFd event)
      : machine_(machine), event_(std::move(event)) {}
  Result<void> listen();
  void let_go();
  Result<vmm::PausedMachine> stop_listening();

  vmm::Machine& machine_;
  const UniqueFd event_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<vmm::PageTable> table_;  // of the vCPU that arrived
  bool over_ = false;                    // nobody waits any more
  bool listening_ = false;
};

}  // namespace ringside::guest_linux
