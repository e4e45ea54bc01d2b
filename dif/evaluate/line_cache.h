// Guest memory as a clause sees it: a firing reads each 64-byte line of the guest once and then
// uses that copy. So D uses the bytes that it checked, whatever other vCPUs write meanwhile. The
// cache is direct-mapped and small: of two lines that collide, each is read again.
// Does not know D's own memory (memory.h). Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "vmm/base/guest_reader.h"

namespace ringside::dif {

class LineCache {
 public:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kLines = 64;

  /// A new firing: forgets everything. `guest` must live until the next call.
  void begin(const GuestReader& guest) {
    guest_ = &guest;
    ++generation_;
  }

  /// As GuestReader::read: on failure names the first byte that could not be read.
  Result<void, Fault> read(std::uint64_t at, std::span<std::byte> out) {
    const std::size_t offset = at % kLine;
    if (offset + out.size() <= kLine && holds(at / kLine)) {
      std::memcpy(out.data(), lines_[at / kLine % kLines].data() + offset, out.size());
      return {};
    }
    return read_slowly(at, out);
  }

  /// The cached bytes from `at` to the end of its line, at least one.
  Result<std::span<const std::byte>, Fault> line_from(std::uint64_t at);

 private:
  friend struct NativeLayout;  // compiled code looks for a line by itself (native_emitter.cc)
  struct Tag {
    std::uint64_t generation = 0;
    std::uint64_t line = 0;
  };
  using Line = std::array<std::byte, kLine>;

  bool holds(std::uint64_t line) const {
    const Tag& tag = tags_[line % kLines];
    return tag.generation == generation_ && tag.line == line;
  }
  Result<void, Fault> read_slowly(std::uint64_t at, std::span<std::byte> out);
  bool fetch(std::uint64_t line);

  const GuestReader* guest_ = nullptr;
  std::uint64_t generation_ = 0;
  std::array<Tag, kLines> tags_;
  alignas(kLine) std::array<Line, kLines> lines_;
  std::array<std::byte, 1> single_;  // line_from where only a part of the line is mapped
};

}  // namespace ringside::dif
