// In this file, top to bottom: one number or text through the C library, texts of special values,
// each conversion, supplies of arguments, parsing, printing.
#include "cli/output/printf.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>

#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using dif::ValueKind;

constexpr int kMaxWidth = 65535;  // a '*' width comes from the D program's data, maybe the guest's

struct Shape {
  std::string_view flags;
  int width = 0;       // negative: left-aligned
  int precision = -1;  // none
  bool escapes = false;
};

/// The C library's conversion with our checked flags: it knows every combination of them.
template <class T>
void convert(std::string& out, const Shape& shape, const char* kind, T value) {
  std::string format = "%";
  format += shape.flags;
  format += "*.*";
  format += kind;
  char small[128];
  const int size =
      std::snprintf(small, sizeof small, format.c_str(), shape.width, shape.precision, value);
  if (size <= 0) return;
  if (static_cast<std::size_t>(size) < sizeof small) {
    out.append(small, static_cast<std::size_t>(size));
    return;
  }
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(size) + 1);
  std::snprintf(out.data() + before, static_cast<std::size_t>(size) + 1, format.c_str(),
                shape.width, shape.precision, value);
  out.pop_back();
}

/// Text may hold NULs (%c of 0), so the C library is no help.
void convert_text(std::string& out, const Shape& shape, std::string_view text) {
  if (shape.precision >= 0) text = text.substr(0, static_cast<std::size_t>(shape.precision));
  std::string escaped;
  if (shape.escapes) text = escaped = terminal_text(text, Breaks::Escaped);
  const auto width = static_cast<std::size_t>(std::abs(shape.width));
  if (shape.width < 0 || shape.flags.find('-') != shape.flags.npos) {
    append_left(out, text, width);
  } else {
    append_right(out, text, width);
  }
}

/// %C and %S: what is not printable becomes a C escape.
std::string escaped(std::string_view text) {
  constexpr std::string_view kCharacters = "\a\b\f\n\r\t\v\\\"";
  constexpr std::string_view kLetters = "abfnrtv\\\"";
  std::string result;
  for (const char c : text) {
    const std::size_t at = kCharacters.find(c);
    if (at != std::string_view::npos) {
      result += '\\';
      result += kLetters[at];
    } else if (std::isprint(static_cast<unsigned char>(c)) != 0) {
      result += c;
    } else {
      result +=
          c == '\0' ? std::string("\\0") : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

/// A string with its terminator, which %S shows as \0.
std::string_view text_with_end(Bytes bytes) {
  const std::string_view text = text_value(bytes);
  return {text.data(), std::min(text.size() + 1, bytes.size())};
}

/// Nanoseconds since the epoch, in local time.
std::string date(std::int64_t nanoseconds, const char* pattern) {
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm fields{};
  if (localtime_r(&seconds, &fields) == nullptr) return {};
  char text[64];
  return {text, std::strftime(text, sizeof text, pattern, &fields)};
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLead[more] | code >> 6 * more);
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> 6 * i & 0x3f));
}

/// %wc and %ws: 4-byte characters as UTF-8.
std::string wide_text(Bytes bytes) {
  std::string text;
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    const auto code = static_cast<std::uint32_t>(unsigned_value(bytes.subspan(at, 4)));
    if (code == 0) break;
    append_utf8(text, code);
  }
  return text;
}

/// %I: the address as numbers; names would need the network, and the guest's may not be ours.
/// A text, as ip_saddr, is one already.
std::string internet_address(const Value& value) {
  if (value.type.kind == ValueKind::String) return std::string(text_value(value.bytes));
  char text[INET6_ADDRSTRLEN] = "";
  if (value.bytes.size() == 4) inet_ntop(AF_INET, value.bytes.data(), text, sizeof text);
  if (value.bytes.size() == 16) inet_ntop(AF_INET6, value.bytes.data(), text, sizeof text);
  return text;
}

/// %P: the name of the service at a port in host order, or its number.
std::string port_name(const Value& value) {
  const auto port = static_cast<std::uint16_t>(unsigned_value(value.bytes));
  servent entry{};
  servent* found = nullptr;
  char buffer[1024];
  if (getservbyport_r(htons(port), nullptr, &entry, buffer, sizeof buffer, &found) == 0 &&
      found != nullptr) {
    return found->s_name;
  }
  return fmt::format("{}", port);
}

