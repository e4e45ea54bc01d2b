// Another process's memory, copied from and to: the RAM of a VMM that does not share it with us.
// By process_vm_readv(2) and process_vm_writev(2), which want the same user and Yama's leave, or
// CAP_SYS_PTRACE. Used where GuestMemory is made. Does not: stop the process, know where its
// guest's RAM lies. Fire context: as CopiedBytes. A page under userfaultfd lets a copy wait for
// whoever serves it.
#pragma once

#include <sys/types.h>

#include <memory>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/copied_bytes.h"

namespace ringside::vmm {

class ProcessMemory final : public CopiedBytes {
 public:
  /// NotFound when there is no such process, Io with the way out when its memory may not be read.
  /// `somewhere`: any address of its memory that can be read, to find that out.
  static Result<std::unique_ptr<ProcessMemory>> open(pid_t pid, std::uint64_t somewhere);

  /// Offsets are the process's virtual addresses.
  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override;
  /// False once the process has ended, also when another one has its number by now.
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  /// By /proc/PID/pagemap. Of shared memory that is what the process itself has touched: to read
  /// more would use the host's memory up. A file that is mapped privately may hold data anywhere.
  std::vector<ByteExtent> extents(ByteExtent of) const override;

 private:
  ProcessMemory(pid_t pid, UniqueFd process, UniqueFd pagemap)
      : pid_(pid), process_(std::move(process)), pagemap_(std::move(pagemap)) {}
  bool tells_pages(ByteExtent of) const;

  pid_t pid_;
  UniqueFd process_;  // a pidfd
  UniqueFd pagemap_;  // none: this kernel has not got it, or not for us
};

}  // namespace ringside::vmm
