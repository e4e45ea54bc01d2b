// One vCPU of KVM: its descriptor, the area that KVM shares with us, and the calls on it.
// Threads: run() on the vCPU's own thread; the rest from any thread while the vCPU is out of
// KVM_RUN (KVM makes callers wait until then).
// Does not: know threads, exits' meaning or other vCPUs.
// Fire context: the getters yes (one system call each), the rest no.
#pragma once

#include <linux/kvm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/host/cpuid.h"

namespace ringside::vmm::kvm {

/// The arguments of KVM_SET_GUEST_DEBUG.
struct DebugSetup {
  std::uint32_t control = 0;                 // KVM_GUESTDBG_*
  std::array<std::uint64_t, 4> addresses{};  // DR0 to DR3 while the guest runs; it sees its own
  std::uint64_t dr7 = 0;                     // the same of DR7
};

/// The calls that handling an exit makes, so that what handles exits can be tried without KVM:
/// KvmVcpu makes them for the guest, FakeVcpuCalls (fakes_for_tests.h) writes them down.
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

class KvmVcpu final : public VcpuCalls {
 public:
  /// Takes the descriptor; maps `run_size` bytes of struct kvm_run and, if there is one, the ring.
  static Result<KvmVcpu> map(UniqueFd fd, std::size_t run_size, std::uint32_t dirty_ring_size);
  KvmVcpu(KvmVcpu&& other) noexcept;
  KvmVcpu& operator=(KvmVcpu&&) = delete;
  ~KvmVcpu();

  // VcpuCalls
  int run() override;
  kvm_run& state() override { return *run_; }
  Result<void> set_regs(const kvm_regs& regs) override;
  Result<kvm_vcpu_events> events() const override;
  Result<void> set_events(const kvm_vcpu_events& events) override;
  Result<void> set_mp_state(std::uint32_t state) override;
  Result<void> set_debug(const DebugSetup& setup) override;
  Result<void> set_guest_dr6(std::uint64_t value) override;
  std::optional<std::uint64_t> msr(std::uint32_t index) const override;
  bool set_msr(std::uint32_t index, std::uint64_t value) override;
  std::optional<std::uint64_t> tsc_offset() const override;
  std::optional<GuestPhys> translate(GuestVirt at) const override;

  /// The bytes of a port exit's accesses, in the shared area; empty when they would leave it.
  std::span<std::byte> port_data();
  /// From now on KVM copies general and system registers into state() at each exit.
  void share_registers();
  /// Shared with KVM; empty where this KVM has none.
  std::span<kvm_dirty_gfn> dirty_ring() { return ring_; }

  Result<void> set_cpuid(const CpuidTable& table);
  Result<kvm_regs> regs() const;
  Result<kvm_sregs> sregs() const;
  Result<void> set_sregs(const kvm_sregs& sregs);
  /// Whether it waits in a hlt; false where KVM does not tell.
  bool is_halted() const;
  /// All of them, as `Registers` has them.
  Result<Registers> registers() const;

 private:
  KvmVcpu(UniqueFd fd, kvm_run* run, std::size_t run_size, std::span<kvm_dirty_gfn> ring)
      : fd_(std::move(fd)), run_(run), run_size_(run_size), ring_(ring) {}

  UniqueFd fd_;
  kvm_run* run_;
  std::size_t run_size_;
  std::span<kvm_dirty_gfn> ring_;
};

/// A vCPU's ring of pages that it has written (Linux Documentation/virt/kvm/api.rst, 8.29): KVM
/// marks entries dirty, we take them in order and mark them for KVM_RESET_DIRTY_RINGS. Threads: the
/// vCPU's own.
class DirtyRing {
 public:
  /// `entries`: mapped from KVM, for longer than this object lives; empty where this KVM has none.
  explicit DirtyRing(std::span<kvm_dirty_gfn> entries) : entries_(entries) {}

  /// Takes what is dirty: `tell` gets each page's memory slot and its number in that slot. True
  /// when there was any; then the rings have to be reset (KvmVm::reset_dirty_rings).
  bool harvest(const std::function<void(std::uint32_t slot, std::uint64_t page)>& tell);

 private:
  const std::span<kvm_dirty_gfn> entries_;
  std::size_t next_ = 0;
};

}  // namespace ringside::vmm::kvm