void convert_float(std::string& out, const Shape& shape, char kind, Bytes bytes) {
  const char narrow[] = {kind, '\0'}, wide[] = {'L', kind, '\0'};
  if (bytes.size() == 4) {
    float number = 0;
    std::memcpy(&number, bytes.data(), 4);
    convert(out, shape, narrow, static_cast<double>(number));
  } else if (bytes.size() == 16) {
    long double number = 0;
    std::memcpy(&number, bytes.data(), 10);  // x87: the rest is padding
    convert(out, shape, wide, number);
  } else {
    double number = 0;
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
    convert(out, shape, narrow, number);
  }
}

/// %k: like a trace()d stack, but indented only by the width of a left-aligned conversion.
void convert_stack(std::string& out, const Shape& shape, const Value& value,
                   const CodeNames& names) {
  const auto width = static_cast<std::size_t>(std::abs(shape.width));
  const bool left = shape.width < 0 || shape.flags.find('-') != shape.flags.npos;
  append_stack(out, value, left ? width : 0, 0, names);
}

bool is_code_name(ValueKind kind) {
  return kind >= ValueKind::KernelSymbol;
}

void convert_value(std::string& out, const dif::Conversion& conversion, const Shape& shape,
                   const Value& value, const CodeNames& names) {
  const bool wide = conversion.modifiers == "w";
  const ValueKind type = value.type.kind;
  if (type == ValueKind::KernelStack || type == ValueKind::UserStack) {
    return convert_stack(out, shape, value, names);
  }
  if (is_code_name(type)) return convert_text(out, shape, code_text(value, names));
  const auto number = static_cast<unsigned long long>(unsigned_value(value.bytes));
  const auto signed_number = static_cast<long long>(signed_value(value.bytes));
  const char byte = static_cast<char>(number);
  switch (conversion.kind) {
    case 'd':
    case 'i':  // the type says whether there is a sign
      if (type == ValueKind::Integer && !value.type.is_signed) {
        return convert(out, shape, "llu", number);
      }
      return convert(out, shape, "lld", signed_number);
    case 'u': return convert(out, shape, "llu", number);
    case 'o': return convert(out, shape, "llo", number);
    case 'p':
    case 'x': return convert(out, shape, "llx", number);
    case 'X': return convert(out, shape, "llX", number);
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G': return convert_float(out, shape, conversion.kind, value.bytes);
    case 'c':
      if (wide)
        return convert_text(
            out, shape, wide_text(value.bytes.first(std::min<std::size_t>(value.bytes.size(), 4))));
      return convert_text(out, shape, {&byte, 1});
    case 'C': return convert_text(out, shape, escaped({&byte, 1}));
    case 's':
      if (wide) return convert_text(out, shape, wide_text(value.bytes));
      return convert_text(out, shape, text_value(value.bytes));
    case 'S': return convert_text(out, shape, escaped(text_with_end(value.bytes)));
    case 'a': return convert_text(out, shape, names.describe(GuestVirt(number)));
    case 'A': return convert_text(out, shape, names.describe_user(0, GuestVirt(number)));
    case 'I': return convert_text(out, shape, internet_address(value));
    case 'P': return convert_text(out, shape, port_name(value));
    case 'Y': return convert_text(out, shape, date(signed_number, "%Y %b %e %T"));
    case 'T': return convert_text(out, shape, date(signed_number, "%a, %d %b %Y %T %Z"));
    default: return;
  }
}

void convert_aggregate(std::string& out, const dif::Conversion& conversion, const Shape& shape,
                       const AggregateValue& aggregate, const CodeNames& names, BarStyle bars) {
  if (is_distribution(aggregate.definition->function)) {
    return append_distribution(out, aggregate, bars);
  }
  const std::int64_t number = scalar_value(aggregate);
  const Value value{dif::ValueType{}, std::as_bytes(std::span(&number, 1))};
  convert_value(out, conversion, shape, value, names);
}

