#include "dif/engine/record_buffer.h"

#include <algorithm>

#include "vmm/base/align.h"

namespace ringside::dif {

namespace {
constexpr std::uint32_t kGapStep = sizeof(std::uint32_t);  // a gap is filled word by word
constexpr std::size_t kMostAligned = 8;

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}
}  // namespace

std::span<std::byte> RecordBuffer::reserve(EcbId ecb, Room room) {
  const RecordShape& shape = (*shapes_)[ecb.value];
  const auto at = place(shape.size, shape.alignment, room);
  if (!at) return {};
  reserved_ecb_ = ecb;
  reserved_at_ = *at;
  return memory_.subspan(*at + kRecordHeaderSize, shape.data_size);
}

/// Where `size` bytes may go; the ring has made room for them then.
std::optional<std::size_t> RecordBuffer::place(std::size_t size, std::size_t alignment, Room room) {
  const std::size_t at = round_up(used_, alignment);
  if (policy_ == BufferPolicy::Ring) return place_in_ring(at, size);
  const bool fill = policy_ == BufferPolicy::Fill;
  const bool keeps_room = fill && room != Room::Final;
  const std::size_t limit = memory_.size() - (keeps_room ? std::min(reserve_, memory_.size()) : 0);
  const bool full = keeps_room && filled_;
  if (!full && at <= limit && size <= limit - at) return at;
  filled_ = fill;
  return std::nullopt;
}

std::optional<std::size_t> RecordBuffer::place_in_ring(std::size_t at, std::size_t size) {
  const std::size_t limit = memory_.size();
  if (size > limit) return std::nullopt;
  if (at > limit || size > limit - at) {  // the next lap: records are never split
    lap_end_ = used_;
    used_ = oldest_ = at = 0;
  }
  while (lap_end_ != 0 && oldest_ < at + size) {
    oldest_ = next_record(memory_, oldest_);
    if (oldest_ >= lap_end_) lap_end_ = oldest_ = 0;
  }
  return at;
}

/// Past the record, or the gap's word, at `at`.
std::size_t RecordBuffer::next_record(std::span<const std::byte> bytes, std::size_t at) const {
  const std::uint32_t ecb = word_at(bytes, at);
  return at + (ecb == 0 ? kGapStep : (*shapes_)[ecb].size);
}

void RecordBuffer::fill_gap(std::size_t end) {
  std::ranges::fill(memory_.subspan(used_, end - used_), std::byte{0});
}

void RecordBuffer::commit(std::uint64_t timestamp) {
  fill_gap(reserved_at_);
  const Header header{reserved_ecb_.value, static_cast<std::uint32_t>(timestamp >> 32),
                      static_cast<std::uint32_t>(timestamp)};
  std::memcpy(memory_.data() + reserved_at_, &header, sizeof header);
  used_ = reserved_at_ + (*shapes_)[reserved_ecb_.value].size;
}

/// The other buffer is no ring: its records are [0, used_).
bool RecordBuffer::append(const RecordBuffer& other, Room room) {
  if (other.used_ == 0) return true;
  const auto at = place(other.used_, kMostAligned, room);
  if (!at) return false;
  fill_gap(*at);
  std::ranges::copy(other.memory_.first(other.used_), memory_.subspan(*at).begin());
  used_ = *at + other.used_;
  return true;
}

void RecordBuffer::clear() {
  used_ = oldest_ = lap_end_ = 0;
  filled_ = false;
}

void RecordBuffer::drain(std::uint32_t vcpu, std::vector<std::byte>& storage,
                         std::vector<Record>& records) {
  const auto old = memory_.subspan(oldest_, lap_end_ == 0 ? 0 : lap_end_ - oldest_);
  const auto now = memory_.first(used_);
  storage.assign(old.begin(), old.end());
  storage.insert(storage.end(), now.begin(), now.end());
  for (std::size_t at = 0; at < storage.size(); at = next_record(storage, at)) {
    if (word_at(storage, at) == 0) continue;
    Header header;
    std::memcpy(&header, storage.data() + at, sizeof header);
    records.push_back({EcbId{header.ecb}, vcpu,
                       std::uint64_t{header.timestamp_high} << 32 | header.timestamp_low,
                       std::span<const std::byte>(storage).subspan(
                           at + kRecordHeaderSize, (*shapes_)[header.ecb].data_size)});
  }
  clear();
}

}  // namespace ringside::dif
