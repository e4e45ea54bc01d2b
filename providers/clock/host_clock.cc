#include "providers/clock/host_clock.h"

#include <time.h>

#include <algorithm>

#include "providers/clock/guest_clock.h"

namespace ringside::providers {
namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::uint64_t monotonic_ns() {
  return static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC));
}
std::int64_t realtime_ns() {
  return read_clock(CLOCK_REALTIME);
}

TscCalibration::TscCalibration() : tsc_(host_tsc()), time_(monotonic_ns()) {}

std::uint64_t TscCalibration::now() {
  return TickRate(hertz()).nanoseconds(host_tsc());
}

std::uint64_t TscCalibration::hertz() {
  if (hertz_ != 0) return hertz_;
  constexpr std::uint64_t kShortest = 10'000'000;  // ns
  std::uint64_t elapsed = monotonic_ns() - time_;
  while (elapsed < kShortest) {
    timespec rest{0, static_cast<long>(kShortest - elapsed)};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
    elapsed = monotonic_ns() - time_;
  }
  // Read in the same order as in the constructor, so that the calls' own cost cancels.
  const std::uint64_t tsc = host_tsc();
  elapsed = std::max<std::uint64_t>(monotonic_ns() - time_, 1);
  hertz_ = static_cast<std::uint64_t>(static_cast<Uint128>(tsc - tsc_) * 1'000'000'000 / elapsed);
  return hertz_;
}

}  // namespace ringside::providers
