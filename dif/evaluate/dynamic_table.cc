#include "dif/evaluate/dynamic_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <random>
#include <utility>

#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace {
constexpr std::size_t kLargestTable = std::size_t{1} << 35;  // units fit 32 bits with room to spare
/// A thread seldom has many elements, so each of the threads' parts has an eighth of the buckets.
constexpr std::size_t kPartShare = 8;
constexpr std::size_t kBucketShares = kPartShare + SharedLocks::kShards;
}  // namespace

std::uint64_t DynamicTable::random_seed() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

DynamicTable::DynamicTable(std::size_t size, unsigned vcpus)
    : capacity_(std::min(size, kLargestTable)),
      memory_(capacity_),
      seed_(random_seed()),
      lists_(vcpus) {
  capacity_ = std::min(capacity_, memory_.bytes().size());
  const std::size_t wanted = std::bit_floor(std::max<std::size_t>(capacity_ / kBytesPerBucket, 16));
  heads_ = LazyMemory(wanted / kPartShare * kBucketShares * sizeof(std::uint32_t));
  const std::size_t granted = heads_.bytes().size() / sizeof(std::uint32_t) / kBucketShares;
  thread_buckets_ =
      static_cast<std::uint32_t>(std::bit_floor(std::min(wanted / kPartShare, granted)));
  buckets_ = thread_buckets_ * static_cast<std::uint32_t>(kPartShare);
}

unsigned DynamicTable::part_of(std::uint64_t thread) const {
  // Twice: for some seeds, the products of threads that follow each other share their lowest bits.
  return static_cast<unsigned>(mix_hash(mix_hash(thread, seed_), seed_) % SharedLocks::kShards);
}

std::size_t DynamicTable::class_size(std::size_t size_class) {
  const std::size_t step = size_class / 2;
  return size_class % 2 == 0 ? std::size_t{48} << step : std::size_t{64} << step;
}

std::size_t DynamicTable::class_of(std::size_t size) {
  std::size_t c = 0;
  while (c + 1 < kClasses && class_size(c) < size) ++c;
  return c;
}

DynamicTable::Chunk DynamicTable::chunk(std::uint32_t unit) const {
  Chunk copy;
  std::memcpy(&copy, memory_.bytes().data() + unit * kUnit, sizeof copy);
  return copy;
}

void DynamicTable::put(std::uint32_t unit, const Chunk& chunk) {
  std::memcpy(memory_.bytes().data() + unit * kUnit, &chunk, sizeof chunk);
}

std::span<const std::byte> DynamicTable::key_of(std::uint32_t unit, const Chunk& chunk) const {
  return memory_.bytes().subspan(unit * kUnit + sizeof(Chunk) + round_up(chunk.data_size, 8),
                                 chunk.key_size);
}

std::uint32_t DynamicTable::head(std::uint32_t bucket) const {
  std::uint32_t unit;
  std::memcpy(&unit, heads_.bytes().data() + bucket * sizeof unit, sizeof unit);
  return unit;
}

void DynamicTable::set_head(std::uint32_t bucket, std::uint32_t unit) {
  std::memcpy(heads_.bytes().data() + bucket * sizeof unit, &unit, sizeof unit);
}

std::uint32_t DynamicTable::lookup(std::span<const std::byte> key, std::uint32_t hash,
                                   unsigned part) const {
  for (std::uint32_t unit = head(bucket_of(hash, part)); unit != 0;) {
    const Chunk c = chunk(unit);
    if (c.hash == hash && c.key_size == key.size() &&
        is_same_key(key_of(unit, c).data(), key.data(), key.size())) {
      return unit;
    }
    unit = c.next;
  }
  return 0;
}

std::optional<std::uint64_t> DynamicTable::find(std::span<const std::byte> key,
                                                unsigned part) const {
  const std::uint32_t unit = lookup(key, hash_bytes(key, seed_), part);
  if (unit == 0) return std::nullopt;
  return unit * kUnit + sizeof(Chunk);
}

/// Memory that nobody had before.
std::uint32_t DynamicTable::take_fresh(std::size_t size_class) {
  const std::size_t bytes = class_size(size_class);
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > capacity_ || used > capacity_ - bytes) return 0;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  const auto unit = static_cast<std::uint32_t>(used / kUnit);
  put(unit, Chunk{.size_class = static_cast<std::uint32_t>(size_class)});
  return unit;
}

/// Memory of one of these classes that is free again.
std::uint32_t DynamicTable::take_free(Lists& lists, std::size_t smallest, std::size_t largest) {
  const std::lock_guard lock(lists.lock);
  for (std::size_t c = smallest; c <= largest; ++c) {
    const std::uint32_t unit = lists.free[c];
    if (unit == 0) continue;
    lists.free[c] = chunk(unit).next;
    if (lists.free[c] == 0) look_whether_short();
    return unit;
  }
  return 0;
}

