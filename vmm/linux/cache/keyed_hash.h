// A hash under a secret key. Without the key, two byte strings have the same hash only by chance:
// below 2^-60 for each pair. So an equal hash proves that a guest has the same bytes as before, or
// that we have written a file. It hashes some 10 GB a second. A cryptographic hash without a key
// would take longer than the search that the cache saves. Construction: NH over blocks of 1 KiB
// (Black and others, "UMAC: Fast and Secure Message Authentication", 1999; here of 64-bit words),
// then two polynomials of the blocks' values modulo 2^61 - 1 (Carter and Wegman), with the length
// last.
// Not libhighwayhash: nobody has broken it, but only the bound above is proved. Do not show the
// hashes to others: known hashes reveal the key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ringside::guest_linux {

struct HashValue {
  std::array<std::uint64_t, 2> words{};
  bool operator==(const HashValue&) const = default;
};

struct HashKey {
  static constexpr std::size_t kBlockWords = 128;
  std::array<std::uint64_t, kBlockWords> block{};
  std::array<std::uint64_t, 2> points{};  // of the polynomials
};

/// The bytes may come in any pieces.
class KeyedHash {
 public:
  /// The key must outlive it. Any bits make a key; random ones make a secret.
  explicit KeyedHash(const HashKey& key);

  void add(std::span<const std::byte> bytes);
  template <class T>
  void add_value(const T& value) {
    add(std::as_bytes(std::span(&value, 1)));
  }
  /// The hash of everything that was added; nothing may be added after it.
  HashValue finish();

 private:
  static constexpr std::size_t kBlock = HashKey::kBlockWords * sizeof(std::uint64_t);

  void add_block(const std::byte* bytes);

  const HashKey& key_;
  std::array<std::uint64_t, 2> points_;
  std::array<std::uint64_t, 2> sums_{1, 1};
  std::array<std::byte, kBlock> rest_{};
  std::size_t rest_size_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace ringside::guest_linux
