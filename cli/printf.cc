// In this file, top to bottom: one number or text through the C library, each conversion, parsing.
#include "cli/printf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <ctime>

namespace ringside::cli {
namespace {

constexpr std::string_view kSupported = "aCcdiopsSTuxXY";
constexpr int kMaxWidth = 65535;  // a '*' width comes from the D program's data, maybe the guest's

struct Shape {
  std::string flags;
  int width = 0;
  int precision = -1;  // none
};

/// The C library's conversion with our checked flags: it knows every combination of them.
template <class T>
std::string convert(const Shape& shape, const char* kind, T value) {
  const std::string format = "%" + shape.flags + "*.*" + kind;
  const int size = std::snprintf(nullptr, 0, format.c_str(), shape.width, shape.precision, value);
  if (size <= 0) return {};
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), shape.width, shape.precision, value);
  text.pop_back();
  return text;
}

std::string convert_text(const Shape& shape, const std::string& text) {
  return convert(shape, "s", text.c_str());
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
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

/// Nanoseconds since the epoch, in local time.
std::string date(std::int64_t nanoseconds, const char* pattern) {
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm fields{};
  if (localtime_r(&seconds, &fields) == nullptr) return {};
  char text[64];
  return {text, std::strftime(text, sizeof text, pattern, &fields)};
}

std::string convert_value(const dif::Conversion& conversion, const Shape& shape, const Value& value,
                          const Describe& describe) {
  const auto number = static_cast<unsigned long long>(unsigned_value(value.bytes));
  const auto signed_number = static_cast<long long>(signed_value(value.bytes));
  switch (conversion.kind) {
    case 'd':
    case 'i': return convert(shape, "lld", signed_number);
    case 'u': return convert(shape, "llu", number);
    case 'o': return convert(shape, "llo", number);
    case 'p':
    case 'x': return convert(shape, "llx", number);
    case 'X': return convert(shape, "llX", number);
    case 'c': return convert_text(shape, std::string(1, static_cast<char>(number)));
    case 'C': return convert_text(shape, escaped(std::string(1, static_cast<char>(number))));
    case 's': return convert_text(shape, std::string(text_value(value.bytes)));
    case 'S': return convert_text(shape, escaped(text_value(value.bytes)));
    case 'a': return convert_text(shape, describe(GuestVirt(number)));
    case 'Y': return convert_text(shape, date(signed_number, "%Y %b %e %T"));
    case 'T': return convert_text(shape, date(signed_number, "%a, %d %b %Y %T %z"));
    default: return {};
  }
}

std::string convert_aggregate(const dif::Conversion& conversion, const Shape& shape,
                              const AggregateValue& aggregate, const Describe& describe) {
  if (is_distribution(aggregate.definition->function)) return distribution_text(aggregate);
  const std::int64_t number = scalar_value(aggregate);
  const Value value{dif::ValueType{}, std::as_bytes(std::span(&number, 1))};
  return convert_value(conversion, shape, value, describe);
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
      conversion.star_precision ? columns(values.next()) : conversion.precision.value_or(-1);
  return shape;
}

}  // namespace

Result<Format> Format::parse(std::string_view text) {
  Format format;
  format.conversions_ = TRY(dif::parse_format(text));
  for (const dif::Conversion& conversion : format.conversions_) {
    if (conversion.kind != 0 && kSupported.find(conversion.kind) == std::string_view::npos) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("format conversion %{} is not supported yet", conversion.kind));
    }
  }
  return format;
}

std::string Format::print(std::span<const Value> values, std::span<const AggregateValue> aggregates,
                          const Describe& describe) const {
  Supply<Value> next_value(values);
  Supply<AggregateValue> next_aggregate(aggregates);
  std::string text;
  for (const dif::Conversion& conversion : conversions_) {
    text += conversion.literal;
    if (conversion.kind == 0) continue;
    const Shape shape = shape_of(conversion, next_value);
    if (conversion.takes_aggregation) {
      const AggregateValue* aggregate = next_aggregate.next_or_last();
      if (aggregate != nullptr) text += convert_aggregate(conversion, shape, *aggregate, describe);
    } else if (const Value* value = next_value.next(); value != nullptr) {
      text += convert_value(conversion, shape, *value, describe);
    }
  }
  return text;
}

}  // namespace ringside::cli
