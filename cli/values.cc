#include "cli/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace ringside::cli {
namespace {

bool is_integer_size(std::size_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

bool is_text(std::byte byte) {
  const auto c = static_cast<unsigned char>(byte);
  return std::isprint(c) != 0 || std::isspace(c) != 0 || c == '\a' || c == '\b';
}

/// Printable characters, then nothing but NULs.
bool looks_like_text(Bytes bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  return std::all_of(bytes.begin(), end, is_text) &&
         std::all_of(end, bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

int column_width(std::size_t size) {
  switch (size) {
    case 1: return 3;
    case 2: return 5;
    case 4: return 8;
    default: return 16;
  }
}

}  // namespace

std::uint64_t unsigned_value(Bytes bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

std::int64_t signed_value(Bytes bytes) {
  const std::uint64_t value = unsigned_value(bytes);
  if (bytes.empty() || bytes.size() >= sizeof value) return static_cast<std::int64_t>(value);
  const unsigned shift = 64 - 8 * static_cast<unsigned>(bytes.size());
  return static_cast<std::int64_t>(value << shift) >> shift;
}

std::string_view text_value(Bytes bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  // SAFETY: characters may alias any bytes; the length stays inside the span.
  return {reinterpret_cast<const char*>(bytes.data()),
          static_cast<std::size_t>(end - bytes.begin())};
}

std::string column(const dif::ValueType& type, Bytes bytes, const ColumnStyle& style) {
  if (type.kind != dif::ValueKind::String && is_integer_size(bytes.size())) {
    const std::int64_t value = signed_value(bytes);
    if (style.quiet) return fmt::format("{}", value);
    return fmt::format(" {:>{}}", value, column_width(bytes.size()));
  }
  // The bytes behind a string's NUL are whatever the buffer held; they are no part of it.
  const bool text = type.kind == dif::ValueKind::String
                        ? looks_like_text(bytes.first(text_value(bytes).size()))
                        : looks_like_text(bytes);
  if (!text || style.raw_bytes) return hex_dump(bytes);
  if (style.quiet) return std::string(text_value(bytes));
  return fmt::format("  {:<{}}", text_value(bytes), style.text_width);
}

std::string hex_dump(Bytes bytes) {
  constexpr std::size_t kRow = 16;
  std::string text = fmt::format("\n{:11}", "");
  for (std::size_t i = 0; i < kRow; ++i) text += fmt::format("  {:x}", i);
  text += "  0123456789abcdef\n";
  for (std::size_t at = 0; at < bytes.size(); at += kRow) {
    const Bytes row = bytes.subspan(at, std::min(kRow, bytes.size() - at));
    std::string characters;
    text += fmt::format("{:5}{:>5x}:", "", at);
    for (const std::byte byte : row) {
      const auto c = static_cast<unsigned char>(byte);
      text += fmt::format(" {:02x}", c);
      characters += std::isprint(c) != 0 ? static_cast<char>(c) : '.';
    }
    text += std::string(3 * (kRow - row.size()), ' ') + "  " + characters + '\n';
  }
  return text;
}

}  // namespace ringside::cli
