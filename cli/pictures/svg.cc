#include "cli/pictures/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kSvgReplacement = "\xef\xbf\xbd";

/// The colours of the page, by the reader's own choice of light or dark. Programs that do not know
/// of this choice show the light one.
constexpr std::string_view kPageStyle = R"(
text { font: 12px "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #222; }
.page { fill: #fdfdfc; }
.title { font-size: 15px; font-weight: bold; }
.quiet { fill: #666; }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd; }
  .page { fill: #1b1c1e; }
  .quiet { fill: #999; }
}
)";

/// The escape of a character of one byte; empty where there is none.
std::string_view escape_of(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return c >= 0 && (c < 0x20 || c == 0x7f) ? kSvgReplacement : std::string_view();
  }
}

bool is_plain_in_svg(char c) {
  return c >= 0x20 && c < 0x7f && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'';
}

}  // namespace

void append_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), is_plain_in_svg) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const std::string_view escape = length == 1 ? escape_of(character[0]) : std::string_view();
    const bool none = length == 0 || (length > 1 && is_control(character)) ||
                      character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf";
    out += none ? kSvgReplacement : escape.empty() ? character : escape;
    text.remove_prefix(character.size());
  }
}

void append_share(std::string& out, std::uint64_t part, std::uint64_t total) {
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(total);
  const auto hundredths = static_cast<std::uint64_t>(std::llround(percent * 100));
  append_grouped(out, hundredths / 100);
  out += '.';
  out += static_cast<char>('0' + hundredths / 10 % 10);
  out += static_cast<char>('0' + hundredths % 10);
  out += " %";
}

void append_pixels(std::string& out, double pixels) {
  const auto hundredths = static_cast<std::uint64_t>(std::llround(std::max(pixels, 0.0) * 100));
  const fmt::format_int whole(hundredths / 100);
  out.append(whole.data(), whole.size());
  if (hundredths % 100 == 0) return;
  out += '.';
  out += static_cast<char>('0' + hundredths / 10 % 10);
  if (hundredths % 10 != 0) out += static_cast<char>('0' + hundredths % 10);
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(std::string_view text, std::size_t most) {
  if (characters_in(text) <= most) return std::string(text);
  std::string cut;
  for (std::size_t i = 0; i + 2 < most && !text.empty(); ++i) {
    const std::size_t length = std::max<std::size_t>(character_length(text), 1);
    cut += text.substr(0, length);
    text.remove_prefix(length);
  }
  return cut + "..";
}

void begin_svg(std::string& out, double width, double height, std::string_view title,
               std::string_view style) {
  fmt::format_to(std::back_inserter(out),
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                 "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>",
                 width, height);
  append_escaped(out, title);
  out.append("</title>\n<style>").append(kPageStyle).append(style);
  out += "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
}

}  // namespace ringside::cli
