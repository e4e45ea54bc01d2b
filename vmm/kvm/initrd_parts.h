// Tells whether an initrd is whole. It consists of parts, each a cpio archive or a packed stream,
// with zero bytes between them (Linux Documentation/driver-api/early-userspace/buffer-format.rst).
// Each part is followed to its end: by its headers where they give lengths (cpio, zstd, lz4), else
// by unpacking it without keeping the output (gzip, bzip2, lzma, and xz without its footer). An
// initrd is cut off only if a part certainly continues after the file's end; the kernel judges all
// else. Used by InitrdFile. Does not: check sums, or look into the archives. The bytes are a file
// of the user's: bounded, no trust in any size. Not by libarchive, which ends at the first
// archive's trailer: of the parts after it, it tells nothing.
#pragma once

#include <cstddef>
#include <span>

namespace ringside::vmm::kvm {

/// Whether the last part ends too early. Takes as long as unpacking does, of at most 1 GiB.
bool is_cut_off(std::span<const std::byte> initrd);

}  // namespace ringside::vmm::kvm
