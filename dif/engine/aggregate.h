// One of the two aggregation buffers of a vCPU: a hash table from (aggregation, key) to words, in a
// fixed arena of aggsize bytes. The vCPU's firings fill one buffer while the consumer reads and
// clears the other. The engine swaps them. No library serves here: their tables allocate.
// Fire context: find_or_add() yes, everything else no.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "dif/evaluate/lazy_memory.h"
#include "dif/program/program.h"

namespace ringside::dif {

class AggregationBuffer {
 public:
  explicit AggregationBuffer(std::size_t size);

  /// Where the words of this key are; `fresh` when they were just made (and are zero). Empty when
  /// there is no room for a new key.
  struct Slot {
    std::span<std::int64_t> words;
    bool fresh = false;
  };
  Slot find_or_add(std::uint32_t aggregation, std::span<const std::byte> key, std::size_t words);
  /// Keeps a number with the key that was added last.
  void set_order(std::uint64_t order);

  struct Entry {
    std::uint32_t aggregation;
    std::uint64_t order;
    std::span<const std::byte> key;
    std::span<const std::int64_t> words;
  };
  /// In the order in which the keys were added.
  void for_each(const std::function<void(const Entry&)>& visit) const;
  /// Time proportional to the number of entries, so an idle buffer costs nothing.
  void clear();

 private:
  static constexpr std::size_t kUnit = 8;  // bytes; what entries and their parts are aligned to
  /// At the head of each entry; key and words follow. Links are offsets in units; 0 is none.
  struct Header {
    std::uint32_t next = 0;
    std::uint32_t hash = 0;
    std::uint32_t aggregation = 0;
    std::uint32_t key_size = 0;
    std::uint32_t words = 0;
    std::uint32_t reserved = 0;
    std::uint64_t order = 0;
  };
  static_assert(sizeof(Header) == 32);

  Header& header(std::size_t offset) const;
  static std::byte* key_of(Header& header);
  static std::span<std::int64_t> words_of(Header& header);
  static std::size_t size_of(const Header& header);
  std::uint32_t& head(std::uint32_t hash) const;

  std::size_t capacity_;
  LazyMemory memory_;
  LazyMemory head_memory_;
  std::uint32_t buckets_ = 0;
  std::uint64_t seed_;
  std::size_t used_ = kUnit;  // so that offset 0 can mean none
  std::size_t newest_ = 0;
};

}  // namespace ringside::dif
