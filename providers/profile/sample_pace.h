// Limits how often a machine is paused for a sample (profile-N), and counts the samples that are
// left out. Pure: the caller reads the clock. Used by the sampler.
// Threads: what is const on any; the others on one.
// Fire context: yes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace ringside::providers {

class SamplePace {
 public:
  /// The share of its time for which the machine may stand still, 1 to 100 percent; 100: no limit.
  void limit(unsigned percent) { percent_ = percent; }

  /// Whether a sample may begin at `now` (ns, any origin), `late` ns after its time, of a timer
  /// that fires every `interval` ns. Counts those that may not, and those whose time went by
  /// meanwhile: they would only make the machine later still.
  bool may_begin(std::uint64_t now, std::uint64_t late, std::uint64_t interval);
  /// The machine stood still from `begun` until `now`.
  void ended(std::uint64_t begun, std::uint64_t now);

  std::uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }
  /// Whether more samples were left out for the limit than were taken, or for want of time.
  bool slowed() const { return slowed_.load(std::memory_order_relaxed); }
  /// Whether more samples were left out than were taken, for whatever reason.
  bool lost_most() const { return lost_most_.load(std::memory_order_relaxed); }
  /// A probe that asks for samples less often than the one that asked most often; "" where those
  /// that people use ask no less.
  std::string_view slower_probe() const;

 private:
  unsigned percent_ = 100;
  std::uint64_t taken_ = 0, over_limit_ = 0;
  std::uint64_t rests_until_ = 0;
  std::atomic<std::uint64_t> left_out_ = 0;
  std::atomic<std::uint64_t> shortest_ = UINT64_MAX;  // interval, ns
  std::atomic<bool> slowed_ = false, lost_most_ = false;
};

}  // namespace ringside::providers