/// Once no more than an eighth of the memory is fresh: what is cleaned now is free two firings
/// later.
void DynamicTable::look_whether_short() {
  if (used_.load(std::memory_order_relaxed) < capacity_ - capacity_ / 8) return;
  const bool helps = std::ranges::any_of(
      lists_, [](const Lists& lists) { return lists.has_erased.load(std::memory_order_relaxed); });
  if (helps) runs_short_.store(true, std::memory_order_relaxed);
}

/// A chunk for `size` bytes with its size_class set; 0 when there is none.
std::uint32_t DynamicTable::take_chunk(std::size_t size, unsigned vcpu) {
  const std::size_t wanted = class_of(size);
  if (class_size(wanted) < size) return 0;
  if (const std::uint32_t unit = take_free(lists_[vcpu], wanted, wanted)) return unit;
  look_whether_short();
  if (const std::uint32_t unit = take_fresh(wanted)) return unit;
  for (std::size_t n = 0; n < lists_.size(); ++n) {
    const std::uint32_t unit = take_free(lists_[(vcpu + n) % lists_.size()], wanted, kClasses - 1);
    if (unit != 0) return unit;
  }
  return 0;
}

std::optional<std::uint64_t> DynamicTable::find_or_add(std::span<const std::byte> key,
                                                       std::size_t data_size, Place place) {
  const std::uint32_t hash = hash_bytes(key, seed_);
  if (const std::uint32_t unit = lookup(key, hash, place.part); unit != 0) {
    return unit * kUnit + sizeof(Chunk);
  }
  const std::size_t data_room = round_up(data_size, 8);
  const std::uint32_t unit = take_chunk(sizeof(Chunk) + data_room + key.size(), place.vcpu);
  if (unit == 0) return std::nullopt;
  const std::uint32_t bucket = bucket_of(hash, place.part);
  put(unit, Chunk{.next = head(bucket),
                  .hash = hash,
                  .key_size = static_cast<std::uint32_t>(key.size()),
                  .data_size = static_cast<std::uint32_t>(data_size),
                  .size_class = chunk(unit).size_class});
  const auto data = memory_.bytes().subspan(unit * kUnit + sizeof(Chunk));
  std::ranges::fill(data.first(data_room), std::byte{0});
  std::ranges::copy(key, data.subspan(data_room).begin());
  set_head(bucket, unit);
  return unit * kUnit + sizeof(Chunk);
}

void DynamicTable::erase(std::span<const std::byte> key, Place place) {
  const std::uint32_t hash = hash_bytes(key, seed_);
  std::uint32_t before = 0;
  for (std::uint32_t unit = head(bucket_of(hash, place.part)); unit != 0;) {
    const Chunk c = chunk(unit);
    if (c.hash != hash || !std::ranges::equal(key_of(unit, c), key)) {
      before = unit;
      unit = c.next;
      continue;
    }
    if (before == 0) {
      set_head(bucket_of(hash, place.part), c.next);
    } else {
      Chunk previous = chunk(before);
      previous.next = c.next;
      put(before, previous);
    }
    make_dirty(lists_[place.vcpu], unit, c);
    return;
  }
}

void DynamicTable::make_dirty(Lists& lists, std::uint32_t unit, Chunk erased) {
  const std::lock_guard lock(lists.lock);
  Chain& dirty = lists.dirty[erased.size_class];
  erased.next = dirty.first;
  dirty.first = unit;
  if (dirty.last == 0) dirty.last = unit;
  put(unit, erased);
  lists.has_erased.store(true, std::memory_order_relaxed);
}

void DynamicTable::clean(unsigned vcpu) {
  Lists& lists = lists_[vcpu];
  if (!lists.has_erased.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(lists.lock);
  bool is_rinsing = false;
  for (std::size_t c = 0; c < kClasses; ++c) {
    if (const Chain clean = lists.rinsing[c]; clean.last != 0) {
      Chunk last = chunk(clean.last);
      last.next = lists.free[c];
      put(clean.last, last);
      lists.free[c] = clean.first;
    }
    lists.rinsing[c] = std::exchange(lists.dirty[c], {});
    is_rinsing |= lists.rinsing[c].first != 0;
  }
  lists.has_erased.store(is_rinsing, std::memory_order_relaxed);
}

DynamicTable::Full DynamicTable::full_because() const {
  const auto any = [](const Chains& chains) {
    return std::ranges::any_of(chains, [](const Chain& chain) { return chain.first != 0; });
  };
  Full because = Full::Used;
  for (const Lists& lists : lists_) {
    const std::lock_guard lock(lists.lock);
    if (any(lists.dirty)) return Full::Dirty;
    if (any(lists.rinsing)) because = Full::Rinsing;
  }
  return because;
}

}  // namespace ringside::dif
