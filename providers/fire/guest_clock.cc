#include "providers/fire/guest_clock.h"

#include <algorithm>
#include <mutex>

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

/// A writer that lost its CPU is waited for, at its lock, after so many looks.
constexpr unsigned kLooks = 64;

template <class T>
T GuestClock::Published<T>::read_alone() const {
  return std::apply(
      [](const auto&... words) { return T::of({words.load(std::memory_order_acquire)...}); },
      words_);
}

template <class T>
T GuestClock::Published<T>::read(dif::BriefLock& lock) const {
  for (unsigned n = 0; n < kLooks; ++n) {
    const std::uint64_t before = version_.load(std::memory_order_acquire);
    const T value = read_alone();  // acquiring each word keeps the second look after it
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return value;
    __builtin_ia32_pause();
  }
  const std::lock_guard writing(lock);
  return read_alone();
}

template <class T>
void GuestClock::Published<T>::write(const T& value) {
  const typename T::Words words = value.words();
  version_.fetch_add(1, std::memory_order_relaxed);
  // Releasing each word keeps it after the odd version.
  for (std::size_t n = 0; n < kWords; ++n) words_[n].store(words[n], std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

/// The time line at `ticks` of the guest; it has no time before 0.
std::uint64_t GuestClock::time_at(const Line& line, std::uint64_t ticks) const {
  const std::uint64_t since = ticks - line.base;
  return static_cast<std::int64_t>(since) < 0 ? 0 : rate_.nanoseconds(since);
}

/// Behind the estimate by a late look, or ahead of it because all looks so far were late, or
/// because a pause has lowered it by too much: never ahead of the line as the first trap has set
/// it.
bool GuestClock::believes(const Line& line, std::uint64_t seen) const {
  const auto ahead = static_cast<std::int64_t>(seen - line.offset);
  const auto shift = static_cast<std::int64_t>(line.offset - line.base);  // below 0 by pauses
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
  const Line line = line_.read(lock_);
  const bool later = static_cast<std::int64_t>(seen - line.offset) <= 0;
  if (line.trust == Trust::Believed && later && believes(line, seen)) {
    return time_at(line, guest_tsc);
  }
  return learn(guest_tsc, host_ticks);
}

/// The time of a trap that has something to say about the line.
std::uint64_t GuestClock::learn(std::uint64_t guest_tsc, std::uint64_t host_ticks) {
  const std::lock_guard writing(lock_);
  Line line = line_.read_alone();
  const std::uint64_t seen = guest_tsc - host_ticks;
  std::uint64_t ticks = guest_tsc;
  if (line.trust == Trust::Unknown) {
    line.offset = seen;
    line.base = seen;  // so the time line goes on where host_time() left it
  } else if (believes(line, seen)) {
    agreeing_ = 0;
    if (static_cast<std::int64_t>(seen - line.offset) > 0) line.offset = seen;
  } else {
    disbelieved_.fetch_add(1, std::memory_order_relaxed);
    if (agrees_again(seen)) {
      agreeing_ = 0;
      line.base += seen - line.offset;
      line.offset = seen;
    } else {
      ticks = host_ticks + line.offset;
    }
  }
  line.trust = agreeing_ == 0 ? Trust::Believed : Trust::Doubted;
  line_.write(line);
  return time_at(line, ticks);
}

std::uint64_t GuestClock::host_time(std::uint64_t host_tsc) {
  const std::lock_guard writing(lock_);
  const Line line = line_.read_alone();
  last_host_time_ = std::max(last_host_time_, time_at(line, guest_ticks(host_tsc) + line.offset));
  return last_host_time_;
}

void GuestClock::paused_between(std::uint64_t before_tsc, std::uint64_t after_tsc) {
  const std::lock_guard writing(lock_);
  Line line = line_.read_alone();
  if (line.trust == Trust::Unknown || after_tsc <= before_tsc) return;
  line.offset -= guest_ticks(after_tsc) - guest_ticks(before_tsc);
  line_.write(line);
}

void GuestClock::set_wall(std::uint64_t host_tsc, std::int64_t realtime) {
  const std::lock_guard writing(lock_);
  wall_.write({host_tsc, realtime});
}

std::int64_t GuestClock::wall_of_host(std::uint64_t host_tsc) const {
  const Wall wall = wall_.read(lock_);
  // The host's TSCs of one machine may differ by a hair between its CPUs.
  if (host_tsc < wall.tsc) return wall.time;
  return wall.time + static_cast<std::int64_t>(host_rate_.nanoseconds(host_tsc - wall.tsc));
}

}  // namespace ringside::providers
