// Unpacks the payload of a bzImage: one stream of gzip, xz, lzma, zstd, lz4 (legacy frame) or
// bzip2. Its last four bytes are the unpacked size, little-endian: gzip's own trailer, or added by
// the kernel's build (scripts/Makefile.lib, size_append). Used by KernelFile, and to find the end
// of an initrd's parts (vmm/kvm/initrd.h). The bytes come from a file of the user's: bounded,
// no trust in any size. Not by libarchive, which knows these packings but takes the size after an
// xz, zstd or lz4 stream for one more stream, and fails (3.6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::vmm {

/// One packed stream of gzip, bzip2, xz or lzma, unpacked by its library a piece at a time, so that
/// neither the whole output has to be kept nor its size be known. All that a library says of sizes
/// is bounded by the caller's buffers. Does not: zstd and lz4, whose frames give their length.
class PackedStream {
 public:
  /// At the start of a stream of this packing (packing_of()). Null for another packing, or without
  /// memory.
  static std::unique_ptr<PackedStream> open(std::string_view packing);
  PackedStream() = default;
  PackedStream(const PackedStream&) = delete;
  PackedStream& operator=(const PackedStream&) = delete;
  virtual ~PackedStream() = default;

  struct Step {
    enum Result : std::uint8_t { GoesOn, Ends, Fails } result;
    std::size_t taken, filled;  // of `in`, of `out`
  };
  /// One call of the library, which may leave some of `in`.
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
};

/// How a stream ends, and how much of it was read until then.
struct StreamEnd {
  enum class Kind : std::uint8_t { Whole, CutOff, Damaged, TooLong } kind;
  std::size_t packed = 0, unpacked = 0;
};

/// Runs a stream to its end. `room(unpacked)` is where the next bytes go, as much as the library
/// may fill of it; an empty one ends it as TooLong.
using Room = std::function<std::span<std::byte>(std::size_t unpacked)>;
StreamEnd run_stream(PackedStream& stream, std::span<const std::byte> packed, const Room& room);

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
