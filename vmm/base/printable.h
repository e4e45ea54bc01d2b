// Makes text that a guest or a QEMU chose safe for our messages: it must not control the user's
// terminal.
#pragma once

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

}  // namespace ringside
