// An ELF core of a machine: which of its guest-physical memory lies where in the file, and what its
// vCPUs' registers were. Written by QEMU's dump-guest-memory, by kexec's crash kernel (kdump:
// /proc/vmcore, `makedumpfile -E`) and by write_elf_core() (core_writer.h).
//   header           class 64; QEMU writes class 32 where vCPU 0 is not in long mode
//   program headers  PT_LOAD: p_paddr is guest-physical; PT_NOTE: the notes (elf_notes.h)
// Used by SavedMachine. The file is a user's and may be anything: sizes are checked, loops bounded.
// Not by libelf: a header, two kinds of fixed entries and capped notes are read, of a file that may
// be cut off anywhere, and libelf stays inside vmm/kernel_file.
// Does not: know what the memory holds.
#pragma once

#include <cstdint>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/saved/elf_notes.h"

namespace ringside::vmm {

struct ElfCore {
  /// More than these no machine has. A dump by its virtual memory (dump-guest-memory -p) has a
  /// segment for each run of pages: some 66,000 for a GiB.
  static constexpr std::size_t kMaxSegments = 8 << 20;

  /// [base, base + size) of guest-physical memory lies from `offset` on in the file.
  struct Segment {
    GuestPhys base;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
  };
  std::vector<Segment> segments;  // by base; they do not overlap
  std::uint64_t missing = 0;      // bytes of memory that the file ends before; not in `segments`
  core_notes::NotedVcpus vcpus;

  static constexpr std::size_t kMagicBytes = 16;
  /// Whether a file that begins so is an ELF file of any kind.
  static bool is_elf(const std::vector<std::byte>& start);
  /// Invalid, with what is wrong, for an ELF file that is no core of an x86-64 machine.
  static Result<ElfCore> read(int fd);
};

}  // namespace ringside::vmm
