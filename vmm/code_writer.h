// A part of a machine: writes code that the guest may have executed before. A translator has to be
// told of such a write: QEMU's TCG does not notice one through a mapping of its RAM. Addresses are
// physical, so that a stopped vCPU's page table does not matter; PausedMachine translates virtual
// ones.
// Used through PausedMachine (vmm/machine.h), which proves that no vCPU runs. Threads: any.
// Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

/// A new byte of code. One that is joined lies right after the one before it and belongs to the
/// same instruction: if we die on the way, either both have been written or none.
struct CodeWrite {
  GuestPhys at;
  std::uint8_t byte = 0;
  bool is_joined = false;
};

/// The same by a virtual address: it means something only with a page table.
struct VirtualCodeWrite {
  GuestVirt at;
  std::uint8_t byte = 0;
  bool is_joined = false;
};

/// As many of the first ones as lie one after the other and are about `most`: none is cut off
/// from one that it is joined to, of which there are kMostJoined at most.
inline constexpr std::size_t kMostJoined = 8;
std::span<const CodeWrite> leading_run(std::span<const CodeWrite> writes, std::size_t most);

/// Bytes that are written by one request.
struct CodeRun {
  GuestPhys at;
  std::vector<std::uint8_t> bytes;
  std::size_t writes = 0;  // of those asked for, the first ones
};

/// For a back end to which a request costs more than its bytes: leading_run(), and as many of the
/// writes after it as follow at short distances in the same page, with the bytes between them as
/// they stand in memory. Those must not change until it is done. The guest stands still; for what
/// is still on its way, give writes in order of their addresses.
CodeRun bridged_run(const GuestMemory& memory, std::span<const CodeWrite> writes, std::size_t most);

/// Writes them through memory; the first address that was refused. Those that are joined are one
/// store or one system call.
std::optional<GuestPhys> write_through(GuestMemory& memory, std::span<const CodeWrite> writes);

class CodeWriter {
 public:
  virtual ~CodeWriter() = default;
  /// Whether it has to write what has run before. Where a processor runs the guest, entering it
  /// again makes it fetch what stands in memory, whoever wrote it.
  virtual bool is_needed() const { return true; }

 protected:
  friend class PausedMachine;
  /// All writes are tried; the error names the first address that was refused.
  virtual Result<void> write(std::span<const CodeWrite> writes) = 0;
};

}  // namespace ringside::vmm
