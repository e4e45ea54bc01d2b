// Unpacks the payload of a bzImage: one stream of gzip, xz, lzma, zstd, lz4 (legacy frame) or
// bzip2. Its last four bytes are the unpacked size, little-endian: gzip's own trailer, or added by
// the kernel's build (scripts/Makefile.lib, size_append). Used by KernelFile. The bytes come from a
// file of the user's: bounded, no trust in any size. Not by libarchive, which knows these packings
// but takes the size after an xz, zstd or lz4 stream for one more stream, and fails (3.6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::vmm {

/// A payload that claims more bytes than this is refused; no kernel is so large.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 30;

/// "gzip", "xz" and so on, by the first bytes; empty when they are none of these.
std::string_view packing_of(std::span<const std::byte> bytes);

/// The legacy lz4 frame (lz4_Frame_format.md): a magic number of 4 bytes, then blocks with their
/// packed size, of 4 bytes, before them.
inline constexpr std::size_t kLz4MostUnpackedBlock = std::size_t{8} << 20;

/// Unsupported for a packing we cannot read (LZO), Invalid for damaged or cut data.
Result<std::vector<std::byte>> unpack(std::span<const std::byte> packed);

}  // namespace ringside::vmm
