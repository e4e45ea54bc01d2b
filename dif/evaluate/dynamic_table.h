// The memory of dynamic variables (self-> and associative arrays): a chained hash table in one
// fixed arena of dynvarsize bytes. Freed memory is kept by size class; an element may take a chunk
// of a larger class. No library serves here: their tables allocate, and firings may not.
//
// The memory of an erased element is not reused at once, because a firing may still hold its
// address in a register. The memory lies on the dirty list until clean() moves it to the rinsing
// list; the next clean() makes it free. The table's owner calls clean() at cleanrate, and sooner if
// runs_short() says that it helps. clean() takes constant time. full_because() tells what a full
// table still waits for.
//
// For several vCPUs: the table has parts that share no bucket. The thread that holds a part's lock
// (shared_locks.h) may find, add and erase in that part while other threads use other parts. The
// arena belongs to all: each vCPU has its own lists of erased memory, and takes from other vCPUs'
// lists when its own are empty. A vCPU's lists are cleaned between two of its firings, so that no
// firing reuses what it has erased itself.
// Fire context: yes, but for the constructor.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "dif/evaluate/lazy_memory.h"
#include "dif/evaluate/shared_locks.h"
#include "vmm/base/brief_lock.h"

namespace ringside::dif {

// The hash of keys in the tables of dynamic variables and aggregations. Guests choose keys, so each
// factor of a multiplication has the seed in it, which differs in every run: a factor that the
// guest could cancel would let it prepare keys that all collide. Chains are bounded by the tables'
// sizes in any case. Not libhighwayhash: on keys of 8 to 32 bytes it takes 3 to 4 times as long.

__extension__ using Wide = unsigned __int128;

inline std::uint64_t mix_hash(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<Wide>(a ^ 0x9e37'79b9'7f4a'7c15) * (b ^ 0xd6e8'feb8'6659'fd93);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline constexpr std::size_t kKeyWord = sizeof(std::uint64_t);

inline std::uint64_t key_word(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// The last words of a key may overlap those before them: so nothing is done byte by byte but for
/// keys that are shorter than a word.
inline std::uint32_t hash_bytes(std::span<const std::byte> key, std::uint64_t seed) {
  std::uint64_t hash = seed + key.size() * 0x9e37'79b9'7f4a'7c15;
  std::size_t at = 0;
  for (; key.size() - at > 2 * kKeyWord; at += 2 * kKeyWord) {
    hash = mix_hash(hash ^ key_word(&key[at]), seed ^ key_word(&key[at + kKeyWord]));
  }
  std::uint64_t first = 0, last = 0;
  if (key.size() >= kKeyWord) {
    const std::size_t last_word = key.size() - kKeyWord;
    first = key_word(&key[std::min(at, last_word)]);
    last = key_word(&key[last_word]);
  } else {
    for (const std::byte one : key) first = first << 8 | std::to_integer<std::uint64_t>(one);
  }
  hash = mix_hash(hash ^ first, seed ^ last);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

/// Whether two keys of `size` bytes are the same. Most keys are short: a call of memcmp() would
/// take longer than the comparison.
inline bool is_same_key(const std::byte* a, const std::byte* b, std::size_t size) {
  if (size < kKeyWord) return std::equal(a, a + size, b);
  const std::size_t last = size - kKeyWord;
  for (std::size_t at = 0; at < last; at += kKeyWord) {
    if (key_word(a + at) != key_word(b + at)) return false;
  }
  return key_word(a + last) == key_word(b + last);
}

namespace testing {
class StatePeer;
}

/// The table's part that an element belongs to, and the vCPU from whose lists its memory comes.
struct ElementPlace {
  unsigned part = SharedLocks::kShards;  // of associative arrays
  unsigned vcpu = 0;
};

class DynamicTable {
 public:
  explicit DynamicTable(std::size_t size, unsigned vcpus = 1);

  /// The part of associative arrays; those below it are the threads'.
  static constexpr unsigned kArrays = SharedLocks::kShards;
  /// Which of the threads' parts the thread's elements lie in: differs from run to run.
  unsigned part_of(std::uint64_t thread) const;
  using Place = ElementPlace;

  /// The data of the element, as an offset into arena(); empty when there is none.
  std::optional<std::uint64_t> find(std::span<const std::byte> key, unsigned part = kArrays) const;
  /// Finds or makes the element; a new one's data is zero. Empty when the arena is full.
  std::optional<std::uint64_t> find_or_add(std::span<const std::byte> key, std::size_t data_size,
                                           Place place = {});
  void erase(std::span<const std::byte> key, Place place = {});
  /// Cleans the lists of one vCPU, while none of its firings runs.
  void clean(unsigned vcpu = 0);

  /// Whether, since the last call, an element took the last free memory or found none, while erased
  /// elements wait to be cleaned.
  bool runs_short() {
    return runs_short_.load(std::memory_order_relaxed) &&
           runs_short_.exchange(false, std::memory_order_relaxed);
  }

  /// Why find_or_add() found no room.
  enum class Full : std::uint8_t {
    Used,     // by elements
    Dirty,    // elements that were erased since clean()
    Rinsing,  // elements that were erased before that
  };
  Full full_because() const;

  /// Data offsets count from here; 8-aligned.
  std::span<std::byte> arena() const { return memory_.bytes(); }
  /// More buckets than small elements: also those of an AggregationBuffer.
  static constexpr std::size_t kBytesPerBucket = 32;
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

  /// The memory of elements that one vCPU erased.
  struct alignas(64) Lists {
    mutable BriefLock lock;  // taken last of all
    std::array<std::uint32_t, kClasses> free{};
    Chains dirty{}, rinsing{};
    std::atomic<bool> has_erased = false;  // something may be dirty or rinsing
  };

  static std::size_t class_size(std::size_t size_class);
  static std::size_t class_of(std::size_t size);
  Chunk chunk(std::uint32_t unit) const;
  void put(std::uint32_t unit, const Chunk& chunk);
  std::span<const std::byte> key_of(std::uint32_t unit, const Chunk& chunk) const;
  std::uint32_t bucket_of(std::uint32_t hash, unsigned part) const {
    if (part == kArrays) return hash & (buckets_ - 1);
    return buckets_ + part * thread_buckets_ + (hash & (thread_buckets_ - 1));
  }
  std::uint32_t head(std::uint32_t bucket) const;
  void set_head(std::uint32_t bucket, std::uint32_t unit);
  std::uint32_t lookup(std::span<const std::byte> key, std::uint32_t hash, unsigned part) const;
  std::uint32_t take_chunk(std::size_t size, unsigned vcpu);
  std::uint32_t take_fresh(std::size_t size_class);
  std::uint32_t take_free(Lists& lists, std::size_t smallest, std::size_t largest);
  void look_whether_short();
  void make_dirty(Lists& lists, std::uint32_t unit, Chunk erased);

  std::size_t capacity_;
  LazyMemory memory_;  // chunks; unit 0 stays unused, so that 0 can mean none
  LazyMemory heads_;   // bucket heads, one u32 each: of the arrays, then of each threads' part
  std::uint32_t buckets_ = 0, thread_buckets_ = 0;  // of the arrays, and of one part
  std::uint64_t seed_;
  std::atomic<std::size_t> used_ = kUnit;  // bytes of memory_ ever handed out
  std::vector<Lists> lists_;               // by vCPU
  std::atomic<bool> runs_short_ = false;
};

}  // namespace ringside::dif
