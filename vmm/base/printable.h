// Text that a guest or a QEMU chose, as part of a message of ours: nothing in it may steer the
// user's terminal. Fire context: no.
#pragma once

#include <string>
#include <string_view>

namespace ringside {

/// Of a name: no blank either.
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
