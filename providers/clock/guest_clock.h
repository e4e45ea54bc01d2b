// The clock of a machine: one time line, in nanoseconds of the host. It gives times to traps (from
// the guest's TSC at entry to the shim) and to what the host fires itself (BEGIN, END, timers).
// Several machines have the same line, as exactly as accuracy() says.
//
// How the offset is found. Under TCG and KVM the guest's TSC runs at the host's rate, or at
// another known one (tsc_scale.h), with an offset that stays while the machine runs. In the host's
// ticks,
//   guest = host + offset
// The host looks at a trap after it happened, so each trap shows guest - host <= offset. The
// largest such difference since the last stop of the machine is the best estimate, and never too
// high. A stop lowers the offset by at most its own length. From above, the offset is known by two
// traps of one vCPU: the second comes after the host has looked at the first.
//
// How the line follows the estimate. Trap times depend on the guest's TSC alone, so they do not
// include the wait for the host. The first looks are late, and so are the first times. When the
// estimate gets better, the line follows slowly, so that intervals stay right to a part in 500 and
// to 250 ns. It follows at once if it is 250 ms away, or if the machine has just stood still. A
// trap that the host sees late gets the time that the line had when the trap came. So of two traps
// in a row, the second never has the earlier time. The line never runs backwards, neither for the
// host's own firings nor for the traps of one vCPU. Time goes on while the machine stands still.
//
// How it begins. The look at the first recorded trap may be as late as the whole time between two
// looks. So the line is not settled at first: it follows the estimate at once. The code that keeps
// records asks for their times again (time_of_tsc()) when the line is settled. A trap that waits
// settles it, too.
//
// Times that are not believed. The guest may forge its TSC or set it (IA32_TSC_ADJUST, S3). A time
// that is further from the host's than a late look explains is not believed, and the host's time
// is taken. When several traps agree on such a difference, the TSC was set: the line goes on where
// it is, with the new difference. So no guest moves the line by more than kBelievedSeconds, and
// none stops it.
//
// Pure: the caller reads the TSCs. Threads: any. Most traps get their time without a lock; only a
// trap that changes the line takes one, and a reader that meets a change looks once more. Fire
// context: yes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "providers/clock/tsc_scale.h"
#include "vmm/base/brief_lock.h"
#include "vmm/stop_times.h"

namespace ringside::providers {

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

/// The offset as far as it is known, and what that makes of times.
struct ClockAccuracy {
  double factor = 1;               // the guest's ticks for one of the host's
  std::int64_t offset = 0;         // guest's TSC / factor - host's
  std::uint64_t late_at_most = 0;  // ns, of a trap's time; never early
};

class GuestClock {
 public:
  /// Longer than any trap waits for us: the shim's timeout is 3 s at most while we do not answer.
  static constexpr std::uint64_t kBelievedSeconds = 5;
  /// So many traps, one after the other, show that the TSC was set.
  static constexpr unsigned kAgreeing = 3;

  /// How late a look at a trap may be: a recorded one waits for any time, but not since before a
  /// look that did not find it.
  enum class IsLate : std::uint8_t { ForAWhile, ForAnyTime };

  /// The machine that the clock is for.
  struct Config {
    const vmm::StopTimes* stop_times = nullptr;  // null: it never stands still
    unsigned vcpus = 0;     // of how many the order of traps is known; the others' is not looked at
    std::uint64_t now = 0;  // the host's TSC before any of them trapped
    std::optional<std::uint64_t> hertz{};  // of its TSC, as the guest believes
  };

  /// `host` is the rate of the host's TSC. `config.stop_times` must outlive this.
  explicit GuestClock(TickRate host) : GuestClock(host, {}) {}
  GuestClock(TickRate host, const Config& config);

  /// The time of a trap. `host_tsc` is read after the trap was seen.
  std::uint64_t trap_time(std::uint64_t guest_tsc, std::uint64_t host_tsc) {
    return time_of({guest_tsc, host_tsc});
  }
  /// The same for a trap whose vCPU stands still until the host has seen it. The vCPU's next trap
  /// comes after that.
  std::uint64_t trap_time(std::uint64_t guest_tsc, std::uint64_t host_tsc, std::uint32_t vcpu,
                          IsLate is_late = IsLate::ForAWhile);
  /// The same for traps that waited for nobody, found by one look: each TSC of the guest's becomes
  /// its time. At the host's TSC `before` none of them had come yet.
  void recorded_times(std::span<std::uint64_t> tscs, std::uint64_t before, std::uint64_t host_tsc);
  /// By what is known now, for a recorded trap whose time nobody was told yet.
  std::uint64_t time_of_tsc(std::uint64_t guest_tsc) const;
  /// From now on times are told.
  void settle() { settled_.store(true, std::memory_order_release); }
  bool is_settled() const { return settled_.load(std::memory_order_acquire); }
  /// The time of this vCPU's next trap, which is not before the last one that this or trap_time()
  /// has told.
  std::uint64_t in_order(std::uint64_t time, std::uint32_t vcpu);
  /// The `time` of a trap that came so many ticks of the guest's TSC after one with the time
  /// `last`. What the host learns of the guest's clock may move the time line back. Until it has
  /// caught up, times go on at half their pace, so that no interval is negative and two traps do
  /// not get one time.
  std::uint64_t after(std::uint64_t last, std::uint64_t ticks, std::uint64_t time) const {
    constexpr std::uint64_t kMostAtOnce = 100'000;  // ns, however large a guest's TSC is
    const bool is_earlier = static_cast<std::int64_t>(ticks) < 0;
    if (is_earlier || time > last) return std::max(time, last);
    return last + std::min(rate().nanoseconds(ticks), kMostAtOnce) / 2;
  }
  /// No trap that came after this moment of the host has an earlier time, by what is known now.
  std::uint64_t moment(std::uint64_t host_tsc) const;
  /// The time of a firing that the host makes now.
  std::uint64_t host_time(std::uint64_t host_tsc);

