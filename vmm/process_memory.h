// Another process's memory: the RAM of a VMM that does not share it with us. It is copied by
// process_vm_readv(2) and process_vm_writev(2), which need the same user and Yama's permission, or
// CAP_SYS_PTRACE. A few bytes are copied by /proc/PID/mem, which needs the same rights and takes
// two thirds of the time. A copy of a page under userfaultfd waits until that page is served.
// Used where GuestMemory is made. Does not: stop the process, know where its guest's RAM lies.
// Fire context: as CopiedBytes.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/copied_bytes.h"

namespace ringside::vmm {

class ProcessMemory final : public CopiedBytes {
 public:
  /// `somewhere`: an address that the process has mapped; one read there tells whether we may.
  /// NotFound when there is no such process, Io with the way out when its memory may not be read.
  static Result<std::unique_ptr<ProcessMemory>> open(pid_t pid, std::uint64_t somewhere);

  /// Offsets are the process's virtual addresses.
  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override;
  /// False once the process has ended, also when another one has its number by now.
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  /// Uses /proc/PID/pagemap. Of shared memory it has only the pages that the process itself has
  /// touched: reading others would allocate them. A file that is mapped privately may hold data
  /// anywhere.
  std::vector<ByteExtent> extents(ByteExtent of) const override;

 private:
  /// The kernel copies what is read by the file twice.
  static constexpr std::size_t kFewBytes = 4096;

  ProcessMemory(pid_t pid, UniqueFd process, UniqueFd memory, UniqueFd pagemap)
      : pid_(pid),
        process_(std::move(process)),
        memory_(std::move(memory)),
        pagemap_(std::move(pagemap)) {}
  bool by_file(std::size_t size) const { return memory_ && size <= kFewBytes; }
  bool tells_pages(ByteExtent of) const;

  pid_t pid_;
  UniqueFd process_;  // a pidfd
  UniqueFd memory_;   // /proc/PID/mem: of this process, whoever has its number later
  UniqueFd pagemap_;  // none where the kernel has none or refuses it
};

// The pages of another process's memory that exist, by /proc/PID/pagemap. A page that was never
// touched is neither in RAM nor swapped out. Used by ProcessMemory, and declared here for its
// tests. Formats: Documentation/admin-guide/mm/pagemap.rst.

/// By the file's PAGEMAP_SCAN, which goes around what has no page tables; since Linux 6.7. Offsets
/// are the process's addresses. Empty where the kernel has no such call.
std::optional<std::vector<ByteExtent>> scan_pagemap(int pagemap, ByteExtent of);

/// By the file's entries, one for each page, but for mappings that `smaps` (the text of
/// /proc/PID/smaps) says nothing of is there. For older kernels. Empty when they cannot be read.
std::optional<std::vector<ByteExtent>> read_pagemap(int pagemap, const std::string& smaps,
                                                    ByteExtent of);

}  // namespace ringside::vmm
