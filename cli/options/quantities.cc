#include "cli/options/quantities.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <string>

namespace ringside::cli {
namespace {

struct Split {
  std::uint64_t number = 0;
  std::string suffix;  // lower case
};

Result<Split> split(std::string_view text, std::string_view what) {
  Split parts;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), parts.number);
  if (status != std::errc() || end == text.data()) {
    return fail(ErrorCode::Usage, fmt::format("'{}' is not a {}", text, what));
  }
  for (const char* at = end; at != text.data() + text.size(); ++at) {
    parts.suffix += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  }
  return parts;
}

struct TimeUnit {
  std::string_view short_name, long_name;
  std::uint64_t nanoseconds;
};

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::array<TimeUnit, 7> kTimeUnits{{
    {"ns", "nsec", 1},
    {"us", "usec", 1'000},
    {"ms", "msec", 1'000'000},
    {"s", "sec", kSecond},
    {"m", "min", 60 * kSecond},
    {"h", "hour", 3600 * kSecond},
    {"d", "day", 86400 * kSecond},
}};

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text) {
  std::string_view digits = text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
    digits.remove_prefix(1);
  }
  std::uint64_t value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, status] = std::from_chars(digits.data(), last, value, base);
  if (status != std::errc() || end != last || digits.empty()) {
    return fail(ErrorCode::Usage, fmt::format("'{}' is not a number", text));
  }
  return value;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const Split parts = TRY(split(text, "size (a number with k, m, g or t)"));
  constexpr std::string_view kSuffixes = "kmgt";
  unsigned shift = 0;
  if (!parts.suffix.empty()) {
    const std::size_t at = kSuffixes.find(parts.suffix[0]);
    if (parts.suffix.size() != 1 || at == std::string_view::npos) {
      return fail(ErrorCode::Usage,
                  fmt::format("'{}' is not a size (a number with k, m, g or t)", text));
    }
    shift = 10 * (static_cast<unsigned>(at) + 1);
  }
  if (parts.number > (UINT64_MAX >> shift)) {
    return fail(ErrorCode::Usage, fmt::format("size '{}' is too large", text));
  }
  return parts.number << shift;
}

Result<std::chrono::nanoseconds> parse_rate(std::string_view text) {
  const Split parts = TRY(split(text, "rate (Nhz, or an interval with ns us ms s m h d)"));
  if (parts.suffix.empty() || parts.suffix == "hz") {
    return std::chrono::nanoseconds(parts.number == 0 ? 0 : kSecond / parts.number);
  }
  for (const TimeUnit& unit : kTimeUnits) {
    if (parts.suffix != unit.short_name && parts.suffix != unit.long_name) continue;
    if (parts.number > INT64_MAX / unit.nanoseconds) break;
    return std::chrono::nanoseconds(parts.number * unit.nanoseconds);
  }
  return fail(ErrorCode::Usage,
              fmt::format("'{}' is not a rate (Nhz, or an interval with ns us ms s m h d)", text));
}

}  // namespace ringside::cli
