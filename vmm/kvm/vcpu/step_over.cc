#include "vmm/kvm/vcpu/step_over.h"

#include <fmt/format.h>
#include <linux/kvm.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/kvm/host/kvm_registers.h"
#include "vmm/kvm/vcpu/emulate.h"

namespace ringside::vmm::kvm {

namespace {

using arch::kLongestInstruction;

/// A string instruction with a repeat prefix: one single step executes one round of it.
bool repeats(std::span<const std::byte> code) {
  bool prefix = false;
  for (const std::byte byte : code) {
    const auto value = std::to_integer<unsigned>(byte);
    if (value == 0xf2 || value == 0xf3)
      prefix = true;
    else if (value != 0x66 && value != 0x67 && (value & 0xf0) != 0x40)
      return prefix && ((value >= 0xa4 && value <= 0xa7) || (value >= 0xaa && value <= 0xaf) ||
                        (value >= 0x6c && value <= 0x6f));
  }
  return false;
}

bool in_64_bit_mode(const kvm_sregs& sregs) {
  constexpr std::uint64_t kLma = 1 << 10;
  return (sregs.efer & kLma) != 0 && sregs.cs.l != 0;
}

}  // namespace

void StepOver::execute_from(GuestVirt site, GuestVirt rip, std::uint64_t offset) {
  GuestVirt at = rip.wrapping_add(offset);
  do {
    if (!execute_simply(site, at, offset)) step_alone(site, at);
    offset = 1;
    at = rip.wrapping_add(offset);
  } while (parts_.breakpoints.by_port() && parts_.exit.rip() == at &&
           parts_.breakpoints.find(site) == Breakpoints::Found::Byte && !parts_.gate.stopping());
}

/// `at`: the instruction, `offset` bytes after the start of `site`. False when it is not simple.
bool StepOver::execute_simply(GuestVirt site, GuestVirt at, std::uint64_t offset) {
  if (!in_64_bit_mode(parts_.exit.state().s.regs.sregs)) return false;
  Registers registers = parts_.exit.raw_registers();
  std::array<std::byte, kLongestInstruction> code{};
  const std::size_t length = parts_.memory.read_code(registers, at, code);
  parts_.breakpoints.hide(site.wrapping_add(offset), std::span(code).first(length));
  VcpuStack stack(parts_.memory, registers);
  const Emulated done = emulate(std::span(code).first(length), registers, stack);
  if (done == Emulated::NotSimple) return false;
  kvm_regs& regs = parts_.kvm.state().s.regs.regs;
  regs = to_kvm_regs(registers);
  parts_.guest_end.die_unless(parts_.kvm.set_regs(regs));
  if (done == Emulated::Halts) {
    parts_.guest_end.die_unless(parts_.kvm.set_mp_state(KVM_MP_STATE_HALTED));
  }
  return true;
}

void StepOver::step_alone(GuestVirt site, GuestVirt at) {
  if (parts_.exit.state().exit_reason == KVM_EXIT_IO) take_back_out(at);
  if (!parts_.gate.begin_alone(parts_.exit.index())) return;
  parts_.breakpoints.lift(site);
  std::uint32_t control = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP;
  if (can_block_irqs_) control |= KVM_GUESTDBG_BLOCKIRQ;
  parts_.guest_end.die_unless(parts_.kvm.set_debug({control, {}, 0}));
  step_from(at);
  parts_.breakpoints.restore(site);
  parts_.guest_end.die_unless(parts_.kvm.set_debug(parts_.breakpoints.setup()));
  parts_.gate.end_alone();
}

/// Enters the guest until the instruction at `at` is executed, and handles the exits that it makes
/// meanwhile.
void StepOver::step_from(GuestVirt at) {
  std::array<std::byte, kLongestInstruction> code{};
  const bool rounds = repeats(std::span(code).first(parts_.exit.read_code(at, code)));
  while (const std::optional<int> error = parts_.entry.enter()) {
    if (*error == EINTR || *error == EAGAIN) continue;
    if (*error != 0) {
      return parts_.guest_end.die_of(
          {ErrorCode::Io, fmt::format("KVM_RUN failed on vCPU {}: {}", parts_.exit.index(),
                                      std::strerror(*error))});
    }
    const auto& state = parts_.exit.state();
    const bool stepped =
        state.exit_reason == KVM_EXIT_DEBUG && state.debug.arch.exception == arch::kDebugVector;
    if (stepped && rounds && parts_.exit.rip() == at) continue;
    if (stepped || ends_step(at)) return;
    parts_.entry.handle_exit();
  }
}

/// An exit that is no step's end, but a breakpoint's: it is dealt with here, and ends the step.
bool StepOver::ends_step(GuestVirt at) {
  const kvm_run& state = parts_.exit.state();
  const GuestVirt rip = parts_.exit.rip();
  if (state.exit_reason == KVM_EXIT_DEBUG || state.exit_reason == KVM_EXIT_INTERNAL_ERROR) {
    std::array<std::byte, 1> now{};
    const bool int3 = parts_.exit.read_code(rip, now) == 1 && now[0] == arch::kBreakpoint;
    // The guest's own int3 stood under ours; or this is the next one, which will be met again.
    if (int3 && rip == at) parts_.traps.give_back_breakpoint();
    return int3;
  }
  if (state.exit_reason != KVM_EXIT_IO || state.io.port != Breakpoints::kTrapPort || rip == at) {
    return false;
  }
  const auto next = parts_.breakpoints.met_at(
      rip, [this](GuestVirt address) { return parts_.exit.locate(address); });
  if (next) take_back_out(rip);  // it will be met again
  return next.has_value();
}

/// KVM would step over the `out` at the next entry, if rip still stood at it then. An entry that
/// does not get into the guest makes KVM forget it.
void StepOver::take_back_out(GuestVirt at) {
  kvm_run& state = parts_.kvm.state();
  kvm_regs regs = state.s.regs.regs;
  regs.rip = at.raw() ^ 1;
  parts_.guest_end.die_unless(parts_.kvm.set_regs(regs));
  // SAFETY: KVM reads the byte when it enters; the next passage of the gate clears it.
  __atomic_store_n(&state.immediate_exit, std::uint8_t{1}, __ATOMIC_SEQ_CST);
  (void)parts_.kvm.run();  // EINTR
  regs.rip = at.raw();
  parts_.guest_end.die_unless(parts_.kvm.set_regs(regs));
  state.s.regs.regs = regs;
}

/// An exception without an error code.
void GuestTraps::inject(std::uint8_t vector) {
  auto events = kvm_.events();
  if (!events) return guest_end_.die_of(events.error());
  events->exception.injected = 1;
  events->exception.nr = vector;
  events->exception.has_error_code = 0;
  guest_end_.die_unless(kvm_.set_events(*events));
}

void GuestTraps::give_back_breakpoint() {
  if (route_ == TrapRoute::Emulated) {
    kvm_regs regs = kvm_.state().s.regs.regs;
    regs.rip += 1;
    guest_end_.die_unless(kvm_.set_regs(regs));
  }
  inject(arch::kBreakpointVector);
}

void GuestTraps::give_back_debug(std::uint64_t dr6) {
  guest_end_.die_unless(kvm_.set_guest_dr6(dr6));
  inject(arch::kDebugVector);
}

}  // namespace ringside::vmm::kvm
