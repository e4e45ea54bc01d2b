// UTF-8 in text of unknown origin (scripts, guests): finds characters, and makes text safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringside {

/// The length in bytes of the UTF-8 character at the start of `text`, which is not empty; 0 when no
/// valid character starts there.
std::size_t character_length(std::string_view text);

/// `text` for a terminal: control characters other than tab and newline, and bytes that are no part
/// of a character, become \xNN.
std::string terminal_text(std::string_view text);

}  // namespace ringside
