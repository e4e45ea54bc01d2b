#include "vmm/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/check.h"

namespace ringside::vmm {
namespace {

thread_local ReadAhead* of_this_thread = nullptr;

bool on_one_page(GuestPhys a, GuestPhys b) {
  return a.raw() / arch::kPageSize == b.raw() / arch::kPageSize;
}

}  // namespace

ReadAhead::Scope::Scope(ReadAhead& reads) {
  CHECK(of_this_thread == nullptr);
  of_this_thread = &reads;
}

ReadAhead::Scope::~Scope() {
  of_this_thread->drop();
  of_this_thread = nullptr;
}

ReadAhead::Pause::Pause() : paused_(std::exchange(of_this_thread, nullptr)) {}

ReadAhead::Pause::~Pause() {
  of_this_thread = paused_;
}

ReadAhead* ReadAhead::of_thread(const GuestMemory& memory) {
  ReadAhead* const reads = of_this_thread;
  return reads != nullptr && reads->memory_ == &memory ? reads : nullptr;
}

std::span<const GuestMemory::Part> ReadAhead::parts(unsigned firings) {
  drop();
  const auto used = std::span(ranges_).first(count_);
  const auto kept = std::remove_if(used.begin(), used.end(), [&](const Range& range) {
    return firing_ - range.firing >= firings;
  });
  count_ = static_cast<std::size_t>(kept - used.begin());
  for (std::size_t i = 0; i < count_; ++i) {
    parts_[i] = {ranges_[i].at, std::span(bytes_[i]).first(ranges_[i].size)};
  }
  return std::span(parts_).first(count_);
}

void ReadAhead::arrived() {
  for (Range& range : std::span(ranges_).first(count_)) {
    range.copied_at = range.at;
    range.copied = range.size;
  }
}

void ReadAhead::drop() {
  for (Range& range : std::span(ranges_).first(count_)) range.copied = 0;
}

void ReadAhead::forget() {
  count_ = 0;
}

bool ReadAhead::serve(GuestPhys at, std::span<std::byte> out) {
  for (std::size_t i = 0; i < count_; ++i) {
    Range& range = ranges_[i];
    const std::uint64_t offset = at.offset_from(range.copied_at);
    if (offset >= range.copied || out.size() > range.copied - offset) continue;
    std::memcpy(out.data(), bytes_[i].data() + offset, out.size());
    range.firing = firing_;
    return true;
  }
  return false;
}

/// The range that takes it: one nearby that can be widened, a new one, or the one that was not read
/// for the longest time. Null when all have been read in this firing.
ReadAhead::Range* ReadAhead::room_for(GuestPhys at, std::size_t size) {
  for (Range& range : std::span(ranges_).first(count_)) {
    if (!on_one_page(range.at, at)) continue;
    const GuestPhys begin = std::min(range.at, at);
    const std::uint64_t end =
        std::max(range.at.offset_from(begin) + range.size, at.offset_from(begin) + size);
    if (end > kMostOfRange) continue;
    range.at = begin;
    range.size = end;
    return &range;
  }
  Range* room = nullptr;
  if (count_ < kMostRanges) {
    room = &ranges_[count_++];
  } else {
    room = &*std::ranges::min_element(ranges_, {}, &Range::firing);
    if (room->firing == firing_) return nullptr;
  }
  *room = Range{at, size, firing_, at, 0};
  return room;
}

void ReadAhead::note(GuestPhys at, std::size_t size) {
  if (size == 0 || size > kMostOfRead) return;
  if (Range* const range = room_for(at, size)) range->firing = firing_;
}

void ReadAhead::written(GuestPhys at, std::size_t size) {
  for (Range& range : std::span(ranges_).first(count_)) {
    const bool apart = !at.is_in(range.copied_at, range.copied) && !range.copied_at.is_in(at, size);
    if (!apart) range.copied = 0;
  }
}

}  // namespace ringside::vmm
