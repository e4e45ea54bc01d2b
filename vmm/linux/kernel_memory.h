// The kernel's half of a guest's memory: its image, which is physically contiguous, and the page
// table that maps everything else. Made from a VMCOREINFO only if that describes what is really
// there: the text may be a forgery of a guest's user, so the page table must map the image where
// the text says, and the kernel's own release string must be read through it.
// Used by Kernel. Always init_top_pgt: a CR3 sampled from a CPU may be freed under the reader.
// Fire context: no.
#pragma once

#include <optional>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/linux/vmcoreinfo.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

/// More than this is never copied out of a guest at once.
inline constexpr std::uint64_t kMaxCopy = 128 << 20;

class KernelMemory {
 public:
  /// Empty when `info` does not describe the memory that it was found in.
  static std::optional<KernelMemory> bind(const vmm::GuestMemory& memory, VmcoreInfo info);

  const VmcoreInfo& info() const { return info_; }
  const vmm::PageTable& table() const { return table_; }
  /// A reader of kernel virtual memory through the page table.
  vmm::PageTableReader reader() const { return {*memory_, table_}; }

  /// Where an address of the kernel's image lies by what `info` says, without a page walk; empty
  /// for any other address.
  static std::optional<GuestPhys> image_address(const VmcoreInfo& info, GuestVirt at);
  /// A copy of [from, from + size) of the kernel's image in one go, without page walks.
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
};

/// The running kernel's memory. Where several descriptions are consistent (a guest's user can forge
/// page tables too), the one whose kernel half a vCPU's CR3 shares is taken. NotFound when there is
/// none yet; Invalid when several remain.
Result<KernelMemory> find_kernel_memory(vmm::Machine& machine);

}  // namespace ringside::guest_linux
