#include "cli/options/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace ringside::cli {
namespace {

using View = std::string_view;

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

std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "tgmk";
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const std::uint64_t unit = std::uint64_t{1} << (10 * (kUnits.size() - i));
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, kUnits[i]);
  }
  return fmt::format("{}", bytes);
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

tl::unexpected<Error> bad_value(View wanted) {
  return fail(ErrorCode::Usage, fmt::format("Invalid value for specified option: {}", wanted));
}

std::string one_of_text(std::span<const View> words) {
  std::string text = "one of ";
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (n != 0) text += n + 1 == words.size() ? " and " : ", ";
    text += words[n];
  }
  return text;
}

Result<void> one_of(std::initializer_list<View> words, View value) {
  const bool known = std::find(words.begin(), words.end(), value) != words.end();
  return known ? Result<void>() : bad_value(one_of_text(words));
}

Result<void> set_flag(bool& flag, View value) {
  constexpr std::array<View, 8> kOn{"", "1", "on", "yes", "true", "set", "enable", "enabled"};
  constexpr std::array<View, 7> kOff{"0", "off", "no", "false", "unset", "disable", "disabled"};
  std::string word(value);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(kOn.begin(), kOn.end(), word) != kOn.end()) {
    flag = true;
  } else if (std::find(kOff.begin(), kOff.end(), word) != kOff.end()) {
    flag = false;
  } else {
    const auto number = parse_number(value);
    if (!number) return bad_value("yes or no");
    flag = *number != 0;
  }
  return {};
}

Result<void> set_compiler_flag(bool& flag, View value) {
  if (!value.empty()) return bad_value("it takes none");
  flag = true;
  return {};
}

Result<std::uint64_t> bounded_number(View value, std::uint64_t least, std::uint64_t most) {
  const auto parsed = parse_number(value);
  if (!parsed || *parsed < least || *parsed > most) {
    return bad_value(most >= UINT32_MAX ? fmt::format("a number of {} or more", least)
                                        : fmt::format("a number from {} to {}", least, most));
  }
  return *parsed;
}

Result<std::uint64_t> bounded_size(View value, std::uint64_t least, std::uint64_t most) {
  const auto bytes = parse_size(value);
  if (!bytes || *bytes < least || *bytes > most) {
    const std::string bounds =
        most == UINT64_MAX ? std::string() : fmt::format(", from {} to {} bytes", least, most);
    return bad_value("a size such as 4k" + bounds);
  }
  return *bytes;
}

Result<void> set_rate(std::chrono::nanoseconds& interval, View value) {
  const auto parsed = parse_rate(value);
  if (!parsed) return bad_value("a rate such as 10hz, or an interval such as 100ms");
  interval = *parsed;
  return {};
}

Result<void> set_text(std::string& text, View value) {
  if (value.empty()) return bad_value("it may not be empty");
  text = value;
  return {};
}

Result<void> add_text(std::vector<std::string>& texts, View prefix, View value) {
  if (value.empty()) return bad_value("it may not be empty");
  texts.push_back(std::string(prefix) + std::string(value));
  return {};
}

}  // namespace ringside::cli
