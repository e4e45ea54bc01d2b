// A hash under a secret key. Without the key nobody can make two byte strings that have one hash
// but by luck, of however many: the chance is below 2^-60 a pair. So it proves that
// bytes of a guest are those of another time, and that a file is one that we have written, at some
// 10 GB a second: a cryptographic hash without a key takes longer than what is looked up by it.
// Construction: NH over blocks of 1 KiB (Black and others, "UMAC: Fast and Secure Message
// Authentication", 1999; here of 64-bit words), then two polynomials of the blocks' values modulo
// 2^61 - 1 (Carter and Wegman), with the length last.
// Not libhighwayhash: nobody has broken that, but the bound above is proved.
// Not for what is shown to others: hashes that are known give the key away.
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
  /// Of all that was added; nothing may be added after it.
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
