// Lines that begin with #: those of the preprocessor (#line, #ident, #error, markers), and
// the compiler's own #pragma D. Used by the lexer.
#pragma once

#include <optional>
#include <string_view>

#include "dif/d/syntax/parse_state.h"

namespace ringside::d {

class ControlLines {
 public:
  /// The state outlives it.
  explicit ControlLines(ParseState& state) : state_(state) {}

  /// Does what the line, the current token, says; false where the state says why not.
  bool read(std::string_view line);

 private:
  bool pragma(std::string_view words);
  std::optional<bool> directive(std::string_view word, std::string_view words);
  bool pragma_option(std::string_view words);
  bool pragma_with_words(std::string_view directive, std::string_view words);
  bool line_marker(std::string_view words);
  bool malformed(std::string_view what);

  ParseState& state_;
};

}  // namespace ringside::d
