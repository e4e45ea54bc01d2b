#include "dif/d/syntax/token_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "vmm/base/numbers.h"

namespace ringside::d {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return std::numeric_limits<int>::max();
}

/// Resolves C's escapes. An unknown one stays as it is written, as dtrace has it.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    constexpr std::string_view kLetters = "abfnrtv\\'\"?", kMeanings = "\a\b\f\n\r\t\v\\'\"?";
    const std::size_t letter = kLetters.find(c);
    unsigned value = 0;
    if (letter != std::string_view::npos) {
      out += kMeanings[letter];
    } else if (c >= '0' && c <= '7') {
      for (int n = 0; n < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++n) {
        value = value * 8 + static_cast<unsigned>(text[i++] - '0');
      }
      --i;
      out += static_cast<char>(value);
    } else if (c == 'x' && i + 1 < text.size() && digit_value(text[i + 1]) < 16) {
      while (i + 1 < text.size() && digit_value(text[i + 1]) < 16) {
        value = (value * 16 + static_cast<unsigned>(digit_value(text[++i]))) & 0xff;
      }
      out += static_cast<char>(value);
    } else if (c != '\n') {  // a backslash joins lines
      out.append({'\\', c});
    }
  }
  return out;
}

/// The smallest of C's types that holds an integer constant.
std::string_view literal_type(std::uint64_t value, bool is_decimal, bool is_unsigned,
                              bool is_long) {
  if (!is_long) {
    if (!is_unsigned && value <= INT32_MAX) return "int";
    if ((is_unsigned || !is_decimal) && value <= UINT32_MAX) return "unsigned int";
  }
  return !is_unsigned && value <= INT64_MAX ? "long" : "unsigned long";
}

}  // namespace

Expr* TokenValues::integer(std::string_view text) {
  std::string_view digits = text;
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    digits.remove_prefix(1);
  }
  bool is_unsigned = false;
  int longs = 0;
  while (!digits.empty()) {
    const char c = digits.back();
    if ((c == 'u' || c == 'U') && !is_unsigned) {
      is_unsigned = true;
    } else if ((c == 'l' || c == 'L') && longs < 2) {
      ++longs;
    } else {
      break;
    }
    digits.remove_suffix(1);
  }
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (digit_value(c) >= base) {
      state_.stop("D_INT_DIGIT",
                  fmt::format("integer constant {} contains invalid digit {}", text, c));
      return nullptr;
    }
    if (__builtin_mul_overflow(value, static_cast<unsigned>(base), &value) ||
        __builtin_add_overflow(value, static_cast<unsigned>(digit_value(c)), &value)) {
      state_.stop(
          "D_INT_OFLOW",
          fmt::format("integer constant {} cannot be represented in any built-in integral type",
                      text));
      return nullptr;
    }
  }
  if (digits.empty() && base == 16) {
    state_.stop("D_INT_DIGIT", fmt::format("integer constant {} has no digits", text));
    return nullptr;
  }
  Expr* node = nodes_.expr(ExprKind::Integer, state_.cursor.token());
  node->constant = value;
  node->type =
      state_.types.find(literal_type(value, base == 10, is_unsigned, longs > 0)).value_or(TypeId{});
  return node;
}

Expr* TokenValues::character(std::string_view text) {
  const std::string bytes = unescape(text.substr(1, text.size() - 2));
  if (bytes.empty()) {
    state_.stop("D_CHR_NULL", "empty character constant");
    return nullptr;
  }
  if (bytes.size() > 8) {
    state_.stop("D_CHR_OFLOW", "character constant is too long");
    return nullptr;
  }
  // As dtrace has it on processors of either byte order: the last character is the lowest byte,
  // and none is negative.
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  Expr* node = nodes_.expr(ExprKind::Integer, state_.cursor.token());
  node->constant = value;
  node->type = state_.types.find(bytes.size() <= 4 ? "int" : "long").value_or(TypeId{});
  if (bytes.size() == 4) {
    node->constant = static_cast<std::uint64_t>(static_cast<std::int32_t>(value));
  }
  return node;
}

