#include "vmm/linux/cache/keyed_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

namespace ringside::guest_linux {
namespace {

HashKey random_key(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  HashKey key;
  for (std::uint64_t& word : key.block) word = random();
  for (std::uint64_t& word : key.points) word = random();
  return key;
}

HashValue hash_of(const HashKey& key, std::span<const std::byte> bytes) {
  KeyedHash hash(key);
  hash.add(bytes);
  return hash.finish();
}

std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

TEST(KeyedHash, IsTheSameInWhateverPiecesTheBytesCome) {
  const HashKey key = random_key(1);
  const auto bytes = some_bytes(5000);
  for (const std::size_t piece : {1, 3, 1023, 1024, 1025, 4999}) {
    KeyedHash hash(key);
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      hash.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(hash.finish(), hash_of(key, bytes)) << piece;
  }
}

TEST(KeyedHash, EveryByteAndTheLengthCount) {
  const HashKey key = random_key(2);
  auto bytes = some_bytes(2100);
  std::set<std::array<std::uint64_t, 2>> seen{hash_of(key, bytes).words};
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x80};
    seen.insert(hash_of(key, bytes).words);
    byte ^= std::byte{0x80};
  }
  std::vector<std::byte> zeros;
  for (std::size_t size = 0; size < 2100; ++size, zeros.emplace_back()) {
    seen.insert(hash_of(key, zeros).words);
  }
  EXPECT_EQ(seen.size(), 1u + 2 * 2100u);
}

TEST(KeyedHash, AnotherKeyMakesOthers) {
  const auto bytes = some_bytes(3000);
  HashKey key = random_key(3);
  const auto first = hash_of(key, bytes);
  key.block[5] ^= 1;
  EXPECT_NE(hash_of(key, bytes), first);
  key = random_key(3);
  key.points[1] ^= 1;
  EXPECT_NE(hash_of(key, bytes), first);
}

}  // namespace
}  // namespace ringside::guest_linux
