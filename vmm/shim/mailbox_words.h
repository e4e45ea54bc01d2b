// Decodes the words of a mailbox, for the parts of Shim. Fire context: yes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "guest-shim/mailbox_abi.h"
#include "vmm/arch/arch.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/trap.h"

namespace ringside::vmm {

inline std::uint8_t state_of(std::uint64_t head) {
  return static_cast<std::uint8_t>(head);
}

inline std::uint64_t claim_of(std::uint64_t head) {
  return head & ~std::uint64_t{SHIM_CLAIM - 1};
}

/// Claims of a mailbox count up, and wrap. A guest that lets them go back waits in vain.
inline bool is_later(std::uint64_t claim, std::uint64_t than) {
  return static_cast<std::int64_t>(claim - than) > 0;
}

inline Registers registers_of(const MailboxCopy& copy) {
  static_assert(SHIM_RAX == 0 && SHIM_R15 == 15 && SHIM_REGISTERS == arch::kByEncoding.size(),
                "the mailbox has them in the order of their encoding");
  Registers out;
  for (std::size_t n = 0; n < SHIM_REGISTERS; ++n) out.*arch::kByEncoding[n] = copy.box.regs[n];
  out.rip = copy.head.address;
  out.rflags = copy.head.rflags;
  out.cs = copy.head.segments & 0xffff;
  out.ss = copy.head.segments >> 32 & 0xffff;
  out.gs_base = copy.head.percpu;  // a trap of ours is in kernel mode, where GS is the per-cpu base
  out.cr3 = copy.head.cr3;
  return out;
}

/// Empty where the shim does not know it, and where it cannot be one.
inline std::optional<TrappedTask> task_of(const MailboxCopy& copy) {
  if (!arch::in_kernel_half(GuestVirt(copy.box.task))) return std::nullopt;
  TrappedTask out{GuestVirt(copy.box.task),
                  {},
                  static_cast<std::int32_t>(copy.box.pid),
                  static_cast<std::int32_t>(copy.box.tgid)};
  static_assert(sizeof out.comm == sizeof copy.box.comm);
  std::memcpy(out.comm.data(), copy.box.comm, sizeof out.comm);
  return out;
}

}  // namespace ringside::vmm
