#include "vmm/base/printable.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ringside {
namespace {

void append_escape(std::string& out, char c) {
  constexpr std::string_view kCharacters = "\a\b\f\n\r\t\v", kLetters = "abfnrtv";
  const std::size_t at = kCharacters.find(c);
  out += '\\';
  if (at != std::string_view::npos) {
    out += kLetters[at];
    return;
  }
  const auto byte = static_cast<unsigned char>(c);
  for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + (byte >> shift & 7));
}

}  // namespace

std::size_t character_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = at(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second >= 0xa0;
  const bool beyond = lead == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

std::string terminal_text(std::string_view text, Breaks breaks) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view unit = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(unit.size());
    const bool kept = breaks == Breaks::Kept && (unit == "\t" || unit == "\n");
    if (length != 0 && (kept || !is_control(unit))) {
      result += unit;
      continue;
    }
    for (const char c : unit) append_escape(result, c);
  }
  return result;
}

void append_grouped(std::string& out, std::uint64_t number) {
  std::array<char, 20> buffer;
  const char* const last = std::to_chars(buffer.begin(), buffer.end(), number).ptr;
  const std::string_view digits(buffer.data(), static_cast<std::size_t>(last - buffer.data()));
  for (std::size_t n = 0; n < digits.size(); ++n) {
    if (n != 0 && (digits.size() - n) % 3 == 0) out += ',';
    out += digits[n];
  }
}

}  // namespace ringside
