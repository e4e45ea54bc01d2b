// Finds where a process has its guest's RAM, without asking the process. It searches the memory
// that the process maps for a Linux kernel, by its VMCOREINFO and its page tables. That kernel
// knows its own memory, which tells where each guest-physical address lies. The result is then
// proven (ram_proof.h), because a write to the wrong place destroys a machine. The guest may lie
// about its memory. Such a lie reaches only other bytes of the mapping in which the guest was
// found, or of a mapping as large as the guest says that its memory is.
// Known layouts: one mapping, with RAM from 4 GiB on after RAM from 0 on (QEMU, our own VMM); a
// mapping for each part (Firecracker, Cloud Hypervisor, crosvm); one mapping with a gap (kvmtool).
// Pure over the copies that it is given. Does not: know how they are made (ram_backing.h), write.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vmm/attach/host/host_process.h"
#include "vmm/base/result.h"
#include "vmm/copied_bytes.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

/// Memory of the process that may be RAM: what its addresses from `mapping.begin` on hold is what
/// `bytes` holds from `offset` on.
struct RamCandidate {
  MemoryMapping mapping;
  std::shared_ptr<CopiedBytes> bytes;
  std::uint64_t offset = 0;

  std::uint64_t size() const { return mapping.size(); }
};

/// The mappings that are large enough for a guest's RAM and can be read and written, the largest
/// first. Neighbours of one kind appear joined, and also each by itself. At most kMostCandidates.
inline constexpr std::size_t kMostCandidates = 64;
std::vector<MemoryMapping> ram_candidates(const std::vector<MemoryMapping>& mappings);

/// A piece of RAM: `size` bytes of guest-physical space from `base` on are the candidate's from
/// `start` on.
struct RamRange {
  GuestPhys base;
  std::uint64_t size = 0;
  std::size_t candidate = 0;
  std::uint64_t start = 0;
};

struct GuestRam {
  std::vector<RamRange> ranges;
  std::string release;              // of the kernel in it
  std::uint64_t frames = 0;         // pages up to the last one of RAM
  GuestPhys frames_at{UINT64_MAX};  // where the kernel has that number
};

GuestMemory memory_of(const std::vector<RamRange>& ranges,
                      const std::vector<RamCandidate>& candidates);

/// Unsupported, with the reason, when there is no Linux in it, or its layout cannot be proven.
Result<GuestRam> find_guest_ram(const std::vector<RamCandidate>& candidates);

}  // namespace ringside::vmm
