// The exit that a vCPU is at: its registers, its time and the code around it. Registers are
// converted and the guest's TSC is computed when first asked for, once an exit.
// Used by the classes that handle exits, and by sinks as their StoppedVcpu.
// Threads: the vCPU's own.
// Fire context: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "vmm/kvm/vcpu/vcpu_memory.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class CurrentExit final : public StoppedVcpu {
 public:
  /// `kvm` and `memory` must outlive it. `rip_after_out`: TrapBehavior's.
  CurrentExit(unsigned index, VcpuCalls& kvm, const VcpuMemory& memory, bool rip_after_out)
      : index_(index),
        kvm_(kvm),
        state_(kvm.state()),
        memory_(memory),
        rip_after_out_(rip_after_out) {}

  /// KVM_RUN has just returned, at this time of the host's TSC.
  void begin(std::uint64_t host_tsc) {
    tsc_ = left_tsc_ = host_tsc;
    registers_.reset();
  }

  // StoppedVcpu
  unsigned index() const override { return index_; }
  const Registers& registers() override;
  std::uint64_t guest_tsc() const override;

  const kvm_run& state() const { return state_; }
  /// rip as KVM left it, or as it was set since.
  GuestVirt rip() const { return GuestVirt(state_.s.regs.regs.rip); }
  /// The registers as KVM left them: rip may be after the instruction, kernel_gs_base is 0.
  Registers raw_registers() const;
  /// Where the instruction starts that caused the exit.
  GuestVirt instruction_start() const;
  std::optional<GuestPhys> locate(GuestVirt at) const {
    return memory_.locate(raw_registers(), at);
  }
  /// Code by the page tables of this exit; see VcpuMemory::read_code.
  std::size_t read_code(GuestVirt at, std::span<std::byte> code) const {
    return memory_.read_code(raw_registers(), at, code);
  }
  /// Some lines for a person: the registers.
  std::string describe() const;

  /// Until show_now(): registers() and guest_tsc() tell of `host_tsc`, earlier than the exit, when
  /// the vCPU executed `instruction`. rip is at that instruction if it has executed nothing else
  /// since.
  void show_earlier(std::uint64_t host_tsc, std::span<const std::byte> instruction);
  void show_now() { begin(left_tsc_); }

 private:
  std::uint64_t ask_tsc_offset() const;

  const unsigned index_;
  VcpuCalls& kvm_;
  const kvm_run& state_;
  const VcpuMemory& memory_;
  const bool rip_after_out_;

  std::optional<Registers> registers_;
  std::uint64_t left_tsc_ = 0;  // the host's TSC after KVM_RUN
  std::uint64_t tsc_ = 0;       // the time that is shown, of the host's TSC
  mutable std::optional<std::uint64_t> tsc_offset_;
  mutable std::uint64_t tsc_offset_until_ = 0;
};

/// How long the `out` is that `before` ends with, prefixes included; 0 when none to `port` is
/// there. `before`: the code up to an address.
std::size_t length_of_out_before(std::span<const std::byte> before, std::uint16_t port);

}  // namespace ringside::vmm::kvm