  /// How long before `host_tsc` this time was, by what is known of the line now; 0 where it seems
  /// later. ns.
  std::uint64_t since(std::uint64_t time, std::uint64_t host_tsc) const;

  /// Ties walltimestamp to the time line: at `host_tsc` it was `realtime` (ns since the epoch).
  void set_wall(std::uint64_t host_tsc, std::int64_t realtime);
  std::int64_t wall_of_host(std::uint64_t host_tsc) const;
  /// One moment of the host, on the time line and in real time.
  struct Moment {
    std::uint64_t time = 0;  // as moment() has it
    std::int64_t wall = 0;
    /// The real time of another moment nearby.
    std::int64_t wall_at(std::uint64_t other) const {
      return wall + static_cast<std::int64_t>(other - time);
    }
  };
  Moment at(std::uint64_t host_tsc) const { return {moment(host_tsc), wall_of_host(host_tsc)}; }

  /// Traps whose TSC was not believed. On any thread.
  std::uint64_t disbelieved() const { return disbelieved_.load(std::memory_order_relaxed); }
  /// Empty before the first trap.
  std::optional<ClockAccuracy> accuracy() const;
  const TickRate& rate() const { return rate_; }

 private:
  enum class Trust : std::uint64_t {
    Unknown,  // there was no trap yet
    Believed,
    Doubted,  // the last trap was not believed
  };
  struct Line {
    using Words = std::array<std::uint64_t, 8>;
    static Line of(const Words& words) {
      return {Trust{words[0]}, TscScale::Rate{words[1]},
              words[2],        words[3],
              words[4],        words[5],
              words[6],        words[7]};
    }
    Words words() const {
      return {static_cast<std::uint64_t>(trust),
              static_cast<std::uint64_t>(guests),
              offset,
              base,
              moved,
              most,
              believed,
              stops};
    }

    Trust trust{};
    TscScale::Rate guests{};   // of the guest's TSC; all that follows is in the host's ticks
    std::uint64_t offset = 0;  // estimate of guest - host, never too high; wraps, as all do
    std::uint64_t base = 0;    // guest - this is the time line's; at most the offset
    std::uint64_t moved = 0;   // the host's TSC when the base last came nearer the offset; 0: never
    std::uint64_t most = 0;    // guest - host is at most this
    std::uint64_t believed = 0;  // no trap that shows more is believed
    std::uint64_t stops = 0;     // the version of the stop_times that the line has in it, if even
  };
  /// A look at a trap.
  struct Look {
    std::uint64_t guest_tsc = 0, host = 0;
    std::optional<std::uint64_t> before{};  // the host's at the look at that vCPU's last one
    IsLate is_late = IsLate::ForAWhile;
    std::uint64_t guest = 0;  // in the host's ticks

    std::uint64_t shows() const { return guest - host; }
    std::uint64_t shows_at_most() const { return guest - *before; }
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
    T read(BriefLock& lock) const;
    /// Under the lock.
    T read_alone() const;
    void write(const T& value);

   private:
    static constexpr std::size_t kWords = std::tuple_size_v<typename T::Words>;

    std::atomic<std::uint64_t> version_ = 0;  // odd: one is being written
    std::array<std::atomic<std::uint64_t>, kWords> words_{};
  };

  std::uint64_t time_of(Look look);
  std::optional<std::uint64_t> settled_time(const Line& line, Look look) const;
  std::uint64_t time_at(const Line& line, std::uint64_t ticks) const;
  static std::uint64_t moved_since(const Line& line, std::uint64_t guest);
  bool believes(const Line& line, const Look& look) const;
  bool agrees_again(std::uint64_t seen);
  bool says_nothing_new(const Line& line, const Look& look) const;
  std::uint64_t learn(Look look);
  void begin(Line& line, const Look& look) const;
  void stand_still(Line& line, std::uint64_t ticks);
  void notice_stops(Line& line, const Look& look);
  void notice_rate(Line& line, Look& look);
  void notice_gap(Line& line, const Look& look);
  void improve(Line& line, const Look& look);
  void follow(Line& line, std::uint64_t host);

  TickRate rate_;
  std::int64_t believed_;  // ticks
  TscScale scale_;
  const vmm::StopTimes* stop_times_;
  std::vector<std::atomic<std::uint64_t>> looked_;  // by vCPU: the host's TSC; 0 for never
  std::vector<std::atomic<std::uint64_t>> times_;   // by vCPU: of its last trap
  Published<Line> line_;
  Published<Wall> wall_;
  std::atomic<bool> settled_ = false;
  std::atomic<std::uint64_t> disbelieved_{0};
  mutable BriefLock lock_;       // for what follows, and to write what is published
  unsigned agreeing_ = 0;        // traps in a row that were not believed, but are like candidate_
  std::uint64_t candidate_ = 0;  // guest - host, by the last of them
  std::uint64_t stood_ = 0;      // of the stop_times, what the line has in it
  bool fresh_ = false;           // no trap since the last stop has shown where the line is now
  std::uint64_t followed_ = 0;   // the host's TSC until which the base has followed the offset
  std::uint64_t last_host_time_ = 0;
};

/// In one line for the user.
std::string describe(const GuestClock& clock);

}  // namespace ringside::providers
