// The kernel's half of a guest's memory: its image, which is physically contiguous, and the page
// table that maps everything else. It is made from a VMCOREINFO, which a guest's user may have
// forged: the page table must map the image where the text says, and the kernel's own release
// string must be readable through it. The page table is always init_top_pgt: the guest may free one
// that a CPU's CR3 names at any time.
// Used by Kernel.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/linux/vmcoreinfo.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

/// The most bytes that are copied out of a guest at once.
inline constexpr std::uint64_t kMaxCopy = 128 << 20;

class KernelMemory {
 public:
  /// Empty when `info` does not describe the memory that it was found in.
  static std::optional<KernelMemory> bind(const vmm::GuestMemory& memory, VmcoreInfo info);

  const VmcoreInfo& info() const { return info_; }
  const vmm::PageTable& table() const { return table_; }
  /// The kernel that crashed and started this one as its crash kernel (kdump), if there is one: its
  /// memory is as it left it. By its own word, which a guest may have forged.
  const std::shared_ptr<const KernelMemory>& crashed() const { return crashed_; }
  void set_crashed(KernelMemory memory) {
    crashed_ = std::make_shared<const KernelMemory>(std::move(memory));
  }
  /// A reader of kernel virtual memory through the page table.
  vmm::PageTableReader reader() const { return {*memory_, table_}; }

  /// The physical address of a place in the kernel's image, by `info`, without a page walk; empty
  /// for any other address.
  static std::optional<GuestPhys> image_address(const VmcoreInfo& info, GuestVirt at);
  /// A copy of [from, from + size) of the kernel's image, in one piece, without page walks.
  Result<std::vector<std::byte>> copy_image(GuestVirt from, std::uint64_t size) const;
  /// The whole image from _stext on, as far as it is mapped and at most kMaxCopy; pages that are
  /// missing in between (freed init memory) are zero.
  std::vector<std::byte> copy_whole_image() const;

 private:
  KernelMemory(const vmm::GuestMemory& memory, VmcoreInfo info)
      : memory_(&memory), info_(std::move(info)) {}

  std::optional<GuestPhys> image_address(GuestVirt at) const { return image_address(info_, at); }
  bool is_consistent() const;

  const vmm::GuestMemory* memory_;
  VmcoreInfo info_;
  vmm::PageTable table_;
  std::shared_ptr<const KernelMemory> crashed_;
};

/// Whether a vCPU with these registers is on page tables that share the image mapping of `table`.
bool runs_on(const vmm::GuestMemory& memory, const Registers& registers,
             const vmm::PageTable& table);

/// Finds the running kernel's memory. If several descriptions are consistent (a guest's user can
/// forge page tables, too), only those count whose kernel half a vCPU's CR3 shares. If there is a
/// crashed kernel and its crash kernel, and both have vCPUs, the crash kernel is the one that runs.
/// NotFound when there is none yet; Invalid when several remain.
Result<KernelMemory> find_kernel_memory(vmm::Machine& machine);

/// The error Unsupported for a kernel that ringside cannot see into. `what`: a verb phrase, "has
/// no symbol table". `option`: the option of a kernel's configuration that gives it.
Error lacks(const KernelMemory& memory, std::string_view what, std::string_view option);

}  // namespace ringside::guest_linux
