#include "providers/guest_clock.h"

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

std::uint64_t GuestClock::trap_time(std::uint64_t guest_tsc, std::uint64_t host_tsc) {
  const std::uint64_t seen = guest_tsc - host_tsc;
  if (!has_offset_) {
    has_offset_ = true;
    offset_ = seen;
    base_ = seen;  // so the time line goes on where host_time() left it
  } else if (static_cast<std::int64_t>(seen - offset_) > 0) {
    offset_ = seen;
  }
  return rate_.nanoseconds(guest_tsc - base_);
}

std::uint64_t GuestClock::host_time(std::uint64_t host_tsc) {
  const std::uint64_t now = rate_.nanoseconds(host_tsc + offset_ - base_);
  last_host_time_ = std::max(last_host_time_, now);
  return last_host_time_;
}

void GuestClock::paused_between(std::uint64_t before_tsc, std::uint64_t after_tsc) {
  if (has_offset_ && after_tsc > before_tsc) offset_ -= after_tsc - before_tsc;
}

void GuestClock::set_wall(std::uint64_t host_tsc, std::int64_t realtime) {
  wall_tsc_ = host_tsc;
  wall_ = realtime;
}

std::int64_t GuestClock::wall_of_host(std::uint64_t host_tsc) const {
  // The host's TSCs of one machine may differ by a hair between its CPUs.
  if (host_tsc < wall_tsc_) return wall_;
  return wall_ + static_cast<std::int64_t>(rate_.nanoseconds(host_tsc - wall_tsc_));
}

}  // namespace ringside::providers
