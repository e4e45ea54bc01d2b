// In this file, top to bottom: reading values, code addresses, padding, columns, stacks, dumps.
#include "cli/output/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>

#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using dif::ValueKind;

constexpr std::size_t kSymbolWidth = 50;

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

/// The size decides, not the type: dtrace prints 8 and 4 bytes with a sign, narrower ones without.
std::int64_t column_value(const Value& value) {
  return value.bytes.size() >= 4 ? signed_value(value.bytes)
                                 : static_cast<std::int64_t>(unsigned_value(value.bytes));
}

void append_bytes_column(std::string& out, const Value& value, const ColumnStyle& style) {
  std::string_view text = text_value(value.bytes);
  // The bytes after a string's NUL are whatever the buffer held; they are no part of it.
  const bool printable = value.type.kind == ValueKind::String
                             ? looks_like_text(value.bytes.first(text.size()))
                             : looks_like_text(value.bytes);
  if (!printable || style.raw_bytes) return append_hex_dump(out, value.bytes);
  std::string escaped;
  if (style.escapes) text = escaped = terminal_text(text, Breaks::Escaped);
  if (style.quiet) {
    out += text;
  } else {
    out += "  ";
    append_left(out, text, static_cast<std::size_t>(style.text_width));
  }
}

}  // namespace

std::size_t column_width(std::size_t size) {
  switch (size) {
    case 1: return 3;
    case 2: return 5;
    case 4: return 8;
    case 8: return 16;
    default: return 0;
  }
}

std::uint64_t unsigned_value(Bytes bytes) {
  std::uint64_t value = 0;
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

std::int64_t signed_value(Bytes bytes) {
  const std::uint64_t value = unsigned_value(bytes);
  if (bytes.empty() || bytes.size() >= sizeof value) return static_cast<std::int64_t>(value);
  const unsigned shift = 64 - 8 * static_cast<unsigned>(bytes.size());
  return static_cast<std::int64_t>(value << shift) >> shift;
}

std::int64_t integer_value(const Value& value) {
  return value.type.is_signed ? signed_value(value.bytes)
                              : static_cast<std::int64_t>(unsigned_value(value.bytes));
}

std::string_view text_value(Bytes bytes) {
  // SAFETY: characters may alias any bytes; the length stays inside the span.
  const char* const text = reinterpret_cast<const char*>(bytes.data());
  return {text, bytes.empty() ? 0 : ::strnlen(text, bytes.size())};
}

std::uint64_t word_at(Bytes bytes, std::size_t index) {
  if (index >= bytes.size() / 8) return 0;
  return unsigned_value(bytes.subspan(index * 8, 8));
}

CodeAddress code_address(const Value& value) {
  if (is_user_code(value.type.kind)) {
    return {word_at(value.bytes, 0), GuestVirt(word_at(value.bytes, 1))};
  }
  return {0, GuestVirt(unsigned_value(value.bytes))};
}

std::string code_text(const Value& value, const CodeNames& names) {
  const CodeAddress code = code_address(value);
  std::string text = is_user_code(value.type.kind) ? names.describe_user(code.pid, code.address)
                                                   : names.describe(code.address);
  switch (value.type.kind) {
    case ValueKind::KernelSymbol:
    case ValueKind::UserSymbol: return std::string(without_offset(text));
    case ValueKind::KernelModule:
    case ValueKind::UserModule: return std::string(module_of(text));
    default: return text;
  }
}

void append_number(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, std::end(digits), value).ptr;
  out.append(digits, end);
}

void append_padded_number(std::string& out, std::int64_t value, std::size_t width) {
  char digits[24];
  const auto end = std::to_chars(digits, std::end(digits), value).ptr;
  append_right(out, {digits, static_cast<std::size_t>(end - digits)}, width);
}

void append_left(std::string& out, std::string_view text, std::size_t width) {
  out += text;
  if (text.size() < width) out.append(width - text.size(), ' ');
}

void append_right(std::string& out, std::string_view text, std::size_t width) {
  if (text.size() < width) out.append(width - text.size(), ' ');
  out += text;
}

void append_column(std::string& out, const Value& value, const ColumnStyle& style,
                   const CodeNames& names) {
  switch (value.type.kind) {
    case ValueKind::Void: return;
    case ValueKind::KernelStack:
    case ValueKind::UserStack: return append_stack(out, value, style.stack_indent, 0, names);
    case ValueKind::KernelSymbol:
    case ValueKind::KernelModule:
    case ValueKind::UserSymbol:
    case ValueKind::UserModule:
    case ValueKind::UserAddress:
      out += "  ";
      return append_left(out, code_text(value, names), kSymbolWidth);
    case ValueKind::String: return append_bytes_column(out, value, style);
    case ValueKind::Integer:
    case ValueKind::Bytes: break;
  }
  const std::size_t width = column_width(value.bytes.size());
  if (width == 0) return append_bytes_column(out, value, style);
  if (style.quiet) return append_number(out, column_value(value));
  out += ' ';
  append_padded_number(out, column_value(value), width);
}

void append_stack(std::string& out, const Value& stack, std::size_t indent, std::size_t width,
                  const CodeNames& names) {
  const bool user = stack.type.kind == ValueKind::UserStack;
  const std::uint64_t pid = user ? word_at(stack.bytes, 0) : 0;
  out += '\n';
  for (std::size_t i = user ? 1 : 0; i < stack.bytes.size() / 8; ++i) {
    const GuestVirt frame(word_at(stack.bytes, i));
    if (frame.raw() == 0) break;
    out.append(indent, ' ');
    append_left(out, user ? names.describe_user(pid, frame) : names.describe(frame), width);
    out += '\n';
  }
}

void append_hex_dump(std::string& out, Bytes bytes) {
  constexpr std::size_t kRow = 16;
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\n           ";
  for (std::size_t i = 0; i < kRow; ++i) {
    out += "  ";
    out += kDigits[i];
  }
  out += "  0123456789abcdef\n";
  for (std::size_t at = 0; at < bytes.size(); at += kRow) {
    const Bytes row = bytes.subspan(at, std::min(kRow, bytes.size() - at));
    fmt::format_to(std::back_inserter(out), "{:5}{:>5x}:", "", at);
    char characters[kRow];
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto c = static_cast<unsigned char>(row[i]);
      out += ' ';
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
      characters[i] = std::isprint(c) != 0 ? static_cast<char>(c) : '.';
    }
    out.append(3 * (kRow - row.size()) + 2, ' ');
    out.append(characters, row.size());
    out += '\n';
  }
}

std::string CodeNames::describe_user(std::uint64_t /*pid*/, GuestVirt address) const {
  return fmt::format("0x{:x}", address.raw());
}

CodeName split_code_name(std::string_view description) {
  CodeName name;
  const std::size_t tick = description.find('`');
  if (tick == description.npos) return name;
  name.module = description.substr(0, tick);
  const std::string_view rest = description.substr(tick + 1);
  if (rest.starts_with("0x")) return name;
  name.symbol = without_offset(rest);
  const std::string_view offset = rest.substr(name.symbol.size());
  if (offset.size() > 3) {
    std::string_view digits = offset.substr(3);
    name.offset = take_number<std::uint64_t>(digits, 16).value_or(0);
  }
  return name;
}

std::string_view without_offset(std::string_view description) {
  return description.substr(0, description.rfind("+0x"));
}

std::string_view module_of(std::string_view description) {
  return description.substr(0, description.find('`'));
}

}  // namespace ringside::cli
