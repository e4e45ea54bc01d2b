#include "dif/d/syntax/parse_state.h"

namespace ringside::d {

void SourceCursor::advance(std::string_view text) {
  token_ = next_;
  token_offset_ = offset_;
  offset_ += text.size();
  for (const char c : text) {
    ++next_.column;
    if (c != '\n') continue;
    ++next_.line;
    ++next_.source_line;
    next_.column = 1;
  }
}

void SourceCursor::rewind() {
  next_ = token_;
  offset_ = token_offset_;
}

bool SourceCursor::name_follows() const {
  const std::size_t at = source_.find_first_not_of(" \t\r\n", offset_);
  return at != std::string_view::npos && (is_word(source_[at]) || source_[at] == '*');
}

bool SourceCursor::predicate_ends() const {
  std::size_t at = offset_;
  while (at < source_.size()) {
    if (std::string_view(" \t\r\n\f\v").find(source_[at]) != std::string_view::npos) {
      ++at;
    } else if (source_.substr(at, 2) == "/*") {
      const std::size_t end = source_.find("*/", at + 2);
      if (end == std::string_view::npos) return true;
      at = end + 2;
    } else {
      return std::string_view("{;/").find(source_[at]) != std::string_view::npos;
    }
  }
  return true;
}

}  // namespace ringside::d
