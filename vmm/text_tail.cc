#include "vmm/text_tail.h"

namespace ringside::vmm {

void TextTail::append(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\r') continue;
    const auto byte = static_cast<unsigned char>(c);
    const bool prints = (byte >= 0x20 && byte < 0x7f) || c == '\n' || c == '\t';
    text_ += prints ? c : '?';
  }
  if (text_.size() <= 2 * limit_) return;  // cut rarely, so that appending stays cheap
  text_.erase(0, text_.size() - limit_);
  const std::size_t line = text_.find('\n');
  if (line != std::string::npos) text_.erase(0, line + 1);
}

std::string_view TextTail::last_line() const {
  const std::size_t end = text_.find_last_not_of(" \t\n");
  if (end == std::string::npos) return {};
  const std::string_view kept = std::string_view(text_).substr(0, end + 1);
  return kept.substr(kept.rfind('\n') + 1);  // npos + 1 is 0: the only line
}

}  // namespace ringside::vmm