/// Hands out values in order; after the last one there are only empty ones.
template <class T>
class Supply {
 public:
  explicit Supply(std::span<const T> items) : items_(items) {}
  const T* next() { return at_ < items_.size() ? &items_[at_++] : nullptr; }
  const T* next_or_last() {
    const T* item = next();
    return item != nullptr || items_.empty() ? item : &items_.back();
  }

 private:
  std::span<const T> items_;
  std::size_t at_ = 0;
};

int columns(const Value* value) {
  if (value == nullptr) return 0;
  return static_cast<int>(
      std::clamp<std::int64_t>(signed_value(value->bytes), -kMaxWidth, kMaxWidth));
}

Shape shape_of(const dif::Conversion& conversion, Supply<Value>& values) {
  Shape shape;
  shape.flags = conversion.flags;
  shape.width = conversion.star_width ? columns(values.next()) : conversion.width.value_or(0);
  shape.precision =
      conversion.star_precision ? columns(values.next()) : conversion.precision.value_or(0);
  if (shape.precision == 0) shape.precision = -1;  // dtrace takes 0 for none, unlike C
  return shape;
}

template <class T>
void append_digits(std::string& out, T value, int base) {
  char digits[24];
  const auto end = std::to_chars(digits, std::end(digits), value, base).ptr;
  out.append(digits, end);
}

}  // namespace

Format::Fast Format::fast_form(const dif::Conversion& c) {
  if (!c.flags.empty() || c.width || c.precision || c.star_width || c.star_precision ||
      c.takes_aggregation || c.modifiers == "w") {
    return Fast::None;
  }
  switch (c.kind) {
    case 'd':
    case 'i': return Fast::Decimal;
    case 'u': return Fast::Unsigned;
    case 'x':
    case 'p': return Fast::Hexadecimal;
    case 's': return Fast::String;
    default: return Fast::None;
  }
}

Result<Format> Format::parse(std::string_view text) {
  Format format;
  for (dif::Conversion& conversion : TRY(dif::parse_format(text))) {
    const Fast fast = fast_form(conversion);
    format.steps_.push_back({std::move(conversion), fast});
  }
  return format;
}

void Format::print_fast(std::string& out, Fast fast, const Value& value) {
  switch (fast) {
    case Fast::Decimal:
      if (value.type.kind == ValueKind::Integer && !value.type.is_signed) {
        append_digits(out, unsigned_value(value.bytes), 10);
      } else {
        append_digits(out, signed_value(value.bytes), 10);
      }
      break;
    case Fast::Unsigned: append_digits(out, unsigned_value(value.bytes), 10); break;
    case Fast::Hexadecimal: append_digits(out, unsigned_value(value.bytes), 16); break;
    case Fast::String: out += text_value(value.bytes); break;
    case Fast::None: break;
  }
}

void Format::print(std::string& out, std::span<const Value> values,
                   std::span<const AggregateValue> aggregates, const CodeNames& names,
                   BarStyle bars, OwnParts* own) const {
  Supply<Value> next_value(values);
  Supply<AggregateValue> next_aggregate(aggregates);
  for (const Step& step : steps_) {
    const dif::Conversion& conversion = step.conversion;
    std::size_t start = out.size();
    const auto note_own = [&] {
      if (own != nullptr && out.size() > start) own->emplace_back(start, out.size());
    };
    out += conversion.literal;
    note_own();
    if (conversion.kind == 0) continue;
    const bool plain = step.fast != Fast::None;
    Shape shape = plain ? Shape{} : shape_of(conversion, next_value);
    if (conversion.takes_aggregation) {
      const AggregateValue* aggregate = next_aggregate.next_or_last();
      if (aggregate != nullptr) {
        convert_aggregate(out, conversion, shape, *aggregate, names, bars);
      }
      continue;
    }
    const Value* value = next_value.next();
    if (value == nullptr) continue;
    start = out.size();
    shape.escapes = own != nullptr && !value->own;
    const bool escapes_text = step.fast == Fast::String && shape.escapes;
    if (plain && !escapes_text && value->type.kind <= ValueKind::Bytes) {
      print_fast(out, step.fast, *value);
    } else {
      convert_value(out, conversion, shape, *value, names);
    }
    if (value->own) note_own();
  }
}

}  // namespace ringside::cli
