#include "providers/clock/tsc_scale.h"

namespace ringside::providers {

std::optional<std::uint64_t> plausible_hertz(std::optional<std::uint32_t> guest_khz) {
  constexpr std::uint64_t kSlowest = 100'000'000, kFastest = 20'000'000'000;
  if (!guest_khz) return std::nullopt;
  const std::uint64_t hertz = std::uint64_t{*guest_khz} * 1000;
  if (hertz < kSlowest || hertz > kFastest) return std::nullopt;
  return hertz;
}

bool TscScale::refutes(const Trap& trap, Rate rate) {
  if (!guest_hertz_) return false;
  // The better it is known when the first one was, the sooner they tell.
  if (!since_ || trap.before - trap.after < (since_->before - since_->after) / 2) {
    since_ = trap;
    return false;
  }
  const std::uint64_t shortest = host_hertz_ / 100;  // 10 ms
  if (static_cast<std::int64_t>(trap.before - since_->before) < static_cast<std::int64_t>(shortest))
    return false;
  return !fits(trap, rate) && fits(trap, rate == Rate::Hosts ? Rate::Guests : Rate::Hosts);
}

bool TscScale::fits(const Trap& trap, Rate rate) const {
  const auto tolerated = static_cast<std::int64_t>(host_hertz_ / 50'000);  // 20 us
  const auto passed = static_cast<std::int64_t>(host_ticks(trap.guest - since_->guest, rate));
  const auto least = static_cast<std::int64_t>(trap.after - since_->before);
  const auto most = static_cast<std::int64_t>(trap.before - since_->after);
  return passed >= least - tolerated && passed <= most + tolerated;
}

}  // namespace ringside::providers
