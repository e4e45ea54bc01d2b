// The calls on KVM that handling an exit makes, so that what handles exits can be tried without
// KVM: KvmVcpu makes them for the guest, FakeVcpuCalls (fakes_for_tests.h) writes them down.
// Threads: the vCPU's own.
#pragma once

#include <linux/kvm.h>

#include <array>
#include <cstdint>
#include <optional>

#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::vmm::kvm {

/// The arguments of KVM_SET_GUEST_DEBUG.
struct DebugSetup {
  std::uint32_t control = 0;                 // KVM_GUESTDBG_*
  std::array<std::uint64_t, 4> addresses{};  // DR0 to DR3 while the guest runs; it sees its own
  std::uint64_t dr7 = 0;                     // the same of DR7
};

class VcpuCalls {
 public:
  /// KVM_RUN: 0 with an exit in state(), else errno (EINTR: kicked).
  virtual int run() = 0;
  /// The area that KVM shares with us: the exit, the registers at it (after share_registers()).
  /// Always the same one.
  virtual kvm_run& state() = 0;

  virtual Result<void> set_regs(const kvm_regs& regs) = 0;
  virtual Result<kvm_vcpu_events> events() const = 0;
  virtual Result<void> set_events(const kvm_vcpu_events& events) = 0;
  /// `state`: KVM_MP_STATE_*.
  virtual Result<void> set_mp_state(std::uint32_t state) = 0;
  virtual Result<void> set_debug(const DebugSetup& setup) = 0;
  /// Sets the guest's own DR6, before a #DB goes to it.
  virtual Result<void> set_guest_dr6(std::uint64_t value) = 0;

  /// Empty where KVM does not know the register.
  virtual std::optional<std::uint64_t> msr(std::uint32_t index) const = 0;
  /// False when KVM does not take the register or the value.
  virtual bool set_msr(std::uint32_t index, std::uint64_t value) = 0;
  /// The number that KVM adds to the host's TSC for this vCPU; empty where it does not tell (before
  /// Linux 5.16).
  virtual std::optional<std::uint64_t> tsc_offset() const = 0;
  /// By the vCPU's page tables, of whatever kind; empty where nothing is mapped.
  virtual std::optional<GuestPhys> translate(GuestVirt at) const = 0;

 protected:
  ~VcpuCalls() = default;
};

/// IA32_KERNEL_GS_BASE, which swapgs exchanges; 0 where KVM does not tell.
inline std::uint64_t kernel_gs_base(const VcpuCalls& vcpu) {
  constexpr std::uint32_t kKernelGsBase = 0xc000'0102;
  return vcpu.msr(kKernelGsBase).value_or(0);
}

}  // namespace ringside::vmm::kvm
