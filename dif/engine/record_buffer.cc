#include "dif/engine/record_buffer.h"

#include <algorithm>

#include "vmm/base/numbers.h"

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
  const bool keeps_room = room != (fill ? Room::Final : Room::Order);
  const std::size_t limit = memory_.size() - (keeps_room ? std::min(reserve_, memory_.size()) : 0);
  const bool full = fill && keeps_room && filled_;
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

/// Past the record, the group, or the gap's word, at `at`.
std::size_t RecordBuffer::next_record(std::span<const std::byte> bytes, std::size_t at) const {
  const std::uint32_t ecb = word_at(bytes, at);
  if (ecb == kGroup) return at + word_at(bytes, at + sizeof ecb);
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

/// The bytes that a speculation's buffer takes in a group. It is no ring: its records are
/// [0, used_).
std::size_t RecordBuffer::part_size() const {
  return used_ == 0 ? 0 : sizeof(PartHeader) + round_up(used_, kMostAligned);
}

bool RecordBuffer::append_group(std::span<const RecordBuffer> buffers, std::uint64_t now,
                                Room room) {
  std::size_t size = 0;
  for (const RecordBuffer& buffer : buffers) size += buffer.part_size();
  if (size == 0) return true;
  size += sizeof(GroupHeader);
  const auto at = size < kGroup ? place(size, kMostAligned, room) : std::nullopt;
  if (!at) return false;
  fill_gap(*at);
  std::byte* to = memory_.data() + *at;
  const auto put = [&to](const void* bytes, std::size_t count) {
    std::memcpy(to, bytes, count);
    to += count;
  };
  const GroupHeader header{kGroup, static_cast<std::uint32_t>(size), now};
  put(&header, sizeof header);
  for (std::uint32_t vcpu = 0; vcpu < buffers.size(); ++vcpu) {
    const RecordBuffer& buffer = buffers[vcpu];
    if (buffer.used_ == 0) continue;
    const PartHeader part{vcpu, static_cast<std::uint32_t>(buffer.used_)};
    put(&part, sizeof part);
    put(buffer.memory_.data(), buffer.used_);
    to += round_up(buffer.used_, kMostAligned) - buffer.used_;
  }
  used_ = *at + size;
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
  split_records(storage, vcpu, 0, records);
  clear();
}

void RecordBuffer::split_records(std::span<const std::byte> bytes, std::uint32_t vcpu,
                                 std::uint64_t committed, std::vector<Record>& records) const {
  for (std::size_t at = 0; at < bytes.size(); at = next_record(bytes, at)) {
    const std::uint32_t ecb = word_at(bytes, at);
    if (ecb == kGroup) split_group(bytes.subspan(at, next_record(bytes, at) - at), records);
    if (ecb == 0 || ecb == kGroup) continue;
    Header header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    records.push_back(
        {EcbId{ecb}, vcpu, std::uint64_t{header.timestamp_high} << 32 | header.timestamp_low,
         bytes.subspan(at + kRecordHeaderSize, (*shapes_)[ecb].data_size), committed});
  }
}

void RecordBuffer::split_group(std::span<const std::byte> group,
                               std::vector<Record>& records) const {
  GroupHeader header;
  std::memcpy(&header, group.data(), sizeof header);
  const std::size_t first = records.size();
  for (std::size_t at = sizeof header; at < group.size();) {
    PartHeader part;
    std::memcpy(&part, group.data() + at, sizeof part);
    split_records(group.subspan(at + sizeof part, part.size), part.vcpu, header.committed, records);
    at += sizeof part + round_up(std::size_t{part.size}, kMostAligned);
  }
  std::ranges::stable_sort(records.begin() + static_cast<std::ptrdiff_t>(first), records.end(), {},
                           &Record::timestamp);
}

}  // namespace ringside::dif
