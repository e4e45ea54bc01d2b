// The breakpoints of a machine: which are bytes in the guest's RAM, which stand in the debug
// registers, and what each vCPU's KVM_SET_GUEST_DEBUG must say for them. The bytes are
//   int3, where KVM intercepts it (or trips over it, TrapRoute::Emulated)
//   out kTrapPort, al, where an int3 would go to the guest's own IDT: two bytes, so not over an
//         instruction of one byte that ends its block, unless padding follows. Who was behind such
//         an instruction meanwhile comes to the second byte: split_at()
// The debug registers take what is not mapped yet, and what two bytes do not fit. None of it needs
// an IDT, paging or any code of the guest's.
// A rejected design: int3 with a debug register on the guest's own handler. It needs an IDT that
// stands still, and debug registers, which QEMU 7.2's TCG does not load for a guest.
// Written while the machine is paused; read by vCPUs that handle an exit, which may be at the same
// time, hence the lock. A vCPU that wants to be alone (gate.h) takes that before this lock.
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
#include "vmm/kvm/vcpu/trap_route.h"
#include "vmm/kvm/vcpu/vcpu_calls.h"

namespace ringside::vmm::kvm {

/// Which breakpoints become bytes and which are watched. Pure.
struct BreakpointPlan {
  std::vector<GuestVirt> bytes;
  std::vector<GuestVirt> watched;
};
/// `takes_bytes`: mapped, and our bytes fit. Invalid or Limit as VcpuExits::set_breakpoints says.
Result<BreakpointPlan> plan_breakpoints(std::span<const GuestVirt> addresses,
                                        const std::function<bool(GuestVirt)>& takes_bytes,
                                        unsigned free_registers);
/// Whether a port write may stand over `code`, the instruction's bytes and what follows.
bool takes_port_write(std::span<const std::byte> code);

class Breakpoints {
 public:
  using Locate = std::function<std::optional<GuestPhys>(GuestVirt)>;

  /// A port that no device in KVM has. The byte is also an instruction, out dx, al, which leaves
  /// the guest as well: for who comes to it alone (split_at).
  static constexpr std::uint8_t kTrapPort = 0xee;

  Breakpoints(GuestMemory& memory, TrapBehavior trap_behavior)
      : memory_(memory), trap_behavior_(trap_behavior) {}

  bool by_port() const { return trap_behavior_.route == TrapRoute::ToGuest; }
  /// The machine is paused. `locate` translates by the page tables in use. On failure nothing has
  /// changed.
  Result<void> replace(std::span<const GuestVirt> addresses, const Locate& locate);

  enum class Found : std::uint8_t { Nothing, Byte, Watched };
  Found find(GuestVirt at) const;
  /// The breakpoint whose bytes a vCPU ran into at `rip`: the one there, else the one that `locate`
  /// shows to be there under another address, as code is that runs before it is mapped.
  std::optional<GuestVirt> met_at(GuestVirt rip, const Locate& locate) const;
  /// The breakpoint of two bytes whose second one stands at `rip`. A vCPU comes there when it stood
  /// behind an instruction of one byte, or was interrupted there, before the bytes were put over
  /// it.
  std::optional<GuestVirt> split_at(GuestVirt rip) const;
  DebugSetup setup() const;

  /// Takes our bytes out of `code`, which was read at `at`.
  void hide(GuestVirt at, std::span<std::byte> code) const;
  /// Puts back what stood at `at` and, in restore(), our byte again. For a vCPU that is alone.
  void lift(GuestVirt at);
  void restore(GuestVirt at);

 private:
  /// What stands in RAM: ours, and what was there before. One byte or two.
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
