#include "dif/d/syntax/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/base/printable.h"

namespace ringside::d {
namespace {

constexpr std::size_t kShownBefore = 100, kShownAfter = 60;

/// A line of the source as it may be shown, and blanks as wide as the part before its caret.
struct ShownLine {
  std::string text, pad;
};

ShownLine shown_line(std::string_view line, std::size_t column) {
  std::size_t at = column > kShownBefore ? column - kShownBefore : 0;
  const auto continues = [&] { return (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80; };
  while (at > 0 && at < column && continues()) ++at;  // not from within a character
  ShownLine shown;
  while (at < line.size() && at < column + kShownAfter) {
    const std::size_t length = std::max<std::size_t>(character_length(line.substr(at)), 1);
    const std::string_view unit = line.substr(at, length);
    const std::string text = terminal_text(unit);
    shown.text += text;
    if (at < column)
      shown.pad += unit == "\t" ? "\t" : std::string(text == unit ? 1 : text.size(), ' ');
    at += length;
  }
  return shown;
}

}  // namespace

std::string_view line_of(std::string_view text, int number) {
  for (int line = 1; line < number; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::string excerpt(const Diagnostic& diagnostic) {
  const std::string& line = diagnostic.source_line;
  std::size_t column = static_cast<std::size_t>(std::max(diagnostic.at.column, 1)) - 1;
  column = std::min(column, line.size());
  const auto [shown, pad] = shown_line(line, column);
  return fmt::format("\n{}\n{}^ column {}", shown, pad, column + 1);
}

std::string render(const Diagnostic& diagnostic, bool with_tag) {
  std::string message;
  if (with_tag) message = fmt::format("[{}] ", diagnostic.tag);
  if (!diagnostic.library.empty()) message += fmt::format("\"{}\", ", diagnostic.library);
  message += fmt::format("line {}: {}", diagnostic.at.line, diagnostic.text);
  return terminal_text(message) + excerpt(diagnostic);
}

}  // namespace ringside::d
