// The names of the profile provider's probes: profile-97, tick-1s, tick-250ms, tick-2hz.
// Pure: text to kind and interval. Suffixes and limits: Dynamic Tracing Guide, "profile Provider".
#pragma once

#include <cstdint>
#include <string_view>

#include "vmm/base/result.h"

namespace ringside::providers {

enum class TimerKind : std::uint8_t {
  Profile,  // samples every vCPU
  Tick,     // fires on one vCPU
};

/// dtrace refuses more than 5000 firings a second; so do we, for the guest's sake.
inline constexpr std::uint64_t kShortestInterval = 200'000;  // ns

struct TimerName {
  TimerKind kind = TimerKind::Tick;
  std::uint64_t interval = 0;  // ns, at least kShortestInterval
  bool operator==(const TimerName&) const = default;
};

/// NotFound when the name is not of the form KIND-N[SUFFIX]; Usage, with the reason, when it is,
/// but its interval is zero, too short, too long for 64 bits of nanoseconds, or its suffix unknown.
Result<TimerName> parse_timer_name(std::string_view name);

}  // namespace ringside::providers
