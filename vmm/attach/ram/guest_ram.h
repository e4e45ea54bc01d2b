// Where a process has its guest's RAM. Nobody is asked: among the memory that the process maps, a
// Linux is found by its VMCOREINFO and its page tables, and what the kernel says of its own memory
// tells which guest-physical address lies where. Then it is proven (ram_proof.h), because whoever
// writes to the wrong place destroys a machine.
// The guest says it, so it may lie: what it can reach by that are other bytes of the very mapping
// that it was found in, or of one as large as it says of its own memory.
// Known layouts: one mapping, with RAM from 4 GiB on after RAM from 0 on (QEMU, our own VMM); a
// mapping for each part (Firecracker, Cloud Hypervisor, crosvm); one mapping with a gap (kvmtool).
// Pure over the copies that it is given. Does not: know how they are made (ram_backing.h), write.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vmm/attach/process/host_process.h"
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

/// The mappings that are large enough for a guest's RAM and can be read and written, neighbours of
/// one kind joined and each by itself, the largest first; kMostCandidates at most.
inline constexpr std::size_t kMostCandidates = 64;
std::vector<MemoryMapping> ram_candidates(const std::vector<MemoryMapping>& mappings);

/// A piece of RAM: `size` bytes of guest-physical space from `base` on are the candidate's from
/// `start` on.
struct RamPlace {
  GuestPhys base;
  std::uint64_t size = 0;
  std::size_t candidate = 0;
  std::uint64_t start = 0;
};

struct GuestRam {
  std::vector<RamPlace> places;
  std::string release;              // of the kernel in it
  std::uint64_t frames = 0;         // pages up to the last one of RAM
  GuestPhys frames_at{UINT64_MAX};  // where the kernel has that number
};

GuestMemory memory_of(const std::vector<RamPlace>& places,
                      const std::vector<RamCandidate>& candidates);

/// Unsupported, with the reason, when there is no Linux in it, or its layout cannot be proven.
Result<GuestRam> find_guest_ram(const std::vector<RamCandidate>& candidates);

}  // namespace ringside::vmm
