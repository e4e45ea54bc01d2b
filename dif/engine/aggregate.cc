#include "dif/engine/aggregate.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "dif/evaluate/dynamic_table.h"
#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace {
constexpr std::size_t kLargestBuffer = std::size_t{1} << 34;  // links are 32 bits of units
}  // namespace

AggregationBuffer::AggregationBuffer(std::size_t size)
    : capacity_(std::min(size, kLargestBuffer)),
      memory_(capacity_),
      seed_(DynamicTable::random_seed()) {
  capacity_ = std::min(capacity_, memory_.bytes().size());
  const std::size_t wanted =
      std::bit_floor(std::max<std::size_t>(capacity_ / DynamicTable::kBytesPerBucket, 1));
  head_memory_ = LazyMemory(wanted * sizeof(std::uint32_t));
  buckets_ = static_cast<std::uint32_t>(
      std::bit_floor(std::min(wanted, head_memory_.bytes().size() / sizeof(std::uint32_t))));
}

std::uint32_t& AggregationBuffer::head(std::uint32_t hash) const {
  // SAFETY: page-aligned zeroed memory that only ever holds these integers.
  return reinterpret_cast<std::uint32_t*>(head_memory_.bytes().data())[hash & (buckets_ - 1)];
}

AggregationBuffer::Header& AggregationBuffer::header(std::size_t offset) const {
  // SAFETY: 8-aligned, inside the arena, and only ever written as a header.
  return *reinterpret_cast<Header*>(memory_.bytes().data() + offset);
}

std::byte* AggregationBuffer::key_of(Header& h) {
  // SAFETY: the key follows its header.
  return reinterpret_cast<std::byte*>(&h + 1);
}

std::span<std::int64_t> AggregationBuffer::words_of(Header& h) {
  // SAFETY: 8-aligned, inside the arena, and only ever written as these words.
  return {reinterpret_cast<std::int64_t*>(key_of(h) + round_up(h.key_size, kKeyWord)), h.words};
}

std::size_t AggregationBuffer::size_of(const Header& h) {
  return sizeof h + round_up(h.key_size, kKeyWord) + h.words * sizeof(std::int64_t);
}

AggregationBuffer::Slot AggregationBuffer::find_or_add(std::uint32_t aggregation,
                                                       std::span<const std::byte> key,
                                                       std::size_t words) {
  const std::uint32_t hash = hash_bytes(key, seed_ + aggregation);
  std::uint32_t& first = head(hash);
  for (std::uint32_t link = first; link != 0;) {
    Header& h = header(std::size_t{link} * kUnit);
    if (h.hash == hash && h.aggregation == aggregation && h.key_size == key.size() &&
        is_same_key(key_of(h), key.data(), key.size())) {
      return {words_of(h), false};
    }
    link = h.next;
  }
  const Header fresh{.next = first,
                     .hash = hash,
                     .aggregation = aggregation,
                     .key_size = static_cast<std::uint32_t>(key.size()),
                     .words = static_cast<std::uint32_t>(words)};
  if (used_ + size_of(fresh) > capacity_) return {};
  Header& h = header(used_);
  h = fresh;
  std::ranges::copy(key, key_of(h));
  std::ranges::fill(words_of(h), 0);  // the arena was used before the last clear()
  first = static_cast<std::uint32_t>(used_ / kUnit);
  newest_ = used_;
  used_ += size_of(h);
  return {words_of(h), true};
}

void AggregationBuffer::set_order(std::uint64_t order) {
  header(newest_).order = order;
}

void AggregationBuffer::for_each(const std::function<void(const Entry&)>& visit) const {
  for (std::size_t at = kUnit; at < used_; at += size_of(header(at))) {
    Header& h = header(at);
    visit({h.aggregation, h.order, {key_of(h), h.key_size}, words_of(h)});
  }
}

void AggregationBuffer::clear() {
  for (std::size_t at = kUnit; at < used_; at += size_of(header(at))) head(header(at).hash) = 0;
  used_ = kUnit;
}

}  // namespace ringside::dif
