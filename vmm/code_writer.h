// A part of a machine: writes code that the guest may have executed before. A translator must be
// told of such a write: QEMU's TCG does not notice a write through a mapping of its RAM. Addresses
// are physical, so that a stopped vCPU's page table does not matter; PausedMachine translates
// virtual addresses.
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

/// A new byte of code. A joined byte lies right after the byte before it and belongs to the same
/// instruction: if we die meanwhile, either both have been written or none.
struct CodeWrite {
  GuestPhys at;
  std::uint8_t byte = 0;
  bool is_joined = false;
};

/// The same by a virtual address, which needs a page table.
struct VirtualCodeWrite {
  GuestVirt at;
  std::uint8_t byte = 0;
  bool is_joined = false;
};

/// The first writes that lie one after the other, about `most` of them. Joined bytes are never
/// separated; at most kMostJoined of them are joined.
inline constexpr std::size_t kMostJoined = 8;
std::span<const CodeWrite> leading_run(std::span<const CodeWrite> writes, std::size_t most);

/// Bytes that are written by one request.
struct CodeRun {
  GuestPhys at;
  std::vector<std::uint8_t> bytes;
  std::size_t writes = 0;  // of those asked for, the first ones
};

/// For a back end whose requests cost more than their bytes: leading_run(), and the writes that
/// follow at short distances in the same page, with the bytes between them as they stand in memory.
/// Those bytes must not change until the write is done. The guest stands still. Give writes in
/// order of their addresses, because earlier requests may still be under way.
CodeRun bridged_run(const GuestMemory& memory, std::span<const CodeWrite> writes, std::size_t most);

/// Writes them through `memory`. Returns the first address that was refused. Joined bytes are
/// written by one store or one system call.
std::optional<GuestPhys> write_through(GuestMemory& memory, std::span<const CodeWrite> writes);

class CodeWriter {
 public:
  virtual ~CodeWriter() = default;
  /// Whether code that has run before must be written through this interface. A real processor
  /// fetches what stands in memory when it enters the guest again, whoever wrote it.
  virtual bool is_needed() const { return true; }

 protected:
  friend class PausedMachine;
  /// All writes are tried; the error names the first address that was refused.
  virtual Result<void> write(std::span<const CodeWrite> writes) = 0;
};

}  // namespace ringside::vmm
