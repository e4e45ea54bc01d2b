// One vCPU of KVM: its descriptor, the area that KVM shares with us, and the calls on it.
// Threads: run() on the vCPU's own thread; the rest from any thread while the vCPU is out of
// KVM_RUN (KVM makes callers wait until then).
// Does not: know threads, exits' meaning or other vCPUs.
// Fire context: the getters yes (one system call each), the rest no.
#pragma once

#include <linux/kvm.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/host/cpuid.h"
#include "vmm/kvm/vcpu/vcpu_calls.h"

namespace ringside::vmm::kvm {

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

}  // namespace ringside::vmm::kvm
