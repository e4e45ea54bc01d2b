// Rounding to multiples of a power of two, and quotients that are rounded up.
// Fire context: yes.
#pragma once

#include <concepts>
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

}  // namespace ringside
