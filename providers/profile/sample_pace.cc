#include "providers/profile/sample_pace.h"

#include <algorithm>

namespace ringside::providers {
namespace {

/// One long pause, of a busy host, leaves out a few.
constexpr std::uint64_t kChance = 10;

}  // namespace

bool SamplePace::may_begin(std::uint64_t now, std::uint64_t late, std::uint64_t interval) {
  const bool may = now >= rests_until_;
  shortest_.store(std::min(interval, shortest_.load(std::memory_order_relaxed)),
                  std::memory_order_relaxed);
  ++(may ? taken_ : over_limit_);
  const std::uint64_t left_out = left_out_.load(std::memory_order_relaxed) +
                                 late / std::max<std::uint64_t>(interval, 1) + (may ? 0 : 1);
  left_out_.store(left_out, std::memory_order_relaxed);
  if (over_limit_ > kChance + std::max(taken_, left_out / 2)) {
    slowed_.store(true, std::memory_order_relaxed);
  }
  if (left_out > kChance + taken_) lost_most_.store(true, std::memory_order_relaxed);
  return may;
}

std::string_view SamplePace::slower_probe() const {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t rate =
      kSecond / std::max<std::uint64_t>(shortest_.load(std::memory_order_relaxed), 1);
  if (rate > 97) return "profile-97";
  return rate > 19 ? "profile-19" : "";
}

/// A machine whose clock jumped does not rest for longer than a second of standing still asks for.
void SamplePace::ended(std::uint64_t begun, std::uint64_t now) {
  constexpr std::uint64_t kLongest = 1'000'000'000;
  const std::uint64_t stood = std::min(now - std::min(begun, now), kLongest);
  rests_until_ = now + stood * (100 - percent_) / percent_;
}

}  // namespace ringside::providers
