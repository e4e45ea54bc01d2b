// Whether an initrd is whole: it is a row of parts, each a cpio archive or something packed, with
// zero bytes between them (Linux Documentation/driver-api/early-userspace/buffer-format.rst). Each
// part is followed to its end: by its headers where they give lengths (cpio, zstd, lz4), by
// unpacking it to nowhere where they do not (gzip, bzip2, lzma, and xz unless its footer is there).
// Only what certainly goes on behind the file's end counts: the kernel judges all else.
// Used by InitrdFile. Does not: check sums, or what is in the archives.
// The bytes are a file of the user's: bounded, no trust in any size. Fire context: no.
#pragma once

#include <cstddef>
#include <span>

namespace ringside::vmm::kvm {

/// Whether its last part ends before it should. Takes as long as unpacking, at most 1 GiB of it.
bool is_cut_off(std::span<const std::byte> initrd);

}  // namespace ringside::vmm::kvm
