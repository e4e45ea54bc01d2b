// The breakpoints of a machine: bytes in the guest's RAM, or addresses in the debug registers.
// Tells the arguments of each vCPU's KVM_SET_GUEST_DEBUG. The bytes are
//   int3, where KVM intercepts it (or stumbles over it, TrapRoute::Emulated)
//   out kTrapPort, al, where an int3 would go to the guest's own IDT. It is two bytes long, so it
//         does not replace an instruction of one byte that ends its block, unless padding follows.
//         A vCPU that stood between the two bytes comes to the second one alone: split_at()
// The debug registers take addresses that are not mapped yet, and instructions that two bytes do
// not fit. Neither needs an IDT, paging or code in the guest.
// A rejected design: int3 with a debug register on the guest's own handler. It needs an IDT that
// never changes, and debug registers, which QEMU 7.2's TCG does not load for a guest.
// Threads: replace() while the machine is paused; the rest on vCPUs that handle an exit, which may
// happen at the same time, hence the lock. A vCPU that wants the guest for itself (gate.h) gets
// that before it takes this lock.
// Fire context: hide() and find() yes, the rest no.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/kvm/api/kvm_vcpu.h"
#include "vmm/kvm/vcpu/trap_route.h"

namespace ringside::vmm::kvm {

/// Decides which breakpoints become bytes and which are watched by debug registers. Pure.
struct BreakpointPlan {
  std::vector<GuestVirt> bytes;
  std::vector<GuestVirt> watched;
};
/// `takes_bytes`: whether an address is mapped and our bytes fit there. `free_registers`: how many
/// addresses can be watched. Invalid or Limit as VcpuExits::set_breakpoints says.
Result<BreakpointPlan> plan_breakpoints(std::span<const GuestVirt> addresses,
                                        const std::function<bool(GuestVirt)>& takes_bytes,
                                        unsigned free_registers);
/// Whether a port write may replace the start of `code`, which is an instruction and what follows
/// it.
bool takes_port_write(std::span<const std::byte> code);

class Breakpoints {
 public:
  using Locate = std::function<std::optional<GuestPhys>(GuestVirt)>;

  /// A port that no device in KVM has. As a byte it is also an instruction, out dx, al, which
  /// leaves the guest as well: a vCPU that comes to the second byte alone executes it (split_at).
  static constexpr std::uint8_t kTrapPort = 0xee;

  Breakpoints(GuestMemory& memory, TrapBehavior trap_behavior)
      : memory_(memory), trap_behavior_(trap_behavior) {}

  /// Whether the bytes are port writes, not int3.
  bool by_port() const { return trap_behavior_.route == TrapRoute::ToGuest; }
  /// Replaces all breakpoints. The machine is paused. `locate` translates by the page tables in
  /// use. Invalid or Limit as VcpuExits::set_breakpoints says; then nothing has changed.
  Result<void> replace(std::span<const GuestVirt> addresses, const Locate& locate);

  enum class Found : std::uint8_t { Nothing, Byte, Watched };
  Found find(GuestVirt at) const;
  /// The breakpoint whose bytes a vCPU ran into at `rip`: one at that address, else one at another
  /// address of the same memory by `locate` (code that runs before it is mapped).
  std::optional<GuestVirt> met_at(GuestVirt rip, const Locate& locate) const;
  /// The breakpoint of two bytes whose second byte is at `rip`. A vCPU comes there alone if it
  /// stood there, after an instruction of one byte, when the bytes were written.
  std::optional<GuestVirt> split_at(GuestVirt rip) const;
  /// The debug setup of every vCPU for these breakpoints.
  DebugSetup setup() const;

  /// Replaces our bytes in `code`, which was read from `at` on, by the guest's own.
  void hide(GuestVirt at, std::span<std::byte> code) const;
  /// lift() takes the bytes of the breakpoint at `at` out of memory, restore() puts them back. The
  /// calling vCPU has the guest for itself (Gate::begin_alone).
  void lift(GuestVirt at);
  void restore(GuestVirt at);

 private:
  /// One or two bytes in RAM: where they are, and what was there before.
  struct Patch {
    std::array<GuestPhys, 2> where;  // two bytes may lie in two pages
    std::array<std::byte, 2> original{};
  };
  std::span<const std::byte> trap() const;
  void exchange(const Patch& patch, std::span<const std::byte> expected,
                std::span<const std::byte> value);
  bool read(GuestVirt at, const Locate& locate, std::span<std::byte> code) const;
  std::optional<Patch> prepare(GuestVirt at, const Locate& locate) const;

  GuestMemory& memory_;
  const TrapBehavior trap_behavior_;
  mutable std::shared_mutex mutex_;
  std::map<GuestVirt, Patch> bytes_;
  std::vector<GuestVirt> watched_;
};

}  // namespace ringside::vmm::kvm
