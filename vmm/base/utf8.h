// Text of unknown origin (scripts, guests): where its UTF-8 characters end, and how to show it.
// Fire context: no.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringside {

/// The length of the UTF-8 character at the start of `text`, which is not empty; 0 when what
/// stands there is none.
std::size_t character_length(std::string_view text);

/// `text` as it may go to a terminal: bytes of control characters other than tab and newline, and
/// those of no character, as \xNN.
std::string terminal_text(std::string_view text);

}  // namespace ringside
