// A keyed hash of names, for tables whose names a guest chooses. Without the key, a hostile guest
// could choose names that all collide, and filling a table would take too long.
// Used by TypeGraph and the kernel's symbol tables. Not a cryptographic hash, nor libhighwayhash,
// which takes several times as long for names of some 20 bytes (dif/evaluate/dynamic_table.h).
// Fire context: yes.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace ringside {

/// 64 bits that depend on every byte of `name` and on a key drawn once per process.
inline std::uint64_t hash_name(std::string_view name) {
  static const std::uint64_t key =
      (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}() | 1;
  __extension__ using Wide = unsigned __int128;
  const auto mix = [](std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::uint64_t state = key ^ name.size();
  std::size_t at = 0;
  for (; at + 8 <= name.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, name.data() + at, 8);
    state = mix(state ^ word, key ^ 0x9e37'79b9'7f4a'7c15);
  }
  std::uint64_t tail = 0;
  if (at < name.size()) std::memcpy(&tail, name.data() + at, name.size() - at);
  state = mix(state ^ tail, key ^ 0xd6e8'feb8'6659'fd93);
  return state ^ (state >> 32);
}

}  // namespace ringside
