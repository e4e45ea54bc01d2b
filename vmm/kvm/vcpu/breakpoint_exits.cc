#include "vmm/kvm/vcpu/breakpoint_exits.h"

#include <linux/kvm.h>

#include <array>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kDr6Registers = 0xf;

}  // namespace

void BreakpointExits::on_debug() {
  const auto& debug = exit_.state().debug.arch;
  const GuestVirt at(debug.pc);
  if (debug.exception == arch::kBreakpointVector) return on_int3(at);
  if (breakpoints_.find(at) == Breakpoints::Found::Watched) return on_watched(at);
  if ((debug.dr6 & kDr6Registers) != 0) return;  // a breakpoint that is gone by now
  traps_.give_back_debug(debug.dr6);
}

bool BreakpointExits::on_internal_error() {
  const kvm_run& state = exit_.state();
  if (state.internal.suberror != KVM_INTERNAL_ERROR_EMULATION) return false;
  std::array<std::byte, 1> now{};
  if (exit_.read_code(exit_.rip(), now) != now.size()) return false;
  // KVM may have stumbled over a byte of ours that is gone by now.
  const auto& failure = state.emulation_failure;
  const bool was_int3 = failure.ndata >= 4 && (failure.flags & 1) != 0 &&
                        std::byte{failure.insn_bytes[0]} == arch::kBreakpoint;
  if (now[0] != arch::kBreakpoint && !was_int3) return false;
  on_int3(exit_.rip());
  return true;
}

/// rip is at the byte.
void BreakpointExits::on_int3(GuestVirt at) {
  if (const auto site = met_at(at)) {
    call_sink(*site);
    return step_over_.execute(*site, at);
  }
  // Taken out after the vCPU ran into it: the vCPU only goes on.
  std::array<std::byte, 1> now{};
  if (exit_.read_code(at, now) == now.size() && now[0] != arch::kBreakpoint) return;
  traps_.give_back_breakpoint();
}

bool BreakpointExits::on_port() {
  const auto& io = exit_.state().io;
  if (io.direction != KVM_EXIT_IO_OUT || io.size != 1 || !breakpoints_.by_port()) return false;
  const GuestVirt at = exit_.instruction_start();
  if (const auto site = breakpoints_.split_at(at)) {
    // The guest's own instruction is executed as if nothing had happened.
    step_over_.execute_second_byte(*site);
    return true;
  }
  return io.port == Breakpoints::kTrapPort && on_first_byte(at);
}

/// Whether the `out` is a breakpoint of ours, or was one when the vCPU met it.
bool BreakpointExits::on_first_byte(GuestVirt at) {
  if (const auto site = met_at(at)) {
    call_sink(*site);
    step_over_.execute(*site, at);
    return true;
  }
  std::array<std::byte, 2> now{};
  const bool gone = exit_.read_code(at, now) == now.size() &&
                    (now[0] != arch::kPortWrite || now[1] != std::byte{Breakpoints::kTrapPort});
  if (gone) step_over_.take_back_out(at);
  return gone;
}

void BreakpointExits::on_watched(GuestVirt at) {
  call_sink(at);
  step_over_.execute(at, at);
}

void BreakpointExits::call_sink(GuestVirt site) {
  subscription_.slot().with(exit_.index(),
                            [&](ExitSink& sink) { sink.on_breakpoint(exit_, site); });
}

/// The breakpoint that a vCPU at `rip` has met.
std::optional<GuestVirt> BreakpointExits::met_at(GuestVirt rip) const {
  return breakpoints_.met_at(rip, [this](GuestVirt at) { return exit_.locate(at); });
}

}  // namespace ringside::vmm::kvm
