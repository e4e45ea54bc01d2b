// A part of a machine: writes code that the guest may have executed before. A translator has to be
// told of such a write: QEMU's TCG does not notice one through a mapping of its RAM. Addresses are
// physical, so that a stopped vCPU's page table does not matter; PausedMachine translates virtual
// ones.
// Used through PausedMachine (vmm/machine.h), which proves that nobody runs. Threads: any.
// Fire context: no.
#pragma once

#include <cstdint>
#include <span>

#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::vmm {

/// A new byte of code.
struct CodeWrite {
  GuestPhys at;
  std::uint8_t byte = 0;
};

/// The same by a virtual address: it means something only with a page table.
struct VirtualCodeWrite {
  GuestVirt at;
  std::uint8_t byte = 0;
};

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
