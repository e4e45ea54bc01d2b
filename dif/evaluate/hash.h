// The hash of keys in the tables of dynamic variables and aggregations. Guests choose keys, so each
// step multiplies by the seed, which differs in every run: a factor that the guest could cancel
// would let it prepare keys that all collide. Chains are bounded by the tables' sizes in any case.
// Not libhighwayhash: on keys of 8 to 32 bytes it takes 3 to 4 times as long.
// Fire context: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ringside::dif {

__extension__ using Wide = unsigned __int128;

inline std::uint64_t mix_hash(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<Wide>(a ^ 0x9e37'79b9'7f4a'7c15) * (b ^ 0xd6e8'feb8'6659'fd93);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint32_t hash_bytes(std::span<const std::byte> key, std::uint64_t seed) {
  std::uint64_t hash = mix_hash(seed, key.size());
  while (!key.empty()) {
    std::uint64_t word = 0;
    const std::size_t part = key.size() < 8 ? key.size() : 8;
    std::memcpy(&word, key.data(), part);
    hash = mix_hash(hash ^ word, seed);
    key = key.subspan(part);
  }
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace ringside::dif
