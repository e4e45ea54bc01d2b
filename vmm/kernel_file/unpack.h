// Unpacks what a bzImage's payload is: one stream of gzip, xz, lzma, zstd, lz4 (legacy frame) or
// bzip2, whose last four bytes are the unpacked size, little-endian (gzip's own trailer, for the
// others added by the kernel's build: scripts/Makefile.lib, size_append).
// Used by KernelFile. The bytes come from a file of the user's: bounded, no trust in any size.
// Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::vmm {

/// More than this no kernel is; a payload that says so is refused.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 30;

/// "gzip", "xz" and so on by the first bytes; empty for what is none of them.
std::string_view packing_of(std::span<const std::byte> bytes);

/// Unsupported for a packing we cannot read (LZO), Invalid for damaged or cut data.
Result<std::vector<std::byte>> unpack(std::span<const std::byte> packed);

}  // namespace ringside::vmm
