// A compressed dump of a machine: QEMU's dump-guest-memory and `virsh dump --memory-only` with a
// format kdump-*, and makedumpfile in a guest's crash kernel.
// Layout: makedumpfile's diskdump_mod.h and QEMU's include/sysemu/dump.h, header versions 1 to 6,
// blocks of 4096 bytes, little-endian:
//   block 0          "KDUMP   ", version, struct new_utsname, a time, then from byte 424 on u32
//                    status, block size, blocks of the subheader, of both bitmaps, pages
//   block 1          from byte 8 on i32 dump level, i32 split; at 48 and 56 place and size of the
//                    notes (version 4), at 96 u64 pages (version 6)
//   two bitmaps      one bit for each page: it is RAM; it is in the file
//   descriptors      one for each page in the file, in order: u64 place, u32 size, u32 packing
//   the pages        each packed by zlib, LZO, Snappy or Zstandard, or not packed
// A flattened dump has the same bytes in pieces, so that a pipe can carry it: a block that begins
// with "makedumpfile", then for each piece u64 place, u64 size (both big-endian) and its bytes.
// Used by SavedMachine. The file may have been made inside a guest: every number in it is checked.
// Not by libkdumpfile: its release 0.5.1 crashes on one in six damaged files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/copied_bytes.h"
#include "vmm/saved/elf_notes.h"

namespace ringside::vmm {

struct CompressedDump {
  std::shared_ptr<CopiedBytes> memory;  // offsets are guest-physical addresses
  std::vector<ByteExtent> ram;          // in order; not empty
  std::uint64_t missing = 0;            // bytes of pages that the file ends before
  /// Bytes of RAM that makedumpfile left out on purpose (-d): caches, memory of processes, free
  /// pages. If it left out pages of zeros as well, all of them read as zeros; otherwise none of
  /// them can be read.
  std::uint64_t left_out = 0;
  core_notes::NotedVcpus vcpus;
};

/// Whether a file that begins so is one.
bool is_compressed_dump(std::span<const std::byte> start);

/// The dump in `fd`, of `size` bytes. Unsupported, with what to do instead, for a form that is not
/// read; Invalid for a damaged one.
Result<CompressedDump> read_compressed_dump(UniqueFd fd, std::uint64_t size);

/// Whether a file that begins so is a flattened dump, of this form or an ELF core.
bool is_flattened_dump(std::span<const std::byte> start);

struct UnflattenedDump {
  UniqueFd file;  // without a name
  std::uint64_t size = 0;
};

/// Puts the pieces of the flattened dump in `fd`, of `size` bytes, together, in a file in TMPDIR or
/// /var/tmp. Invalid for a damaged one; Io when there is no room.
Result<UnflattenedDump> unflatten(int fd, std::uint64_t size);

}  // namespace ringside::vmm
