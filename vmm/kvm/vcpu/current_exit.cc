#include "vmm/kvm/vcpu/current_exit.h"

#include <x86intrin.h>

#include <algorithm>
#include <array>

#include "vmm/arch/arch.h"
#include "vmm/kvm/host/kvm_registers.h"
#include "vmm/kvm/vcpu/vcpu_state.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kOffsetTrusted = 1ull << 30;  // TSC ticks, some 0.3 s

}  // namespace

std::size_t length_of_out_before(std::span<const std::byte> before, std::uint16_t port) {
  const auto code = [&](std::size_t back) {
    return back <= before.size() ? std::to_integer<unsigned>(before[before.size() - back]) : 0;
  };
  std::size_t length = 0;
  if ((code(2) == 0xe6 || code(2) == 0xe7) && code(1) == port)
    length = 2;
  else if (code(1) == 0xee || code(1) == 0xef || code(1) == 0x6e || code(1) == 0x6f)
    length = 1;
  if (length == 0) return 0;
  while (code(length + 1) == 0x66 || code(length + 1) == 0xf3) ++length;
  return length;
}

Registers CurrentExit::raw_registers() const {
  return to_registers(state_.s.regs.regs, state_.s.regs.sregs, 0);
}

const Registers& CurrentExit::registers() {
  if (!registers_) {
    registers_ = raw_registers();
    // KVM does not copy it, and asking is half as dear as an exit: only where it may be the CPU's.
    const bool in_kernel =
        (registers_->cs & 3) == 0 && arch::in_kernel_half(GuestVirt(registers_->gs_base));
    if (!in_kernel) registers_->kernel_gs_base = kernel_gs_base(kvm_);
    registers_->rip = instruction_start().raw();
  }
  return *registers_;
}

/// A host that emulates kernel code leaves rip after an `out`; all others at it.
GuestVirt CurrentExit::instruction_start() const {
  if (!rip_after_out_ || state_.exit_reason != KVM_EXIT_IO ||
      state_.io.direction != KVM_EXIT_IO_OUT) {
    return rip();
  }
  std::array<std::byte, 4> before{};
  if (read_code(rip().wrapping_sub(before.size()), before) != before.size()) return rip();
  return rip().wrapping_sub(length_of_out_before(before, state_.io.port));
}

std::uint64_t CurrentExit::ask_tsc_offset() const {
  constexpr std::uint32_t kTsc = 0x10;
  if (const auto offset = kvm_.tsc_offset()) return *offset;
  const auto guest = kvm_.msr(kTsc);
  return guest ? *guest - __rdtsc() : 0;
}

std::uint64_t CurrentExit::guest_tsc() const {
  // The guest may set its TSC, which is rare: asked for now and then, not at each exit.
  if (!tsc_offset_ || tsc_ - tsc_offset_until_ < UINT64_MAX / 2) {
    tsc_offset_ = ask_tsc_offset();
    tsc_offset_until_ = tsc_ + kOffsetTrusted;
  }
  return tsc_ + *tsc_offset_;
}

std::string CurrentExit::describe() const {
  return kvm::describe(state_.s.regs.regs, state_.s.regs.sregs);
}

/// KVM has moved rip past the instruction.
void CurrentExit::show_earlier(std::uint64_t host_tsc, std::span<const std::byte> instruction) {
  std::array<std::byte, arch::kLongestInstruction> code{};
  const auto found = std::span(code).first(std::min(instruction.size(), code.size()));
  tsc_ = host_tsc;
  registers_.reset();
  const GuestVirt before(registers().rip - found.size());
  if (read_code(before, found) == found.size() && std::ranges::equal(found, instruction)) {
    registers_->rip = before.raw();
  }
}

}  // namespace ringside::vmm::kvm
