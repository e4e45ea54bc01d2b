// Rounds numbers and reads them from text.
// Fire context: yes.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace ringside {

/// The next multiple of `to`, a power of two, at or above `n`. Wraps where there is none: the
/// largest multiple is as far as `n` may go.
template <std::unsigned_integral T>
constexpr T round_up(T n, std::type_identity_t<T> to) {
  return static_cast<T>((n + (to - 1)) & ~(to - 1));
}

template <std::unsigned_integral T>
constexpr T round_down(T n, std::type_identity_t<T> to) {
  return static_cast<T>(n & ~(to - 1));
}

/// How many pieces of `by`, not 0, hold `n`. Wraps where round_up() does.
template <std::unsigned_integral T>
constexpr T divide_up(T n, std::type_identity_t<T> by) {
  return static_cast<T>((n + (by - 1)) / by);
}

/// Takes the digits that `text` begins with off it, and returns their value. They have neither "0x"
/// nor '+'; '-' only if T is signed. Empty if there are none, or if T cannot hold the value; `text`
/// is then as before.
template <std::integral T>
std::optional<T> take_number(std::string_view& text, int base = 10) {
  T number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (problem != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// The same of all of `text`: empty if anything but digits is there.
template <std::integral T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  const std::optional<T> number = take_number<T>(text, base);
  return text.empty() ? number : std::nullopt;
}

}  // namespace ringside
