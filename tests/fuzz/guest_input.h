// A guest's memory as a fuzz target's input says it. The input begins with pieces: bytes at an
// address, zeroes after them, and when they come. A parser finds what the seeds have at their
// places, and the mutator bends pointers and counts there, so that it gets deep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/fuzz/script.h"
#include "vmm/base/guest_reader.h"

namespace ringside::fuzz {

inline constexpr std::size_t kMostPieces = 96;

/// As it stands in an input, after a byte that says how many there are.
struct PieceHead {
  std::uint64_t at;
  std::uint32_t size;
  std::uint16_t given;  // bytes that follow
  std::uint16_t after;  // and 0x8000 where the bytes repeat
};
static_assert(sizeof(PieceHead) == 16);

/// [at, at + size) of the guest; what `bytes` does not fill is zero, or they again and again.
struct Piece {
  std::uint64_t at = 0;
  std::uint32_t size = 0;
  std::uint16_t after = 0;  // so many reads of the guest were made before it comes
  std::span<const std::byte> bytes;
  bool repeats = false;
};

inline constexpr std::uint16_t kRepeats = 0x8000;

/// Reads the first of the pieces that has a byte. Pieces that come late are a guest that changes
/// its memory while it is read.
class GuestInput final : public GuestReader {
 public:
  /// Takes the pieces from the front; the rest of the script is the target's.
  explicit GuestInput(FuzzScript& script);

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override;
  /// From the beginning: what reads in the same order gets the same.
  void rewind() const { reads_ = 0; }
  std::span<const Piece> pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
  mutable std::uint64_t reads_ = 0;
};

/// An input of these pieces, then `rest`.
std::vector<std::byte> write_guest(std::span<const Piece> pieces,
                                   std::span<const std::byte> rest = {});

/// Pieces of pages, by their addresses; zeroes at a page's end take no room.
template <class Pages>
std::vector<Piece> pieces_of(const Pages& pages) {
  std::vector<Piece> pieces;
  for (const auto& [number, page] : pages) {
    std::size_t used = page.size();
    while (used > 0 && page[used - 1] == std::byte{0}) --used;
    pieces.push_back({number * page.size(), static_cast<std::uint32_t>(page.size()), 0,
                      std::span(page).first(used)});
  }
  return pieces;
}

/// A custom mutator: bytes inside of pieces, pointers to pieces, numbers at their bounds.
std::size_t mutate_guest(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);

}  // namespace ringside::fuzz
