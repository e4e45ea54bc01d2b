// Values of options in the forms that dtrace's options have, read into plain variables. Used by the
// rows of options.def.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::cli {

/// A whole number, decimal, octal (0...) or hexadecimal (0x...), nothing before or after it.
Result<std::uint64_t> parse_number(std::string_view text);

/// Bytes: a number with an optional k, m, g or t (powers of 1024, either case).
Result<std::uint64_t> parse_size(std::string_view text);

/// "128m": a size as dtrace writes it, in the largest unit that divides it.
std::string size_text(std::uint64_t bytes);

/// The interval of a rate: "Nhz" or a bare N is N times a second; with ns us ms s m h d (or their
/// long forms nsec usec msec sec min hour day) the number is the interval itself. Never 0.
Result<std::chrono::nanoseconds> parse_rate(std::string_view text);

// Those that follow fail in dtrace's words, and then leave the variable as it was.

/// `wanted` is what the value has to be, for the user.
tl::unexpected<Error> bad_value(std::string_view wanted);

/// "one of a, b and c".
std::string one_of_text(std::span<const std::string_view> words);
/// An option that chooses between ways of which there is one here.
Result<void> one_of(std::initializer_list<std::string_view> words, std::string_view value);

/// A word that an option may have, and what it stands for.
template <class T>
struct Choice {
  std::string_view word;
  T meaning;
};
template <class T>
Result<void> set_choice(T& chosen, std::string_view value,
                        std::initializer_list<Choice<std::type_identity_t<T>>> choices) {
  std::vector<std::string_view> words;
  for (const auto& [word, meaning] : choices) {
    if (word == value) {
      chosen = meaning;
      return {};
    }
    words.push_back(word);
  }
  return bad_value(one_of_text(words));
}

/// "", yes, no, 1, off...; words count in any case.
Result<void> set_flag(bool& flag, std::string_view value);
/// The compiler's own flags can only be set.
Result<void> set_compiler_flag(bool& flag, std::string_view value);
Result<void> set_rate(std::chrono::nanoseconds& interval, std::string_view value);
/// Any text but an empty one.
Result<void> set_text(std::string& text, std::string_view value);
Result<void> add_text(std::vector<std::string>& texts, std::string_view prefix,
                      std::string_view value);

/// The bounds are inclusive.
Result<std::uint64_t> bounded_number(std::string_view value, std::uint64_t least,
                                     std::uint64_t most);
Result<std::uint64_t> bounded_size(std::string_view value, std::uint64_t least, std::uint64_t most);

template <class Integer>
Result<void> set_number(Integer& number, std::string_view value, std::uint64_t least,
                        std::uint64_t most) {
  number = static_cast<Integer>(TRY(bounded_number(value, least, most)));
  return {};
}

template <class Integer>
Result<void> set_size(Integer& size, std::string_view value, std::uint64_t least = 1,
                      std::uint64_t most = UINT64_MAX) {
  size = static_cast<Integer>(TRY(bounded_size(value, least, most)));
  return {};
}

}  // namespace ringside::cli
