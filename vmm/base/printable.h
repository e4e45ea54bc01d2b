// Makes text of unknown origin (guests, QEMU, scripts) safe to show: it must not control the user's
// terminal. Finds characters of UTF-8 in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringside {

/// A character that a name may have: printable ASCII, no blank.
constexpr bool is_name_character(char c) {
  return c > 0x20 && c < 0x7f;
}

/// One line of ASCII: what is not printable becomes '?'.
inline std::string printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return result;
}

/// The length in bytes of the UTF-8 character at the start of `text`, which is not empty; 0 when no
/// valid character starts there.
std::size_t character_length(std::string_view text);

/// Whether tabs and newlines stay in text for a terminal. Those of our own layout stay. Those of a
/// guest's string could forge such a layout.
enum class Breaks : std::uint8_t { Kept, Escaped };

/// Whether it is a control character: C0, DEL, or C1, which terminals obey as well.
bool is_control(std::string_view character);

/// `text` for a terminal: control characters (C0, DEL, C1), and bytes that are no part of a
/// character, become C's escapes: \r, \033.
std::string terminal_text(std::string_view text, Breaks breaks = Breaks::Kept);

/// Appends a number with a comma between each three digits: 1,234,567.
void append_grouped(std::string& out, std::uint64_t number);
inline std::string grouped(std::uint64_t number) {
  std::string text;
  append_grouped(text, number);
  return text;
}

}  // namespace ringside
