#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "tests/fuzz/guest_input.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace ringside::fuzz {
namespace {

/// Changes what lies inside of the pieces, and keeps their outline.
class Mutator {
 public:
  Mutator(std::span<std::uint8_t> input, unsigned seed) : random_(seed) {
    const std::size_t count = input.empty() ? 0 : std::min<std::size_t>(input[0], kMostPieces);
    std::size_t at = 1;
    for (std::size_t n = 0; n < count && sizeof(PieceHead) < input.size() - at; ++n) {
      PieceHead head;
      std::memcpy(&head, input.data() + at, sizeof head);
      const std::size_t body = at + sizeof head;
      const std::size_t given = std::min<std::size_t>(head.given, input.size() - body);
      if (given >= 8) bodies_.push_back(input.subspan(body, given));
      heads_.push_back(head);
      at = body + given;
      if (at >= input.size()) break;
    }
  }

  bool is_guest() const { return !bodies_.empty(); }
  std::size_t below(std::size_t limit) { return random_() % limit; }

  void change_one() {
    const auto body = bodies_[below(bodies_.size())];
    switch (below(8)) {
      case 0:
      case 1: return put(body, address());
      case 2:
      case 3: return put_number(body);
      case 4: return put(body, word_of(bodies_[below(bodies_.size())]));
      case 5: return put(body, word_of(body) + (std::uint64_t{1} << below(64)));
      default: {
        const std::size_t at = below(body.size());
        const std::size_t length = 1 + below(std::min<std::size_t>(body.size() - at, 64));
        LLVMFuzzerMutate(body.data() + at, length, length);
      }
    }
  }

 private:
  /// Structures are aligned; what is not is found by plain mutation.
  std::size_t place(std::span<std::uint8_t> body, std::size_t width) {
    return below((body.size() - width) / width + 1) * width;
  }
  void put(std::span<std::uint8_t> body, std::uint64_t word) {
    std::memcpy(body.data() + place(body, 8), &word, 8);
  }
  void put_number(std::span<std::uint8_t> body) {
    static constexpr std::array<std::uint64_t, 16> kNumbers = {
        0,      1,       2,           0x7f,        0x80,        0xff,    0xfff,   0x1000,
        0xffff, 0x10000, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff, 1 << 20, 1 << 18, ~0ULL};
    const std::uint64_t number = kNumbers[below(kNumbers.size())];
    const std::size_t width = std::size_t{1} << below(4);
    std::memcpy(body.data() + place(body, width), &number, width);
  }
  /// In a piece, or around its ends.
  std::uint64_t address() {
    const PieceHead& head = heads_[below(heads_.size())];
    const std::uint64_t offset = below(std::max<std::size_t>(head.given, 1)) & ~std::size_t{7};
    switch (below(4)) {
      case 0: return head.at + head.size - offset % 16;
      case 1: return head.at;
      default: return head.at + offset;
    }
  }
  std::uint64_t word_of(std::span<std::uint8_t> body) {
    std::uint64_t word = 0;
    std::memcpy(&word, body.data() + place(body, 8), 8);
    return word;
  }

  std::mt19937 random_;
  std::vector<std::span<std::uint8_t>> bodies_;
  std::vector<PieceHead> heads_;
};

}  // namespace

std::size_t mutate_guest(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  Mutator mutator({data, size}, seed);
  if (!mutator.is_guest() || mutator.below(8) == 0) return LLVMFuzzerMutate(data, size, most);
  for (std::size_t changes = 1 + mutator.below(4); changes > 0; --changes) mutator.change_one();
  return size;
}

}  // namespace ringside::fuzz
