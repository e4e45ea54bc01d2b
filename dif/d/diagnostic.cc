#include "dif/d/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/base/utf8.h"

namespace ringside::d {
namespace {

constexpr std::size_t kShownBefore = 100, kShownAfter = 60;

std::string_view line_of(std::string_view source, int number) {
  for (int line = 1; line < number; ++line) {
    const std::size_t end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  return source.substr(0, source.find('\n'));
}

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

std::string render(const Diagnostic& diagnostic, std::string_view source, std::string_view file,
                   bool with_tag) {
  std::string message;
  if (with_tag) message = fmt::format("[{}] ", diagnostic.tag);
  if (!file.empty()) message += fmt::format("\"{}\", ", file);
  message += fmt::format("line {}: {}", diagnostic.at.line, diagnostic.text);

  const std::string_view line = line_of(source, diagnostic.at.source_line);
  std::size_t column = static_cast<std::size_t>(std::max(diagnostic.at.column, 1)) - 1;
  column = std::min(column, line.size());
  const auto [shown, pad] = shown_line(line, column);
  return fmt::format("{}\n{}\n{}^ column {}", terminal_text(message), shown, pad, column + 1);
}

}  // namespace ringside::d