Text TokenValues::string(std::string_view quoted) {
  std::string value = unescape(quoted.substr(1, quoted.size() - 2));
  value.resize(std::min(value.size(), value.find('\0')));  // C's strings end at the first NUL
  return nodes_.text(value);
}

namespace {

/// An argument in quotes is a string, as is one that no name or number could be.
void take_as_string(Macro& macro) {
  std::string& text = macro.text;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = unescape(std::string_view(text).substr(1, text.size() - 2));
    macro.is_string = true;
    return;
  }
  const bool number = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  const auto in_name = [](char c) { return digit_value(c) < 36 || c == '_' || c == '`'; };
  if (!number && !std::ranges::all_of(text, in_name)) macro.is_string = true;
}

}  // namespace

/// A text is part of the one program for all machines.
void TokenValues::stop_at_own_text(std::string_view name) {
  state_.stop(
      "D_MACRO_UNDEF",
      fmt::format("macro variable ${} is another number on each machine, so it can be no text",
                  name));
}

std::optional<Macro> TokenValues::macro(std::string_view written) {
  Macro result;
  std::string_view name = written;
  name.remove_prefix(1);
  if (name.starts_with('$')) {
    result.is_string = true;
    name.remove_prefix(1);
  }
  if (name[0] >= '0' && name[0] <= '9') {
    const auto index = parse_number<std::size_t>(name);
    if (!index) {
      state_.stop("D_MACRO_OFLOW", fmt::format("macro argument {} is out of range", written));
      return std::nullopt;
    }
    used_arguments_.insert(*index);
    if (*index < state_.options.macro_arguments.size()) {
      result.text = state_.options.macro_arguments[*index];
      if (!result.is_string) take_as_string(result);
    } else if (state_.options.default_arguments) {
      result.text.assign(result.is_string ? 0 : 1, '0');
    } else {
      state_.stop("D_MACRO_UNDEF", fmt::format("macro argument {} is not defined", written));
      return std::nullopt;
    }
    return result;
  }
  const auto found = state_.options.macros.find(std::string(name));
  if (found == state_.options.macros.end() && name == "target") {
    result.text = "0";  // scripts name it in predicates, and run without -c and -p as well
    return result;
  }
  if (found == state_.options.macros.end()) {
    state_.stop("D_MACRO_UNDEF", fmt::format("macro variable {} is not defined", written));
    return std::nullopt;
  }
  result.text = std::to_string(found->second);
  result.is_own = name == "target" && state_.options.target_differs;
  if (!result.is_own || !result.is_string) return result;
  stop_at_own_text(name);
  return std::nullopt;
}

Text TokenValues::pattern(std::string_view raw) {
  std::string out;
  while (!raw.empty()) {
    std::size_t end = 1;
    if (raw[0] == '$') {
      while (end < raw.size() && raw[end] == '$' && end < 2) ++end;
      const bool digits = end < raw.size() && raw[end] >= '0' && raw[end] <= '9';
      while (end < raw.size() && (digits ? raw[end] >= '0' && raw[end] <= '9'
                                         : digit_value(raw[end]) < 36 || raw[end] == '_')) {
        ++end;
      }
      const std::string_view name = raw.substr(0, end);
      if (name.find_first_not_of('$') == std::string_view::npos) {
        state_.stop("D_PDESC_INVAL", "invalid probe description: $ without a macro's name");
        return nullptr;
      }
      const auto expanded = macro(name);
      if (!expanded) return nullptr;
      if (expanded->is_own) {
        stop_at_own_text(name.substr(1));
        return nullptr;
      }
      out += expanded->text;
    } else {
      end = std::min(raw.find('$'), raw.size());
      out += raw.substr(0, end);
    }
    raw.remove_prefix(end);
  }
  return nodes_.text(out);
}

void TokenValues::check_unused_arguments() {
  if (state_.options.default_arguments || state_.options.unused_arguments) return;
  for (std::size_t i = 1; i < state_.options.macro_arguments.size(); ++i) {
    if (used_arguments_.contains(i)) continue;
    return state_.stop("D_MACRO_UNUSED", {},
                       fmt::format("extraneous argument '{}' (${} is not referenced)",
                                   state_.options.macro_arguments[i], i));
  }
}

}  // namespace ringside::d
