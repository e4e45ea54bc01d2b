// Notices where a kernel that unpacks and moves itself has gone (KASLR): the decompressor tells
// nobody. Its first write to a model-specific register at its own addresses (GS_BASE or EFER, at
// the end of arch/x86/kernel/head_64.S, before any C runs there) finds the vCPU at its new place;
// the kernel's banner and first page of text, looked for through that vCPU's page tables, say
// which. Used where a machine is held before it begins. Needs a host that can tell writes of MSRs.
// Does not: hold the machine at its start, or wait (there is a descriptor to poll).
// Threads: watch(), take() and the end on one thread; the ExitSink's calls on vCPUs'.
// Fire context: no.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "vmm/base/unique_fd.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/linux/file_kernel.h"
#include "vmm/kernel_file/elf_file.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/vcpu_exits.h"

namespace ringside::guest_linux {

/// Where the kernel of a file runs, by a page table that maps it; empty when it is nowhere.
/// `payload` is what KernelFile::elf() gives.
std::optional<KernelMove> find_move(std::span<const std::byte> payload,
                                    const vmm::GuestMemory& memory, const vmm::PageTable& table);

class KernelArrival final : public vmm::ExitSink {
 public:
  /// Listens to a machine with exits() that has not begun. Nobody else may until take() or the end.
  static Result<std::unique_ptr<KernelArrival>> watch(vmm::Machine& machine);
  ~KernelArrival() override;
  KernelArrival(const KernelArrival&) = delete;
  KernelArrival& operator=(const KernelArrival&) = delete;

  /// Readable once the kernel has arrived.
  int fd() const { return event_.get(); }

  struct Arrived {
    KernelMove move;
    vmm::PausedMachine paused;  // the kernel stands where it has arrived while this lives
  };
  /// When fd() is readable; ends the listening. NotFound, with the way out, when what has arrived
  /// is not the kernel of `file`.
  Result<Arrived> take(const vmm::KernelFile& file);

  void on_doorbell(vmm::StoppedVcpu&, std::uint32_t) override {}
  void on_breakpoint(vmm::StoppedVcpu&, GuestVirt) override {}
  void on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) override;

 private:
  KernelArrival(vmm::Machine& machine, UniqueFd event)
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
