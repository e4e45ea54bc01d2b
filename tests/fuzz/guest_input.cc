#include "tests/fuzz/guest_input.h"

#include <algorithm>
#include <cstring>

#include "vmm/base/check.h"

namespace ringside::fuzz {
namespace {

constexpr std::uint32_t kMostMapped = 64 << 20;  // of a piece

/// Fills `out` from `offset` bytes into a text that goes on as it began; doubles what is there.
void repeat(std::span<const std::byte> text, std::size_t offset, std::span<std::byte> out) {
  std::size_t done = 0;
  for (std::size_t at = offset % text.size(); done < out.size() && done < text.size(); at = 0) {
    const std::size_t part = std::min({text.size() - at, out.size() - done, text.size() - done});
    std::memcpy(out.data() + done, text.data() + at, part);
    done += part;
  }
  while (done < out.size()) {
    const std::size_t part = std::min(done, out.size() - done);
    std::memcpy(out.data() + done, out.data(), part);
    done += part;
  }
}

}  // namespace

GuestInput::GuestInput(FuzzScript& script) {
  const std::size_t count = std::min<std::size_t>(script.take<std::uint8_t>(), kMostPieces);
  for (std::size_t n = 0; n < count && !script.at_end(); ++n) {
    const auto head = script.take<PieceHead>();
    const auto bytes = script.take_bytes(head.given);
    pieces_.push_back({.at = head.at,
                       .size = std::min(head.size, kMostMapped),
                       .after = static_cast<std::uint16_t>(head.after & ~kRepeats),
                       .bytes = bytes.first(std::min<std::size_t>(bytes.size(), head.size)),
                       .repeats = (head.after & kRepeats) != 0 && !bytes.empty()});
  }
}

Result<void, Fault> GuestInput::read(GuestVirt at, std::span<std::byte> out) const {
  ++reads_;
  std::uint64_t from = at.raw();
  while (!out.empty()) {
    std::size_t length = out.size();
    const Piece* found = nullptr;
    for (const Piece& piece : pieces_) {
      if (piece.after >= reads_) continue;
      const std::uint64_t offset = from - piece.at;  // huge when `from` lies below
      if (offset < piece.size) {
        found = &piece;
        length = std::min<std::size_t>(length, piece.size - offset);
        break;
      }
      // An earlier piece that begins further on hides what follows.
      const std::uint64_t ahead = piece.at - from;
      if (piece.size != 0 && ahead < length) length = ahead;
    }
    if (found == nullptr) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, from});
    const auto part = out.first(length);
    const auto offset = static_cast<std::size_t>(from - found->at);
    const auto given = found->bytes.subspan(std::min(offset, found->bytes.size()));
    const std::size_t copied = std::min(given.size(), length);
    // Calls, not loops: each turn of an instrumented loop is a step for the fuzzer too.
    if (found->repeats) {
      repeat(found->bytes, offset, part);
    } else {
      if (copied > 0) std::memcpy(part.data(), given.data(), copied);
      std::memset(part.data() + copied, 0, length - copied);
    }
    out = out.subspan(length);
    from += length;
  }
  return {};
}

std::vector<std::byte> write_guest(std::span<const Piece> pieces, std::span<const std::byte> rest) {
  CHECK(pieces.size() <= kMostPieces);
  ScriptWriter input;
  input.put(static_cast<std::uint8_t>(pieces.size()));
  for (const Piece& piece : pieces) {
    CHECK(piece.bytes.size() <= UINT16_MAX && piece.bytes.size() <= piece.size);
    input.put(PieceHead{piece.at, piece.size, static_cast<std::uint16_t>(piece.bytes.size()),
                        static_cast<std::uint16_t>(piece.after | (piece.repeats ? kRepeats : 0))});
    for (const std::byte byte : piece.bytes) input.put(byte);
  }
  for (const std::byte byte : rest) input.put(byte);
  return input.bytes();
}

}  // namespace ringside::fuzz
