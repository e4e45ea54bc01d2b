// The registers of hardware breakpoints. Intel SDM volume 3B, 17.2.4.
// Fire context: yes.
#pragma once

#include <cstdint>

namespace ringside::arch {

inline constexpr unsigned kHardwareBreakpoints = 4;

/// Whether DR7 enables breakpoint `n`, for this task or all.
constexpr bool is_breakpoint_enabled(std::uint64_t dr7, unsigned n) {
  return (dr7 >> (2 * n) & 3) != 0;
}

}  // namespace ringside::arch
