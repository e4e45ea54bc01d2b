#include "dif/engine/aggregate.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "dif/evaluate/dynamic_table.h"
#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace {
constexpr std::size_t kLargestBuffer = std::size_t{1} << 34;  // links are 32 bits of 8-byte units

constexpr std::size_t kWord = 8;
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

std::span<std::uint32_t> AggregationBuffer::heads() const {
  // SAFETY: page-aligned zeroed memory that only ever holds these integers.
  return {reinterpret_cast<std::uint32_t*>(head_memory_.bytes().data()), buckets_};
}

AggregationBuffer::Header AggregationBuffer::header(std::size_t offset) const {
  Header copy;
  std::memcpy(&copy, memory_.bytes().data() + offset, sizeof copy);
  return copy;
}

std::span<std::int64_t> AggregationBuffer::words_at(std::size_t offset, const Header& h) const {
  std::byte* const at =
      memory_.bytes().data() + offset + sizeof(Header) + round_up(h.key_size, kWord);
  // SAFETY: 8-aligned, inside the arena, and only ever written as these words.
  return {reinterpret_cast<std::int64_t*>(at), h.words};
}

AggregationBuffer::Slot AggregationBuffer::find_or_add(std::uint32_t aggregation,
                                                       std::span<const std::byte> key,
                                                       std::size_t words) {
  const std::uint32_t hash = hash_bytes(key, seed_ + aggregation);
  std::uint32_t& head = heads()[hash & (buckets_ - 1)];
  for (std::uint32_t link = head; link != 0;) {
    const std::size_t offset = std::size_t{link} * 8;
    const Header h = header(offset);
    const auto* stored = memory_.bytes().data() + offset + sizeof(Header);
    if (h.hash == hash && h.aggregation == aggregation && h.key_size == key.size() &&
        (key.empty() || std::memcmp(stored, key.data(), key.size()) == 0)) {
      return {words_at(offset, h), false};
    }
    link = h.next;
  }
  const std::size_t size =
      sizeof(Header) + round_up(key.size(), kWord) + words * sizeof(std::int64_t);
  if (used_ + size > capacity_) return {};
  const Header h{.next = head,
                 .hash = hash,
                 .aggregation = aggregation,
                 .key_size = static_cast<std::uint32_t>(key.size()),
                 .words = static_cast<std::uint32_t>(words)};
  std::memcpy(memory_.bytes().data() + used_, &h, sizeof h);
  std::ranges::copy(key, memory_.bytes().subspan(used_ + sizeof h).begin());
  const auto slot = words_at(used_, h);
  std::ranges::fill(slot, 0);  // the arena was used before the last clear()
  head = static_cast<std::uint32_t>(used_ / 8);
  newest_ = used_;
  used_ += size;
  return {slot, true};
}

void AggregationBuffer::set_order(std::uint64_t order) {
  std::memcpy(memory_.bytes().data() + newest_ + offsetof(Header, order), &order, sizeof order);
}

void AggregationBuffer::for_each(const std::function<void(const Entry&)>& visit) const {
  for (std::size_t at = 8; at < used_;) {
    const Header h = header(at);
    const auto key = memory_.bytes().subspan(at + sizeof h, h.key_size);
    visit({h.aggregation, h.order, key, words_at(at, h)});
    at += sizeof h + round_up(h.key_size, kWord) + h.words * sizeof(std::int64_t);
  }
}

void AggregationBuffer::clear() {
  for (std::size_t at = 8; at < used_;) {
    const Header h = header(at);
    heads()[h.hash & (buckets_ - 1)] = 0;
    at += sizeof h + round_up(h.key_size, kWord) + h.words * sizeof(std::int64_t);
  }
  used_ = 8;
}

}  // namespace ringside::dif
