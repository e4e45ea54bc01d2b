// One packed stream of gzip, bzip2, xz or lzma, unpacked by its library a piece at a time, so that
// neither the whole output has to be kept nor its size be known. Used to unpack kernels (unpack.h)
// and to find the end of an initrd's parts (vmm/kvm/initrd.h). The bytes are a file of the
// user's: all that a library says of sizes is bounded by the caller's buffers. Does not: zstd and
// lz4, whose frames give their length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace ringside::vmm {

class PackedStream {
 public:
  /// At the start of a stream of this packing (packing_of(), unpack.h). Null for another packing,
  /// or without memory.
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

}  // namespace ringside::vmm
