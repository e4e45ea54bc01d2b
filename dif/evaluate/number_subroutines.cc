#include "dif/evaluate/number_subroutines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "dif/evaluate/dynamic_table.h"
#include "dif/evaluate/hash.h"

namespace ringside::dif {

namespace {

std::optional<int> number_base(CallArguments arguments) {
  if (arguments.size() < 2) return 10;
  const auto base = static_cast<std::int64_t>(arguments[1].value);
  if (base < 2 || base > 36) return std::nullopt;
  return static_cast<int>(base);
}

std::optional<unsigned> digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

NumberSubroutines::NumberSubroutines(Memory& memory)
    : memory_(memory), random_(DynamicTable::random_seed()) {}

/// D types rand() as int.
CallResult NumberSubroutines::rand(CallArguments) {
  random_ += 0x9e37'79b9'7f4a'7c15;
  const auto value = static_cast<std::int32_t>(mix_hash(random_, random_ >> 32));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

/// Base 10 is signed; bases 8 and 16 are written as D reads them, with 0 and 0x in front (0 of base
/// 8 is its own).
CallResult NumberSubroutines::lltostr(CallArguments a) {
  const auto base = number_base(a);
  if (!base) return raise(FaultKind::IllegalOperation);
  std::array<char, 70> out;
  char* at = out.data();
  char* const end = out.data() + out.size();
  const std::uint64_t value = a[0].value;
  if (*base == 10) {
    at = std::to_chars(at, end, static_cast<std::int64_t>(value)).ptr;
  } else {
    if (*base == 16 || (*base == 8 && value != 0)) *at++ = '0';
    if (*base == 16) *at++ = 'x';
    at = std::to_chars(at, end, value, *base).ptr;
  }
  return string_result(memory_, {out.data(), static_cast<std::size_t>(at - out.data())});
}

/// Stops at the first byte that is no digit of the base; overflow wraps.
CallResult NumberSubroutines::strtoll(CallArguments a) {
  const auto base = number_base(a);
  if (!base) return raise(FaultKind::IllegalOperation);
  std::string_view rest = TRY(string_argument(memory_, a[0]));
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\n\v\f\r"), rest.size()));
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (*base == 16 && (rest.starts_with("0x") || rest.starts_with("0X"))) rest.remove_prefix(2);
  std::uint64_t value = 0;
  for (const char c : rest) {
    const auto digit = digit_value(c);
    if (!digit || *digit >= static_cast<unsigned>(*base)) break;
    value = value * static_cast<unsigned>(*base) + *digit;
  }
  return negative ? 0 - value : value;
}

}  // namespace ringside::dif
