// Opens the memory of a process that may be its guest's RAM, and makes guest RAM of it. A file in
// memory (memfd, /dev/shm) is opened by the process's own descriptor. It is mapped here only if it
// can never shrink: a mapped file that shrinks would kill us. Everything else is copied out of the
// process and into it.
// Used by ProcessMachine and the list of VMs. Does not: know where RAM lies (guest_ram.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vmm/attach/host/host_process.h"
#include "vmm/attach/ram/guest_ram.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class RamBacking {
 public:
  /// Read opens files for reading, and where they hold all that may be RAM, needs no permission to
  /// trace the process.
  enum class Access : std::uint8_t { Write, Read };
  /// NotFound when there is no such process, Io saying which permission is missing where its memory
  /// is not for us.
  static Result<RamBacking> open(const HostProcess& process, Access access = Access::Write);
  RamBacking(RamBacking&&) noexcept = default;
  RamBacking& operator=(RamBacking&&) = delete;
  ~RamBacking();

  const std::vector<RamCandidate>& candidates() const { return candidates_; }
  /// All of the process's memory, by its own addresses; null where we only read and may not.
  const std::shared_ptr<CopiedBytes>& process_memory() const { return process_memory_; }
  /// Valid as long as this object. Mapped where all of it can be.
  GuestMemory make(const std::vector<RamRange>& ranges);

 private:
  RamBacking() = default;
  bool map(const RamRange& range, std::vector<GuestMemory::Region>& regions);

  std::shared_ptr<CopiedBytes> process_memory_;
  std::vector<RamCandidate> candidates_;
  std::vector<UniqueFd> files_;  // of each candidate that can be mapped; else none
  std::vector<std::span<std::byte>> mapped_;
};

}  // namespace ringside::vmm
