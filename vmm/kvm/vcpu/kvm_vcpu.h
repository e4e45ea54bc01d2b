// One vCPU of KVM: its descriptor, the area that KVM shares with us, and the calls on it by name.
// Threads: run() on the vCPU's own thread; the rest from any thread while the vCPU is out of
// KVM_RUN (KVM makes whoever asks wait until then).
// Does not: know threads, exits' meaning or other vCPUs.
// Fire context: the getters yes (one system call each), the rest no.
#pragma once

#include <linux/kvm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/host/cpuid.h"

namespace ringside::vmm::kvm {

class KvmVcpu {
 public:
  /// Takes the descriptor; maps `run_size` bytes of struct kvm_run and, if there is one, the ring.
  static Result<KvmVcpu> map(UniqueFd fd, std::size_t run_size, std::uint32_t dirty_ring_size);
  KvmVcpu(KvmVcpu&& other) noexcept;
  KvmVcpu& operator=(KvmVcpu&&) = delete;
  ~KvmVcpu();

  /// KVM_RUN: 0 with an exit in state(), else errno (EINTR: kicked).
  int run();
  kvm_run& state() { return *run_; }
  /// The bytes of a port exit's accesses; empty when KVM's numbers leave the area.
  std::span<std::byte> port_data();
  /// The registers that KVM left in state() at the last exit; true after share_registers().
  void share_registers();
  std::span<kvm_dirty_gfn> dirty_ring() { return ring_; }

  Result<void> set_cpuid(const CpuidTable& table);
  Result<kvm_regs> regs() const;
  Result<void> set_regs(const kvm_regs& regs);
  Result<kvm_sregs> sregs() const;
  Result<void> set_sregs(const kvm_sregs& sregs);
  std::optional<std::uint64_t> msr(std::uint32_t index) const;
  /// False when KVM does not take the register or the value.
  bool set_msr(std::uint32_t index, std::uint64_t value);
  /// IA32_KERNEL_GS_BASE, which swapgs exchanges; 0 where KVM does not tell.
  std::uint64_t kernel_gs_base() const;
  Result<kvm_vcpu_events> events() const;
  Result<void> set_events(const kvm_vcpu_events& events);
  Result<void> set_mp_state(std::uint32_t state);
  /// It waits in a hlt; false where KVM does not say.
  bool is_halted() const;
  /// KVM_GUESTDBG_*, and what DR0 to DR3 and DR7 hold for us, not for the guest.
  Result<void> set_debug(std::uint32_t control, const std::array<std::uint64_t, 4>& addresses,
                         std::uint64_t dr7);
  /// The guest's own DR6, before a #DB goes to it.
  Result<void> set_guest_dr6(std::uint64_t value);
  /// What KVM adds to the host's TSC for this vCPU; empty where it does not tell (before 5.16).
  std::optional<std::uint64_t> tsc_offset() const;

  /// By the vCPU's page tables, of whatever kind; empty where nothing is mapped.
  std::optional<GuestPhys> translate(GuestVirt at) const;

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

}  // namespace ringside::vmm::kvm
