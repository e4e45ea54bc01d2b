#include "providers/clock/guest_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "vmm/base/host_cpu.h"

namespace ringside::providers {

TickRate::TickRate(std::uint64_t hertz)
    : hertz_(std::max<std::uint64_t>(hertz, 1'000'000)),
      multiplier_(
          static_cast<std::uint64_t>((static_cast<Uint128>(1'000'000'000) << 32) / hertz_)) {}

GuestClock::GuestClock(TickRate host, const Config& config)
    : rate_(host),
      believed_(static_cast<std::int64_t>(rate_.hertz() * kBelievedSeconds)),
      scale_(host.hertz(), config.hertz),
      stop_times_(config.stop_times),
      looked_(config.vcpus),
      times_(config.vcpus) {
  for (auto& looked : looked_) looked.store(config.now, std::memory_order_relaxed);
}

/// The line comes nearer the estimate by at most a part in so many of the time that goes by.
constexpr std::uint64_t kFollowing = 500;
/// A writer that lost its CPU is waited for, at its lock, after so many looks.
constexpr unsigned kLooks = 64;

template <class T>
T GuestClock::Published<T>::read_alone() const {
  return std::apply(
      [](const auto&... words) { return T::of({words.load(std::memory_order_acquire)...}); },
      words_);
}

template <class T>
T GuestClock::Published<T>::read(BriefLock& lock) const {
  for (unsigned n = 0; n < kLooks; ++n) {
    const std::uint64_t before = version_.load(std::memory_order_acquire);
    const T value = read_alone();  // acquiring each word keeps the second look after it
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return value;
    cpu_relax();
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

/// The time line at `ticks` of the guest, in the host's; it has no time before 0.
std::uint64_t GuestClock::time_at(const Line& line, std::uint64_t ticks) const {
  const std::uint64_t since = ticks - line.base;
  return static_cast<std::int64_t>(since) < 0 ? 0 : rate_.nanoseconds(since);
}

/// By how much the base may have come nearer the offset since a trap at `guest` ticks.
std::uint64_t GuestClock::moved_since(const Line& line, std::uint64_t guest) {
  const auto ago = static_cast<std::int64_t>(line.moved - (guest - line.offset));
  return line.moved != 0 && ago > 0 ? static_cast<std::uint64_t>(ago) / kFollowing : 0;
}

/// Behind the estimate by a late look, or ahead of it because all looks so far were late, or
/// because its TSC has gone on in stops: never ahead of what the first trap has shown.
bool GuestClock::believes(const Line& line, const Look& look) const {
  const std::uint64_t seen = look.shows();
  const bool waited = look.is_late == IsLate::ForAnyTime && look.before &&
                      static_cast<std::int64_t>(look.shows_at_most() - line.offset) >= 0;
  return (waited || static_cast<std::int64_t>(seen - line.offset) >= -believed_) &&
         static_cast<std::int64_t>(seen - line.believed) <= 0;
}

bool GuestClock::agrees_again(std::uint64_t seen) {
  const auto apart = static_cast<std::int64_t>(seen - candidate_);
  agreeing_ = agreeing_ > 0 && apart >= -believed_ && apart <= believed_ ? agreeing_ + 1 : 1;
  candidate_ = seen;
  return agreeing_ == kAgreeing;
}

std::uint64_t GuestClock::trap_time(std::uint64_t guest_tsc, std::uint64_t host_tsc,
                                    std::uint32_t vcpu, IsLate is_late) {
  Look look{.guest_tsc = guest_tsc, .host = host_tsc, .is_late = is_late};
  if (vcpu < looked_.size()) {
    const std::uint64_t before = looked_[vcpu].exchange(look.host, std::memory_order_relaxed);
    if (before != 0) look.before = before;
  }
  return in_order(time_of(look), vcpu);
}

std::uint64_t GuestClock::in_order(std::uint64_t time, std::uint32_t vcpu) {
  if (vcpu >= times_.size()) return time;
  const std::uint64_t last = times_[vcpu].load(std::memory_order_relaxed);
  if (time > last) times_[vcpu].store(time, std::memory_order_relaxed);
  return std::max(time, last);
}

std::uint64_t GuestClock::time_of(Look look) {
  const auto known = settled_time(line_.read(lock_), look);
  const std::uint64_t time = known ? *known : learn(look);
  settle();
  return time;
}

void GuestClock::recorded_times(std::span<std::uint64_t> tscs, std::uint64_t before,
                                std::uint64_t host_tsc) {
  Line line = line_.read(lock_);
  for (std::uint64_t& one : tscs) {
    const Look look{one, host_tsc, before, IsLate::ForAnyTime};
    if (const auto time = settled_time(line, look)) {
      one = *time;
    } else {
      one = learn(look);
      line = line_.read(lock_);
    }
  }
}

std::uint64_t GuestClock::time_of_tsc(std::uint64_t guest_tsc) const {
  const Line line = line_.read(lock_);
  return time_at(line, scale_.host_ticks(guest_tsc, line.guests));
}

/// By a line that the trap says nothing new about; empty where it does.
std::optional<std::uint64_t> GuestClock::settled_time(const Line& line, Look look) const {
  look.guest = scale_.host_ticks(look.guest_tsc, line.guests);
  if (!says_nothing_new(line, look)) return std::nullopt;
  return time_at(line, look.guest + moved_since(line, look.guest));
}

bool GuestClock::says_nothing_new(const Line& line, const Look& look) const {
  if (line.trust != Trust::Believed || line.base != line.offset) return false;
  // A stop that is under way gets longer.
  if (line.stops % 2 != 0) return false;
  if (stop_times_ != nullptr && stop_times_->version() != line.stops) return false;
  if (look.before && static_cast<std::int64_t>(look.shows_at_most() - line.most) < 0) return false;
  const std::uint64_t seen = look.shows();
  return static_cast<std::int64_t>(seen - line.offset) <= 0 && believes(line, look);
}

/// The time of a trap that has something to say about the line.
std::uint64_t GuestClock::learn(Look look) {
  const std::lock_guard writing(lock_);
  Line line = line_.read_alone();
  look.guest = scale_.host_ticks(look.guest_tsc, line.guests);
  notice_stops(line, look);
  notice_rate(line, look);
  notice_gap(line, look);
  const std::uint64_t seen = look.shows();
  std::uint64_t ticks = look.guest;
  if (line.trust == Trust::Unknown) {
    begin(line, look);
    line.base = seen;  // so the time line goes on where host_time() left it
  } else if (believes(line, look)) {
    agreeing_ = 0;
    if (line.base == line.offset) followed_ = look.host;
    improve(line, look);
    follow(line, look.host);
    ticks += moved_since(line, look.guest);
  } else {
    disbelieved_.fetch_add(1, std::memory_order_relaxed);
    if (agrees_again(seen)) {
      agreeing_ = 0;
      const std::uint64_t late = line.offset - line.base;
      scale_.forget();
      begin(line, look);
      line.base = seen - late;
    } else {
      ticks = look.host + line.offset;
    }
  }
  line.trust = agreeing_ == 0 ? Trust::Believed : Trust::Doubted;
  line_.write(line);
  return time_at(line, ticks);
}

/// From one look alone.
void GuestClock::begin(Line& line, const Look& look) const {
  line.offset = look.shows();
  line.believed = line.offset + static_cast<std::uint64_t>(believed_);
  line.most = line.believed;
  if (!look.before) return;
  const std::uint64_t most = look.shows_at_most();
  if (static_cast<std::int64_t>(most - line.offset) >= 0 &&
      static_cast<std::int64_t>(most - line.most) < 0) {
    line.most = most;
  }
}

void GuestClock::stand_still(Line& line, std::uint64_t ticks) {
  scale_.forget();
  line.offset -= ticks;
  line.base -= ticks;
  fresh_ = true;
}

/// Those that we are told of.
void GuestClock::notice_stops(Line& line, const Look& look) {
  if (stop_times_ == nullptr) return;
  line.stops = stop_times_->version();
  const std::uint64_t stood = stop_times_->ticks(look.host);
  if (stood > stood_ && line.trust != Trust::Unknown) stand_still(line, stood - stood_);
  stood_ = stood;
}

/// A stop that nobody tells of shows by a vCPU's second trap after it, which seems to come before
/// the host has looked at the first.
void GuestClock::notice_gap(Line& line, const Look& look) {
  if (!look.before || line.trust == Trust::Unknown) return;
  const auto lacking = static_cast<std::int64_t>(line.offset - look.shows_at_most());
  const std::int64_t tolerated = believed_ / 5000;  // 1 ms
  if (lacking <= tolerated || lacking > believed_) return;
  scale_.forget();
  line.base = line.offset = look.shows();
  line.most = look.shows_at_most();
}

void GuestClock::notice_rate(Line& line, Look& look) {
  if (!look.before || !scale_.refutes({look.guest_tsc, *look.before, look.host}, line.guests)) {
    return;
  }
  using Rate = TscScale::Rate;
  line.guests = line.guests == Rate::Hosts ? Rate::Guests : Rate::Hosts;
  look.guest = scale_.host_ticks(look.guest_tsc, line.guests);
  scale_.forget();
  begin(line, look);
  line.base = line.offset;
}

/// From below and from above.
void GuestClock::improve(Line& line, const Look& look) {
  const std::uint64_t seen = look.shows();
  if (static_cast<std::int64_t>(seen - line.offset) > 0) {
    line.offset = seen;
    if (std::exchange(fresh_, false) || !is_settled()) line.base = seen;
  }
  if (!look.before) return;
  const std::uint64_t most = look.shows_at_most();
  if (static_cast<std::int64_t>(most - line.most) < 0) line.most = most;
  if (static_cast<std::int64_t>(line.most - line.offset) < 0) line.most = line.offset;
}

/// The line comes nearer the estimate.
void GuestClock::follow(Line& line, std::uint64_t host) {
  const std::uint64_t late = line.offset - line.base;
  const auto since = static_cast<std::int64_t>(host - std::exchange(followed_, host));
  const auto far = static_cast<std::uint64_t>(believed_) / 20;  // 250 ms
  // Two traps of one vCPU are further apart than this, however long nobody has told of the line.
  const std::uint64_t closest = rate_.hertz() / 4'000'000;  // 250 ns
  const std::uint64_t step =
      since > 0 ? std::min(static_cast<std::uint64_t>(since) / kFollowing, closest) : 0;
  if (late > far) {
    line.base = line.offset;
  } else if (const std::uint64_t nearer = std::min(late, step); nearer != 0) {
    line.base += nearer;
    line.moved = host;
  }
}

std::optional<ClockAccuracy> GuestClock::accuracy() const {
  const Line line = line_.read(lock_);
  if (line.trust == Trust::Unknown) return std::nullopt;
  return ClockAccuracy{scale_.factor(line.guests), static_cast<std::int64_t>(line.offset),
                       rate_.nanoseconds(line.most - line.base)};
}

std::uint64_t GuestClock::host_time(std::uint64_t host_tsc) {
  const std::lock_guard writing(lock_);
  const Line line = line_.read_alone();
  last_host_time_ = std::max(last_host_time_, time_at(line, host_tsc + line.offset));
  return last_host_time_;
}

std::uint64_t GuestClock::moment(std::uint64_t host_tsc) const {
  const Line line = line_.read(lock_);
  return time_at(line, host_tsc + line.offset);
}

std::uint64_t GuestClock::since(std::uint64_t time, std::uint64_t host_tsc) const {
  const std::uint64_t now = moment(host_tsc);
  return now > time ? now - time : 0;
}

void GuestClock::set_wall(std::uint64_t host_tsc, std::int64_t realtime) {
  const std::lock_guard writing(lock_);
  wall_.write({host_tsc, realtime});
}

std::int64_t GuestClock::wall_of_host(std::uint64_t host_tsc) const {
  const Wall wall = wall_.read(lock_);
  // The host's TSCs of one machine may differ by a hair between its CPUs.
  if (host_tsc < wall.tsc) return wall.time;
  return wall.time + static_cast<std::int64_t>(rate_.nanoseconds(host_tsc - wall.tsc));
}

std::string describe(const GuestClock& clock) {
  const auto accuracy = clock.accuracy();
  if (!accuracy) return "timestamps are the host's: nothing of the guest's had one";
  const std::string factor =
      accuracy->factor == 1 ? "" : fmt::format(" / {:.6f}", accuracy->factor);
  const auto offset = static_cast<std::uint64_t>(accuracy->offset);
  return fmt::format("timestamps are at most {:.1f} us late: the guest's TSC{} is the host's {} {}",
                     static_cast<double>(accuracy->late_at_most) / 1000, factor,
                     accuracy->offset < 0 ? '-' : '+', accuracy->offset < 0 ? 0 - offset : offset);
}

}  // namespace ringside::providers
