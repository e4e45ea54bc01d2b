// The subroutines about numbers: random ones, their byte order, from and to text.
// Fire context: yes, but for the constructor.
#pragma once

#include <cstdint>

#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

/// The functions that builtin.def names as numbers.NAME.
class NumberSubroutines {
 public:
  explicit NumberSubroutines(Memory& memory);

  CallResult rand(CallArguments a);
  CallResult swap16(CallArguments a) {
    return __builtin_bswap16(static_cast<std::uint16_t>(a[0].value));
  }
  CallResult swap32(CallArguments a) {
    return __builtin_bswap32(static_cast<std::uint32_t>(a[0].value));
  }
  CallResult swap64(CallArguments a) { return __builtin_bswap64(a[0].value); }
  CallResult lltostr(CallArguments a);
  CallResult strtoll(CallArguments a);

 private:
  Memory& memory_;
  std::uint64_t random_;
};

}  // namespace ringside::dif
