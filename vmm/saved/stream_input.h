// Reads a stream from its start to its end, and makes the file to which the guest's memory in it is
// written. Streams are QEMU's migration streams (migration_stream.h) and flattened dumps
// (compressed_dump.h). Their numbers are big-endian.
// The file comes from a user and may hold anything: nothing is read past its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class StreamInput {
 public:
  /// `fd`, which the caller keeps open, has `size` bytes. `what` names the stream in errors ("its
  /// migration stream").
  StreamInput(int fd, std::uint64_t size, std::string_view what)
      : fd_(fd), left_(size), what_(what), buffer_(1 << 20) {}

  /// Invalid where the file ends before; Io.
  Result<void> read(std::span<std::byte> out);
  template <class T>
  Result<T> number() {
    std::array<std::byte, sizeof(T)> bytes;
    TRY(read(bytes));
    T value = 0;
    for (const std::byte byte : bytes)
      value = static_cast<T>(value << 8 | std::to_integer<T>(byte));
    return value;
  }
  /// Invalid for more than 64 MiB: no header is so long.
  Result<void> skip(std::uint64_t size);
  /// A text with its length in one byte before it.
  Result<std::string> name();

  static Error damaged(std::string_view stream, std::string_view how);

 private:
  Result<void> fill();

  int fd_;
  std::uint64_t at_ = 0, left_;
  std::string_view what_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

/// A file without a name, in TMPDIR or /var/tmp, where large files go. It ends with its descriptor.
struct ScratchFile {
  static Result<UniqueFd> open();
  /// The error where a write to it has failed, by errno.
  static Error no_room();
};

}  // namespace ringside::vmm
