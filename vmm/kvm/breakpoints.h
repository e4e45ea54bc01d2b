// The breakpoints of a machine: which are bytes of 0xcc in the guest's RAM, which stand in the
// debug registers, and what each vCPU's KVM_SET_GUEST_DEBUG must say for them.
//   int3, where KVM intercepts it (or trips over it, TrapRoute::Emulated)
//   int3, where it goes to the guest and the guest has a gate for it: a debug register watches the
//         gate's handler, so any number of breakpoints need two registers and no guest code
//   the four debug registers: before there is a gate, and for addresses that are not mapped yet
// Written while the machine is paused; read by vCPUs that handle an exit, which may be at the same
// time, hence the lock. A vCPU that wants to be alone (gate.h) takes that before this lock.
// Fire context: original() and find() yes, the rest no.
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
#include "vmm/kvm/trap_route.h"

namespace ringside::vmm::kvm {

/// Which breakpoints become bytes and which are watched. Pure.
struct BreakpointPlan {
  std::vector<GuestVirt> bytes;
  std::vector<GuestVirt> watched;
};
/// `bytes_work`: an int3 would be seen. Limit or Invalid as VcpuExits::set_breakpoints says.
Result<BreakpointPlan> plan_breakpoints(std::span<const GuestVirt> addresses,
                                        const std::function<bool(GuestVirt)>& is_mapped,
                                        bool bytes_work, unsigned free_registers);

/// A vCPU's gate for int3: where the gate lies, and whom it names.
struct GateWatch {
  GuestVirt gate, handler;
};

/// What a vCPU's KVM_SET_GUEST_DEBUG is to say.
struct DebugSetup {
  std::uint32_t control = 0;
  std::array<std::uint64_t, 4> addresses{};
  std::uint64_t dr7 = 0;
};

class Breakpoints {
 public:
  using Locate = std::function<std::optional<GuestPhys>(GuestVirt)>;

  Breakpoints(GuestMemory& memory, TrapRoute route) : memory_(memory), route_(route) {}

  /// The machine is paused. `locate` translates by the page tables in use; `has_gate`: the guest
  /// has a gate for int3. On failure nothing has changed.
  Result<void> replace(std::span<const GuestVirt> addresses, const Locate& locate, bool has_gate);

  enum class Found : std::uint8_t { Nothing, Byte, Watched };
  Found find(GuestVirt at) const;
  /// `gate`: this vCPU's, where gates are watched: its handler, and writes to the gate itself,
  /// because a booting Linux changes it in place.
  DebugSetup setup(const std::optional<GateWatch>& gate) const;
  bool watches_gates() const;
  bool any() const;

  /// Takes our bytes out of `code`, which was read at `at`.
  void hide(GuestVirt at, std::span<std::byte> code) const;
  /// Puts back what stood at `at` and, in restore(), our byte again. For a vCPU that is alone.
  void lift(GuestVirt at);
  void restore(GuestVirt at);

 private:
  struct Byte {
    GuestPhys where;
    std::byte original;
  };
  void exchange(GuestPhys where, std::byte expected, std::byte value);
  Result<std::map<GuestVirt, Byte>> look_up(std::span<const GuestVirt> addresses,
                                            const Locate& locate) const;

  GuestMemory& memory_;
  const TrapRoute route_;
  mutable std::shared_mutex mutex_;
  std::map<GuestVirt, Byte> bytes_;
  std::vector<GuestVirt> watched_;
  bool watches_gates_ = false;
};

}  // namespace ringside::vmm::kvm
