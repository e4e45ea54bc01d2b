// How the CPU enters the kernel: the gates of the interrupt table, and what the CPU pushes;
// the registers of hardware breakpoints.
// Intel SDM volume 3A, 6.14.1 (figure 6-8) and 6.14.2.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>

#include "vmm/base/address.h"

namespace ringside::arch {

/// A 64-bit gate of the interrupt table.
struct GateDescriptor {
  std::uint16_t offset_low, selector, attributes, offset_middle;
  std::uint32_t offset_high, reserved;

  GuestVirt handler() const {
    return GuestVirt(offset_low | std::uint64_t{offset_middle} << 16 |
                     std::uint64_t{offset_high} << 32);
  }
  void set_handler(GuestVirt to) {
    offset_low = static_cast<std::uint16_t>(to.raw());
    offset_middle = static_cast<std::uint16_t>(to.raw() >> 16);
    offset_high = static_cast<std::uint32_t>(to.raw() >> 32);
  }
  /// 0: the handler runs on the stack that is current.
  unsigned stack_table() const { return attributes & 7; }
  bool is_interrupt_gate() const { return (attributes >> 8 & 0x9f) == 0x8e; }  // present, type 14
};
static_assert(sizeof(GateDescriptor) == 16);

/// The words that the CPU pushes on an interrupt or trap, lowest address first.
struct InterruptFrame {
  std::uint64_t ip, cs, flags, sp, ss;
};

/// DR0 to DR3. Intel SDM volume 3B, 17.2.4.
inline constexpr unsigned kHardwareBreakpoints = 4;

/// Whether DR7 enables breakpoint `n`, for this task or all.
constexpr bool is_breakpoint_enabled(std::uint64_t dr7, unsigned n) {
  return (dr7 >> (2 * n) & 3) != 0;
}

}  // namespace ringside::arch
