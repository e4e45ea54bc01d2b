#include "vmm/linux/cache/keyed_hash.h"

#include <algorithm>
#include <cstring>

namespace ringside::guest_linux {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

/// Of less than 2^122; the result is below 2^61, and need not be the least.
std::uint64_t reduce(Wide value) {
  const std::uint64_t sum =
      (static_cast<std::uint64_t>(value) & kPrime) + static_cast<std::uint64_t>(value >> 61);
  return (sum & kPrime) + (sum >> 61);
}

}  // namespace

KeyedHash::KeyedHash(const HashKey& key) : key_(key) {
  for (std::size_t n = 0; n < points_.size(); ++n) points_[n] = key.points[n] & (kPrime >> 1);
}

void KeyedHash::add_block(const std::byte* bytes) {
  Wide sum = 0;
  for (std::size_t i = 0; i < HashKey::kBlockWords; i += 2) {
    std::uint64_t words[2];
    std::memcpy(words, bytes + i * sizeof words[0], sizeof words);
    sum += Wide{words[0] + key_.block[i]} * (words[1] + key_.block[i + 1]);
  }
  constexpr unsigned kPiece = 43;  // three of them hold 128 bits, each far below the prime
  for (std::size_t n = 0; n < sums_.size(); ++n) {
    for (unsigned shift = 0; shift < 128; shift += kPiece) {
      const auto piece =
          static_cast<std::uint64_t>(sum >> shift) & ((std::uint64_t{1} << kPiece) - 1);
      sums_[n] = reduce(Wide{sums_[n]} * points_[n] + piece);
    }
  }
}

void KeyedHash::add(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    if (rest_size_ == 0 && bytes.size() >= kBlock) {
      add_block(bytes.data());
      bytes = bytes.subspan(kBlock);
      continue;
    }
    const std::size_t now = std::min(bytes.size(), kBlock - rest_size_);
    std::copy_n(bytes.begin(), now, rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_));
    rest_size_ += now;
    bytes = bytes.subspan(now);
    if (rest_size_ < kBlock) continue;
    add_block(rest_.data());
    rest_size_ = 0;
  }
}

HashValue KeyedHash::finish() {
  if (rest_size_ > 0) {
    std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_), rest_.end(), std::byte{0});
    add_block(rest_.data());
  }
  HashValue value;
  for (std::size_t n = 0; n < sums_.size(); ++n) {
    const std::uint64_t last = reduce(Wide{sums_[n]} * points_[n] + (size_ & kPrime));
    value.words[n] = last >= kPrime ? last - kPrime : last;
  }
  return value;
}

}  // namespace ringside::guest_linux
