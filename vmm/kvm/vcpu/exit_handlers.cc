#include "vmm/kvm/vcpu/exit_handlers.h"

#include <fmt/format.h>
#include <linux/kvm.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/kvm/devices/device.h"

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

namespace {

using Kind = VcpuEvent::Kind;

/// A bus takes 1, 2, 4 or 8 bytes; an access that KVM split at a page's end comes as any number.
bool is_whole(std::size_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

void access_bus(const Bus& bus, std::uint64_t address, std::span<std::byte> data, bool write) {
  if (write) return bus.write(address, data);
  std::memset(data.data(), 0, data.size());
  bus.read(address, data);
}

}  // namespace

void IoExits::on_port(std::span<std::byte> data) {
  const auto& io = exit_.state().io;
  const bool out = io.direction == KVM_EXIT_IO_OUT;
  // A string instruction brings `count` accesses of `size` bytes each.
  for (std::size_t at = 0; is_whole(io.size) && at + io.size <= data.size(); at += io.size) {
    access_bus(ports_, io.port, data.subspan(at, io.size), out);
  }
  const Kind kind = out ? Kind::PortOut : Kind::PortIn;
  if (!subscription_.wants(kind) || data.size() < io.size) return;
  subscription_.tell(exit_, {kind, 0, {io.port, io.size, io.count, value_of(data.first(io.size))}});
}

void IoExits::on_mmio() {
  auto& mmio = kvm_.state().mmio;
  const auto data = std::as_writable_bytes(std::span(mmio.data)).first(std::min(mmio.len, 8u));
  const bool write = mmio.is_write != 0;
  const std::size_t step = is_whole(data.size()) ? data.size() : 1;
  for (std::size_t at = 0; at < data.size(); at += step) {
    access_bus(mmio_, mmio.phys_addr + at, data.subspan(at, step), write);
  }
  const Kind kind = write ? Kind::MmioWrite : Kind::MmioRead;
  if (subscription_.wants(kind)) {
    subscription_.tell(exit_, {kind, 0, {mmio.phys_addr, data.size(), value_of(data)}});
  }
}

void IoExits::on_msr_read() {
  auto& msr = kvm_.state().msr;
  const auto value = kvm_.msr(msr.index);
  msr.error = value ? 0 : 1;
  msr.data = value.value_or(0);
  if (subscription_.wants(Kind::MsrRead))
    subscription_.tell(exit_, {Kind::MsrRead, 0, {msr.index, msr.data}});
}

void IoExits::on_msr_write() {
  auto& msr = kvm_.state().msr;
  msr.error = kvm_.set_msr(msr.index, msr.data) ? 0 : 1;
  if (subscription_.wants(Kind::MsrWrite))
    subscription_.tell(exit_, {Kind::MsrWrite, 0, {msr.index, msr.data}});
}

void FatalExits::on_shutdown() {
  const kvm_regs& regs = exit_.state().s.regs.regs;
  const kvm_sregs& sregs = exit_.state().s.regs.sregs;
  // Linux's reboot=t: a table without a single gate, on purpose (arch/x86/kernel/idt.c,
  // idt_invalidate).
  if (sregs.idt.base == 0 && sregs.idt.limit == 0) {
    return guest_end_.record(MachineState::Rebooted, {});
  }
  // An SVM's state is undefined after it, so KVM makes it that of a reset.
  const bool lost = regs.rip == 0xfff0 && sregs.cs.selector == 0xf000;
  std::string words = fmt::format("triple fault on vCPU {}", exit_.index());
  words += lost ? fmt::format(
                      "; this CPU keeps no state of it; at the exit before it: rip "
                      "{:016x}  cr3 {:016x}",
                      last_rip_, last_cr3_)
                : fmt::format("\n{}", exit_.describe());
  guest_end_.record(MachineState::Died, std::move(words));
}

void FatalExits::on_system_event() {
  switch (exit_.state().system_event.type) {
    case KVM_SYSTEM_EVENT_SHUTDOWN: return guest_end_.guest_ended(MachineState::PoweredOff);
    case KVM_SYSTEM_EVENT_RESET: return guest_end_.guest_ended(MachineState::Rebooted);
    default: return guest_end_.guest_ended(MachineState::Panicked);
  }
}

void FatalExits::on_internal_error() {
  std::array<std::byte, arch::kLongestInstruction> code{};
  const std::size_t length = exit_.read_code(exit_.rip(), code);
  std::string bytes;
  for (const std::byte byte : std::span(code).first(length)) {
    bytes += fmt::format(" {:02x}", std::to_integer<unsigned>(byte));
  }
  guest_end_.record(
      MachineState::Died,
      fmt::format("this host's KVM cannot go on with vCPU {} (error {}); code at rip:{}\n{}",
                  exit_.index(), exit_.state().internal.suberror, bytes, exit_.describe()));
}

void FatalExits::on_unknown() {
  const kvm_run& state = exit_.state();
  std::string what =
      fmt::format("KVM left the guest for a reason that we do not know ({})", state.exit_reason);
  if (state.exit_reason == KVM_EXIT_FAIL_ENTRY) {
    what = fmt::format("KVM could not enter the guest (hardware's reason {:#x})",
                       std::uint64_t{state.fail_entry.hardware_entry_failure_reason});
  }
  guest_end_.record(MachineState::Died,
                    fmt::format("{}, vCPU {}\n{}", what, exit_.index(), exit_.describe()));
}

void FatalExits::on_run_error(int error) {
  guest_end_.record(MachineState::Died, fmt::format("KVM_RUN failed on vCPU {}: {}", exit_.index(),
                                                    std::strerror(error)));
}

}  // namespace ringside::vmm::kvm
