// Dispatch, and the subroutines about numbers and memory.
#include "dif/evaluate/subroutines.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "dif/engine/speculations.h"
#include "dif/evaluate/hash.h"

namespace ringside::dif {

namespace {

std::optional<int> number_base(std::span<const TupleValue> arguments) {
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

/// Zeroed, because nobody may see bytes that an earlier clause left in scratch.
Result<std::uint64_t, Fault> zeroed(Memory& memory, std::uint64_t size) {
  const std::uint64_t handle = TRY(memory.allocate(size));
  if (size != 0) std::ranges::fill(TRY(memory.writable(handle, size)), std::byte{0});
  return handle;
}

}  // namespace

Subroutines::Subroutines(Memory& memory, BuiltinVariables& builtins)
    : memory_(memory),
      builtins_(builtins),
      random_(DynamicTable::random_seed()),
      token_memory_(memory.string_size()) {
  const auto bytes = token_memory_.bytes();
  // SAFETY: char may alias.
  token_text_ = {reinterpret_cast<char*>(bytes.data()),
                 std::min(bytes.size(), memory.string_size())};
}

Result<std::uint64_t, Fault> Subroutines::speculation(Arguments) {
  if (speculations_ == nullptr) return raise(FaultKind::IllegalOperation);
  access_->take_program();
  return speculations_->allocate();
}

Result<std::uint64_t, Fault> Subroutines::call(Subroutine which, Arguments a) {
  const SubroutineInfo& info = subroutine_info(which);
  if (a.size() < info.least || a.size() > info.most) return raise(FaultKind::IllegalOperation);
  memory_.release_staging();
  switch (which) {
// clang-format off
#define DIF_SUBROUTINE(name, id, text, result, least, most, a1, a2, a3, changes, call, reason) \
    case Subroutine::name: return call(a);
#include "dif/program/builtin.def"
    // clang-format on
  }
  return raise(FaultKind::IllegalOperation);
}

/// The verifier refuses programs that call it.
Result<std::uint64_t, Fault> Subroutines::missing(Arguments) {
  return raise(FaultKind::IllegalOperation);
}

Result<std::uint64_t, Fault> Subroutines::allocate(Arguments a) {
  return zeroed(memory_, a[0].value);
}

Result<std::uint64_t, Fault> Subroutines::swap16(Arguments a) {
  return __builtin_bswap16(static_cast<std::uint16_t>(a[0].value));
}

Result<std::uint64_t, Fault> Subroutines::swap32(Arguments a) {
  return __builtin_bswap32(static_cast<std::uint32_t>(a[0].value));
}

Result<std::uint64_t, Fault> Subroutines::swap64(Arguments a) {
  return __builtin_bswap64(a[0].value);
}

/// D types rand() as int.
Result<std::uint64_t, Fault> Subroutines::rand(Arguments) {
  random_ += 0x9e37'79b9'7f4a'7c15;
  const auto value = static_cast<std::int32_t>(mix_hash(random_, random_ >> 32));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

Result<std::uint64_t, Fault> Subroutines::bcopy(Arguments a) {
  const auto out = TRY(memory_.scratch(a[1].value, a[2].value));
  TRY(memory_.read(a[0].value, out));
  return 0;
}

/// Base 10 is signed; bases 8 and 16 are written as D reads them, with 0 and 0x in front (0 of base
/// 8 is its own).
Result<std::uint64_t, Fault> Subroutines::lltostr(Arguments a) {
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
  return answer({out.data(), static_cast<std::size_t>(at - out.data())});
}

/// Stops at the first byte that is no digit of the base; overflow wraps.
Result<std::uint64_t, Fault> Subroutines::strtoll(Arguments a) {
  const auto base = number_base(a);
  if (!base) return raise(FaultKind::IllegalOperation);
  std::string_view rest = TRY(text(a[0]));
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
