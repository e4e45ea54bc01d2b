#include "providers/fire/guest_clock.h"

#include <algorithm>

namespace ringside::providers {

TickRate::TickRate(std::uint64_t hertz)
    : hertz_(std::max<std::uint64_t>(hertz, 1'000'000)),
      multiplier_(
          static_cast<std::uint64_t>((static_cast<Uint128>(1'000'000'000) << 32) / hertz_)) {}

std::uint64_t choose_hertz(std::uint64_t host_hertz, std::optional<std::uint32_t> guest_khz) {
  constexpr std::uint64_t kSlowest = 100'000'000, kFastest = 20'000'000'000;
  if (!guest_khz) return host_hertz;
  const std::uint64_t guest_hertz = std::uint64_t{*guest_khz} * 1000;
  if (guest_hertz < kSlowest || guest_hertz > kFastest) return host_hertz;
  const std::uint64_t apart =
      guest_hertz > host_hertz ? guest_hertz - host_hertz : host_hertz - guest_hertz;
  return apart > host_hertz / 10 ? guest_hertz : host_hertz;
}

std::uint64_t GuestClock::guest_ticks(std::uint64_t host_tsc) const {
  if (rate_.hertz() == host_rate_.hertz()) return host_tsc;
  return static_cast<std::uint64_t>(static_cast<Uint128>(host_tsc) * rate_.hertz() /
                                    host_rate_.hertz());
}

/// The time line at `ticks` of the guest; it has no time before 0.
std::uint64_t GuestClock::time_at(std::uint64_t ticks) const {
  const std::uint64_t since = ticks - base_;
  return static_cast<std::int64_t>(since) < 0 ? 0 : rate_.nanoseconds(since);
}

/// Behind the estimate by a late look, or ahead of it because all looks so far were late, or
/// because a pause has lowered it by too much: never ahead of the line as the first trap has set
/// it.
bool GuestClock::believes(std::uint64_t seen) const {
  const auto ahead = static_cast<std::int64_t>(seen - offset_);
  const auto shift = static_cast<std::int64_t>(offset_ - base_);  // below 0 by pauses
  return ahead >= -believed_ && ahead <= believed_ - shift;
}

bool GuestClock::agrees_again(std::uint64_t seen) {
  const auto apart = static_cast<std::int64_t>(seen - candidate_);
  agreeing_ = agreeing_ > 0 && apart >= -believed_ && apart <= believed_ ? agreeing_ + 1 : 1;
  candidate_ = seen;
  return agreeing_ == kAgreeing;
}

std::uint64_t GuestClock::trap_time(std::uint64_t guest_tsc, std::uint64_t host_tsc) {
  const std::uint64_t host_ticks = guest_ticks(host_tsc);
  const std::uint64_t seen = guest_tsc - host_ticks;
  if (!has_offset_) {
    has_offset_ = true;
    offset_ = seen;
    base_ = seen;  // so the time line goes on where host_time() left it
  } else if (believes(seen)) {
    agreeing_ = 0;
    if (static_cast<std::int64_t>(seen - offset_) > 0) offset_ = seen;
  } else {
    disbelieved_.fetch_add(1, std::memory_order_relaxed);
    if (!agrees_again(seen)) return time_at(host_ticks + offset_);
    agreeing_ = 0;
    base_ += seen - offset_;
    offset_ = seen;
  }
  return time_at(guest_tsc);
}

std::uint64_t GuestClock::host_time(std::uint64_t host_tsc) {
  last_host_time_ = std::max(last_host_time_, time_at(guest_ticks(host_tsc) + offset_));
  return last_host_time_;
}

void GuestClock::paused_between(std::uint64_t before_tsc, std::uint64_t after_tsc) {
  if (!has_offset_ || after_tsc <= before_tsc) return;
  offset_ -= guest_ticks(after_tsc) - guest_ticks(before_tsc);
}

void GuestClock::set_wall(std::uint64_t host_tsc, std::int64_t realtime) {
  wall_tsc_ = host_tsc;
  wall_ = realtime;
}

std::int64_t GuestClock::wall_of_host(std::uint64_t host_tsc) const {
  // The host's TSCs of one machine may differ by a hair between its CPUs.
  if (host_tsc < wall_tsc_) return wall_;
  return wall_ + static_cast<std::int64_t>(host_rate_.nanoseconds(host_tsc - wall_tsc_));
}

}  // namespace ringside::providers
