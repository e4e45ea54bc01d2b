// The clock of a trace: one time line, in nanoseconds, for traps (stamped with the guest's TSC at
// entry to the shim) and for what the host fires itself (BEGIN, END, timers).
//
// Facts it rests on: under TCG and KVM the guest's TSC runs at the rate of the host's, with an
// offset fixed when the machine started; while the machine is paused it may stand still. So
//   guest = host + offset, and each trap shows guest - host <= offset (the host looks later).
// The largest such difference since the last pause is the best estimate, and never too high; a
// pause lowers it by at most its own length. Thus a time the host makes is never later than the
// guest's true one, never earlier than a trap already seen, and never runs backwards.
// Trap times depend on the guest's TSC alone: waiting for the host does not bend them.
// The guest's TSC comes out of its memory and may be forged, or the guest has set it
// (IA32_TSC_ADJUST, S3): what lies further from the host's own time than a late look explains is
// not believed, and the host's time is taken. When several traps agree on such a difference the TSC
// has been set: the time line goes on where it is, at the new difference. So no guest moves the
// line by more than kBelievedSeconds, ever, and none stops it. Pure: the caller reads the TSCs.
// Threads: any. Most traps get their time without a lock: only a trap that changes the line
// takes one, and a reader that comes in between looks once more.
// Fire context: yes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <tuple>

#include "dif/evaluate/brief_lock.h"

namespace ringside::providers {

__extension__ using Uint128 = unsigned __int128;

/// Ticks to nanoseconds by one multiplication.
class TickRate {
 public:
  /// `hertz` at least 1 MHz.
  explicit TickRate(std::uint64_t hertz);
  std::uint64_t nanoseconds(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>((static_cast<Uint128>(ticks) * multiplier_) >> 32);
  }
  std::uint64_t hertz() const { return hertz_; }

 private:
  std::uint64_t hertz_;
  std::uint64_t multiplier_;  // ns per tick, scaled by 2^32
};

/// The rate to use: the host's own calibration, unless the guest kernel's tsc_khz is plausible and
/// more than a tenth away from it (a hypervisor that scales the TSC). The guest's calibration of a
/// slow machine is often some percent off, so closer values are not believed.
std::uint64_t choose_hertz(std::uint64_t host_hertz, std::optional<std::uint32_t> guest_khz);

class GuestClock {
 public:
  /// Longer than any trap waits for us: the shim's patience is 3 s at most while we do not answer.
  static constexpr std::uint64_t kBelievedSeconds = 5;
  /// So many traps, one after the other, show that the TSC was set.
  static constexpr unsigned kAgreeing = 3;

  explicit GuestClock(TickRate rate) : GuestClock(rate, rate.hertz()) {}
  /// Where the guest's TSC does not run at the host's rate.
  GuestClock(TickRate guest, std::uint64_t host_hertz)
      : rate_(guest),
        host_rate_(host_hertz),
        believed_(static_cast<std::int64_t>(rate_.hertz() * kBelievedSeconds)) {}

  /// The time of a trap. `host_tsc` is read after the trap was seen.
  std::uint64_t trap_time(std::uint64_t guest_tsc, std::uint64_t host_tsc);
  /// The time of a firing that the host makes now.
  std::uint64_t host_time(std::uint64_t host_tsc);
  /// The machine was paused somewhere within these host times and runs again.
  void paused_between(std::uint64_t before_tsc, std::uint64_t after_tsc);

  /// Ties walltimestamp to the time line: at `host_tsc` it was `realtime` (ns since the epoch).
  void set_wall(std::uint64_t host_tsc, std::int64_t realtime);
  std::int64_t wall_of_host(std::uint64_t host_tsc) const;

  /// Traps whose TSC was not believed. On any thread.
  std::uint64_t disbelieved() const { return disbelieved_.load(std::memory_order_relaxed); }
  const TickRate& rate() const { return rate_; }

 private:
  enum class Trust : std::uint64_t {
    Unknown,  // there was no trap yet
    Believed,
    Doubted,  // the last trap was not believed
  };
  struct Line {
    using Words = std::array<std::uint64_t, 3>;
    static Line of(const Words& words) { return {Trust{words[0]}, words[1], words[2]}; }
    Words words() const { return {static_cast<std::uint64_t>(trust), offset, base}; }

    Trust trust{};
    std::uint64_t offset = 0;  // estimate of guest - host; wraps
    std::uint64_t base = 0;  // guest ticks minus this are the time line's; fixed at the first trap
  };
  struct Wall {
    using Words = std::array<std::uint64_t, 2>;
    static Wall of(const Words& words) { return {words[0], static_cast<std::int64_t>(words[1])}; }
    Words words() const { return {tsc, static_cast<std::uint64_t>(time)}; }

    std::uint64_t tsc = 0;
    std::int64_t time = 0;
  };
  /// A value that one thread changes, under lock_, and any reads meanwhile: half of the old and
  /// half of the new one is never answered.
  template <class T>
  class Published {
   public:
    T read(dif::BriefLock& lock) const;
    /// Under the lock.
    T read_alone() const;
    void write(const T& value);

   private:
    static constexpr std::size_t kWords = std::tuple_size_v<typename T::Words>;

    std::atomic<std::uint64_t> version_ = 0;  // odd: one is being written
    std::array<std::atomic<std::uint64_t>, kWords> words_{};
  };

  std::uint64_t guest_ticks(std::uint64_t host_tsc) const;
  std::uint64_t time_at(const Line& line, std::uint64_t ticks) const;
  bool believes(const Line& line, std::uint64_t seen) const;
  bool agrees_again(std::uint64_t seen);
  std::uint64_t learn(std::uint64_t guest_tsc, std::uint64_t host_ticks);

  TickRate rate_;
  TickRate host_rate_;
  std::int64_t believed_;  // guest ticks
  Published<Line> line_;
  Published<Wall> wall_;
  std::atomic<std::uint64_t> disbelieved_{0};
  mutable dif::BriefLock lock_;  // for what follows, and to write what is published
  unsigned agreeing_ = 0;        // traps in a row that were not believed, but are like candidate_
  std::uint64_t candidate_ = 0;  // guest - host, by the last of them
  std::uint64_t last_host_time_ = 0;
};

}  // namespace ringside::providers
