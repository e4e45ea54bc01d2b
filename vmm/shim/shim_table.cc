// In this file, top to bottom: our own copy, the shared table, questions.
#include "vmm/shim/shim_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/check.h"

namespace ringside::vmm {
namespace {

/// The address's low half, which alone is the entry where that is disabled.
std::uint32_t key_of(std::uint64_t entry) {
  return static_cast<std::uint32_t>(entry);
}

/// The highest byte of an enabled entry: whether it records, and by which list.
constexpr unsigned kRecordingShift = 32 + SHIM_SLOT_BITS;
static_assert(kLargeShimBytes <= std::uint64_t{1} << SHIM_SLOT_BITS);

}  // namespace

ShimTable::ShimTable(ShimRegion& region, const ShimPresence& presence, const ShimLayout& layout)
    : region_(region), presence_(presence), layout_(layout), entries_(layout.table_entries) {}

ShimTable::Bucket ShimTable::first_bucket(GuestVirt address) const {
  const std::uint32_t hash = static_cast<std::uint32_t>(address.raw()) * SHIM_HASH;
  return static_cast<std::uint32_t>(std::uint64_t{hash} * layout_.table_entries >> 32);
}

Result<std::optional<ShimTable::Bucket>> ShimTable::insert(GuestVirt address,
                                                           std::uint64_t slot_offset) {
  const auto key = static_cast<std::uint32_t>(address.raw());
  Bucket bucket = first_bucket(address);
  while (entry(bucket) != 0) {
    if (key_of(entry(bucket)) == key) {
      TRY(change_slot(bucket, address, slot_offset));
      return std::nullopt;
    }
    bucket = (bucket + 1) % layout_.table_entries;
  }
  if (count_ >= layout_.most_trap_points()) {
    return fail(ErrorCode::Limit,
                fmt::format("{} trap points are the most that fit: enable fewer probes{}",
                            layout_.most_trap_points(),
                            layout_.ring_count == 0 ? "" : ", or trace with -x record=no"));
  }
  entries_[bucket].store(key | slot_offset << 32, std::memory_order_release);
  ++count_;
  return bucket;
}

Result<void> ShimTable::publish(Bucket bucket) {
  std::uint64_t empty = 0;
  if (presence_.state() != ShimState::There ||
      !region_.replace(place_of(bucket), empty, key_of(entry(bucket)))) {
    return region_gone();
  }
  return {};
}

Result<void> ShimTable::change_slot(Bucket bucket, GuestVirt address, std::uint64_t slot_offset) {
  if (presence_.state() != ShimState::There) return region_gone();
  const std::uint64_t key = key_of(entry(bucket));
  if (region_.load(place_of(bucket)) != key) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is a trap point already", address.raw()));
  }
  entries_[bucket].store(key | slot_offset << 32, std::memory_order_release);
  return {};
}

/// Only our own copy: the guest sees it once the entry is enabled.
Result<void> ShimTable::set_recording(std::span<const GuestVirt> addresses, std::uint8_t list) {
  CHECK(list < SHIM_LISTS);
  const std::uint64_t recording = std::uint64_t{SHIM_ENTRY_RECORDS | list} << kRecordingShift;
  for (const GuestVirt address : addresses) {
    const auto bucket = bucket_of(address);
    if (!bucket || region_.load(place_of(*bucket)) != key_of(entry(*bucket))) {
      return fail(ErrorCode::Invalid,
                  fmt::format("{:#x} is no trap point, or in use already", address.raw()));
    }
    entries_[*bucket].store(entry(*bucket) | recording, std::memory_order_release);
  }
  return {};
}

Result<void> ShimTable::enable(std::span<const GuestVirt> addresses) {
  std::vector<Bucket> buckets;
  for (const GuestVirt address : addresses) {
    const auto bucket = bucket_of(address);
    if (!bucket) {
      return fail(ErrorCode::Invalid, fmt::format("{:#x} is no trap point", address.raw()));
    }
    buckets.push_back(*bucket);
  }
  if (presence_.state() != ShimState::There) return region_gone();
  std::ranges::sort(buckets);
  const bool done = region_.is_mapped() ? enable_in_place(buckets) : enable_by_copies(buckets);
  return done ? Result<void>() : region_gone();
}

bool ShimTable::enable_in_place(std::span<const Bucket> buckets) {
  return std::ranges::all_of(buckets, [this](Bucket bucket) {
    std::uint64_t expected = key_of(entry(bucket));
    return region_.replace(place_of(bucket), expected, entry(bucket)) || expected == entry(bucket);
  });
}

/// One by one they would be two system calls each, and the guest stands still.
bool ShimTable::enable_by_copies(std::span<const Bucket> buckets) {
  constexpr std::uint32_t kAtOnce = SHIM_PAGE / sizeof(std::uint64_t);
  while (!buckets.empty()) {
    const std::uint32_t first = buckets.front() / kAtOnce * kAtOnce;
    std::array<std::uint64_t, kAtOnce> words;
    const auto part = std::span(words).first(std::min(kAtOnce, layout_.table_entries - first));
    if (!region_.read(place_of(first), std::as_writable_bytes(part))) return false;
    for (; !buckets.empty() && buckets.front() - first < part.size();
         buckets = buckets.subspan(1)) {
      const std::uint64_t wanted = entry(buckets.front());
      std::uint64_t& word = part[buckets.front() - first];
      if (word != key_of(wanted) && word != wanted) return false;
      word = wanted;
    }
    if (!region_.write(place_of(first), std::as_bytes(part))) return false;
  }
  return true;
}

std::optional<ShimTable::Bucket> ShimTable::bucket_of(GuestVirt address) const {
  if (!has_key(address)) return std::nullopt;
  const auto key = static_cast<std::uint32_t>(address.raw());
  Bucket bucket = first_bucket(address);
  while (entry(bucket) != 0) {  // ends: a quarter of the buckets is always empty
    if (key_of(entry(bucket)) == key) return bucket;
    bucket = (bucket + 1) % layout_.table_entries;
  }
  return std::nullopt;
}

std::optional<std::uint8_t> ShimTable::list_at(GuestVirt address) const {
  const auto bucket = bucket_of(address);
  const std::uint64_t kind = bucket ? entry(*bucket) >> kRecordingShift : 0;
  if ((kind & SHIM_ENTRY_RECORDS) == 0) return std::nullopt;
  return static_cast<std::uint8_t>(kind & ~SHIM_ENTRY_RECORDS);
}

/// Only the shared word changes: our own copy must stay as it is beside a thread that polls, and a
/// trap that looked its slot up before still waits for an answer.
void ShimTable::disable(GuestVirt address) {
  const auto bucket = bucket_of(address);
  if (!bucket || presence_.state() != ShimState::There) return;
  std::uint64_t expected = entry(*bucket);
  region_.replace(place_of(*bucket), expected, key_of(expected));
}

std::optional<GuestVirt> ShimTable::trap_point_in(std::uint64_t slot_begin,
                                                  std::uint64_t slot_end) const {
  for (Bucket bucket = 0; bucket < layout_.table_entries; ++bucket) {
    const std::uint64_t one = entry(bucket);
    const std::uint64_t slot = slot_of_entry(one);
    if (slot >= slot_begin && slot < slot_end) return trap_point_of_entry(one);
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
