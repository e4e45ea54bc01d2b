// In this file: numbers, then network and link addresses.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "dif/evaluate/dynamic_table.h"
#include "dif/evaluate/subroutines.h"

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

namespace {

// Linux's numbers: include/linux/socket.h, include/uapi/linux/if_arp.h.
constexpr std::uint64_t kAfInet = 2, kAfInet6 = 10;
constexpr std::uint64_t kEthernet = 1, kInfiniband = 32;
constexpr std::size_t kEthernetBytes = 6, kInfinibandBytes = 20;

constexpr std::size_t kGroups = 8;
using Inet6 = std::array<std::byte, 2 * kGroups>;

/// Text of bounded length without a heap. The longest one is an address of Infiniband: 59 bytes.
/// put() beyond the end is ignored.
class ShortText {
 public:
  void put(char c) {
    if (used_ < text_.size()) text_[used_++] = c;
  }
  void number(unsigned value, int base) {
    const auto done = std::to_chars(text_.data() + used_, text_.data() + text_.size(), value, base);
    used_ = static_cast<std::size_t>(done.ptr - text_.data());
  }
  std::string_view view() const { return {text_.data(), used_}; }

 private:
  std::array<char, 64> text_{};
  std::size_t used_ = 0;
};

void put_dotted(ShortText& out, std::span<const std::byte> address) {
  for (std::size_t i = 0; i < address.size(); ++i) {
    if (i != 0) out.put('.');
    out.number(std::to_integer<unsigned>(address[i]), 10);
  }
}

unsigned group(const Inet6& address, std::size_t i) {
  return std::to_integer<unsigned>(address[2 * i]) << 8 |
         std::to_integer<unsigned>(address[2 * i + 1]);
}

struct ZeroRun {
  std::size_t start = kGroups, length = 0;
};

/// The first of the longest runs of zero groups; one group alone is no run (RFC 5952, 4.2).
ZeroRun longest_zero_run(const Inet6& address) {
  ZeroRun best, run;
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (group(address, i) != 0) {
      run = {};
      continue;
    }
    run = run.length == 0 ? ZeroRun{i, 1} : ZeroRun{run.start, run.length + 1};
    if (run.length > best.length && run.length >= 2) best = run;
  }
  return best;
}

/// Whether the address carries an IPv4 one: mapped (::ffff:0:0/96) or compatible (::/96, but for
/// the unspecified address and the loopback's).
bool carries_ipv4(const Inet6& address) {
  for (std::size_t i = 0; i + 3 < kGroups; ++i) {
    if (group(address, i) != 0) return false;
  }
  if (group(address, 5) != 0) return group(address, 5) == 0xffff;
  return group(address, 6) != 0 || group(address, 7) > 1;
}

std::span<const std::byte> ipv4_part(const Inet6& address) {
  return std::span(address).last(4);
}

/// RFC 5952; addresses that carry an IPv4 one end in its dotted form. Not by libc's inet_ntop():
/// it writes ::0.0.0.4, which D prints so, as ::4.
void put_inet6(ShortText& out, const Inet6& address) {
  ZeroRun zeros = longest_zero_run(address);
  const bool embedded = carries_ipv4(address);
  const std::size_t end = embedded ? 6 : kGroups;
  if (embedded) zeros = {0, group(address, 5) == 0 ? std::size_t{6} : 5};
  for (std::size_t i = 0; i < end; ++i) {
    if (i == zeros.start) {
      out.put(':');
      if (i + zeros.length == kGroups) out.put(':');
      i += zeros.length - 1;
      continue;
    }
    if (i != 0) out.put(':');
    out.number(group(address, i), 16);
  }
  if (!embedded) return;
  out.put(':');
  put_dotted(out, ipv4_part(address));
}

}  // namespace

CallResult AddressSubroutines::inet_ntoa(CallArguments a) {
  std::array<std::byte, 4> address{};
  TRY(memory_.read(a[0].value, address));
  ShortText out;
  put_dotted(out, address);
  return string_result(memory_, out.view());
}

CallResult AddressSubroutines::inet_ntoa6(CallArguments a) {
  Inet6 address{};
  TRY(memory_.read(a[0].value, address));
  ShortText out;
  if (carries_ipv4(address)) {
    put_dotted(out, ipv4_part(address));
  } else {
    put_inet6(out, address);
  }
  return string_result(memory_, out.view());
}

CallResult AddressSubroutines::inet_ntop(CallArguments a) {
  // D types the family as int.
  const std::uint64_t family = static_cast<std::uint32_t>(a[0].value);
  if (family == kAfInet) return inet_ntoa(a.subspan(1));
  if (family != kAfInet6) return raise(FaultKind::IllegalOperation);
  Inet6 address{};
  TRY(memory_.read(a[1].value, address));
  ShortText out;
  put_inet6(out, address);
  return string_result(memory_, out.view());
}

CallResult AddressSubroutines::link_ntop(CallArguments a) {
  const std::uint64_t type = static_cast<std::uint32_t>(a[0].value);
  if (type != kEthernet && type != kInfiniband) return raise(FaultKind::IllegalOperation);
  std::array<std::byte, kInfinibandBytes> buffer{};
  const auto address = std::span(buffer).first(type == kEthernet ? kEthernetBytes : buffer.size());
  TRY(memory_.read(a[1].value, address));
  ShortText out;
  for (std::size_t i = 0; i < address.size(); ++i) {
    if (i != 0) out.put(':');
    out.number(std::to_integer<unsigned>(address[i]) >> 4, 16);
    out.number(std::to_integer<unsigned>(address[i]) & 0xf, 16);
  }
  return string_result(memory_, out.view());
}

}  // namespace ringside::dif
