#include "dif/d/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

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

char printable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f) ? c : '?';
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
  const std::size_t begin = column > kShownBefore ? column - kShownBefore : 0;
  std::string shown, pad;
  for (std::size_t i = begin; i < line.size() && i < column + kShownAfter; ++i) {
    shown += printable(line[i]);
    if (i < column) pad += line[i] == '\t' ? '\t' : ' ';
  }
  return fmt::format("{}\n{}\n{}^ column {}", message, shown, pad, column + 1);
}

}  // namespace ringside::d
