#include "providers/profile/timer_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>

#include "vmm/base/numbers.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

struct Suffix {
  std::string_view text;
  std::uint64_t nanoseconds;  // 0: a rate in firings per second
};

constexpr Suffix kSuffixes[] = {
    {"", 0},
    {"hz", 0},
    {"ns", 1},
    {"nsec", 1},
    {"us", 1000},
    {"usec", 1000},
    {"ms", 1000000},
    {"msec", 1000000},
    {"s", kSecond},
    {"sec", kSecond},
    {"m", 60 * kSecond},
    {"min", 60 * kSecond},
    {"h", 3600 * kSecond},
    {"hour", 3600 * kSecond},
    {"d", 86400 * kSecond},
    {"day", 86400 * kSecond},
};

std::optional<std::uint64_t> unit_of(std::string_view suffix) {
  for (const Suffix& known : kSuffixes) {
    if (known.text == suffix) return known.nanoseconds;
  }
  return std::nullopt;
}

}  // namespace

Result<TimerName> parse_timer_name(std::string_view name) {
  const auto not_ours = [&] {
    return fail(ErrorCode::NotFound, fmt::format("{} is not a timer's name", name));
  };
  const auto refused = [&](std::string_view why) {
    return fail(ErrorCode::Usage, std::string(why));
  };
  TimerName timer;
  if (name.starts_with("profile-")) {
    timer.kind = TimerKind::Profile;
    name.remove_prefix(8);
  } else if (name.starts_with("tick-")) {
    name.remove_prefix(5);
  } else {
    return not_ours();
  }

  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (digits == 0) return not_ours();
  const auto number = parse_number<std::uint64_t>(name.substr(0, digits));
  const auto unit = unit_of(name.substr(digits));
  if (!unit) {
    return refused(
        "the suffix must be one of ns us ms s m h d hz (or nsec usec msec sec min hour day)");
  }
  if (!number || (*unit != 0 && *number > UINT64_MAX / 2 / *unit)) {
    return refused("the interval is too long");
  }
  if (*number == 0) return refused("the number must not be 0");
  timer.interval = *unit == 0 ? kSecond / *number : *number * *unit;
  if (timer.interval < kShortestInterval) {
    return refused("timers fire at most 5000 times a second (every 200us)");
  }
  return timer;
}

}  // namespace ringside::providers
