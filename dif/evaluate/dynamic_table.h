// The memory of dynamic variables (self-> and associative arrays): a chained hash table in one
// fixed arena of dynvarsize bytes. Freed memory is kept by size class; an element may take a chunk
// of a larger class.
//
// An erased element's memory is not used again at once: a firing may still hold its address in a
// register. It lies on the dirty list until clean(), which moves it to the rinsing list, and the
// next clean() makes it free. Whoever owns the table cleans it at cleanrate; clean() takes the same
// time however much there is to clean. What a full table still waits for is full_because().
// Fire context: yes, but for the constructor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "dif/evaluate/lazy_memory.h"

namespace ringside::dif {

namespace testing {
class StatePeer;
}

class DynamicTable {
 public:
  explicit DynamicTable(std::size_t size);

  /// The data of the element, as an offset into arena(); empty when there is none.
  std::optional<std::uint64_t> find(std::span<const std::byte> key) const;
  /// Finds or makes the element; a new one's data is zero. Empty when the arena is full.
  std::optional<std::uint64_t> find_or_add(std::span<const std::byte> key, std::size_t data_size);
  void erase(std::span<const std::byte> key);
  void clean();

  /// Why find_or_add() found no room.
  enum class Full : std::uint8_t {
    Used,     // by elements
    Dirty,    // elements that were erased since clean()
    Rinsing,  // elements that were erased before that
  };
  Full full_because() const;

  /// Data offsets count from here; 8-aligned.
  std::span<std::byte> arena() const { return memory_.bytes(); }
  /// For hash_bytes(): a number of its own for each run.
  static std::uint64_t random_seed();

 private:
  friend class testing::StatePeer;
  static constexpr std::size_t kUnit = 16;
  static constexpr std::size_t kClasses = 48;  // sizes from 48 bytes up, two to each doubling

  /// At the head of each chunk; its data and then its key follow. Links count units; 0 is none.
  struct Chunk {
    std::uint32_t next = 0;
    std::uint32_t hash = 0;
    std::uint32_t key_size = 0;
    std::uint32_t data_size = 0;
    std::uint32_t size_class = 0;
    std::uint32_t reserved = 0;
  };

  /// Chunks of one class.
  struct Chain {
    std::uint32_t first = 0, last = 0;
  };
  using Chains = std::array<Chain, kClasses>;

  static std::size_t class_size(std::size_t size_class);
  static std::size_t class_of(std::size_t size);
  Chunk chunk(std::uint32_t unit) const;
  void put(std::uint32_t unit, const Chunk& chunk);
  std::span<const std::byte> key_of(std::uint32_t unit, const Chunk& chunk) const;
  std::uint32_t bucket_of(std::uint32_t hash) const { return hash & (buckets_ - 1); }
  std::uint32_t head(std::uint32_t bucket) const;
  void set_head(std::uint32_t bucket, std::uint32_t unit);
  std::uint32_t lookup(std::span<const std::byte> key, std::uint32_t hash) const;
  std::uint32_t take_chunk(std::size_t size);

  std::size_t capacity_;
  LazyMemory memory_;  // chunks; unit 0 stays unused, so that 0 can mean none
  LazyMemory heads_;   // bucket heads, one u32 each
  std::uint32_t buckets_ = 0;
  std::uint64_t seed_;
  std::size_t used_ = kUnit;  // bytes of memory_ ever handed out
  std::array<std::uint32_t, kClasses> free_{};
  Chains dirty_{}, rinsing_{};
};

}  // namespace ringside::dif
