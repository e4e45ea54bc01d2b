// A vCPU at a breakpoint. In this file: which exit is which, the sink's call, the instruction under
// the breakpoint, what goes back to the guest.
//
// rip at an int3: KVM_EXIT_DEBUG and KVM_EXIT_INTERNAL_ERROR leave it at the byte. A #BP that goes
// back to the guest wants rip at the byte (SVM, VMX: KVM adds the length) but behind it on a KVM
// that emulates kernel mode.
#include <fmt/format.h>
#include <linux/kvm.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/kvm/vcpu/displaced.h"
#include "vmm/kvm/vcpu/vcpu.h"
#include "vmm/kvm/vcpu/vcpu_state.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint8_t kDebugVector = 1, kBreakpointVector = 3;
constexpr std::uint64_t kDr6Registers = 0xf;
using arch::kBreakpoint;
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

/// The guest's stack through the vCPU's own page tables.
class Vcpu::Stack final : public StackAccess {
 public:
  Stack(Vcpu& vcpu, const Registers& registers) : vcpu_(vcpu), registers_(registers) {}

  std::optional<std::uint64_t> load(GuestVirt at) override {
    std::uint64_t value = 0;
    const auto where = whole(at);
    if (!where || !vcpu_.shared_.memory.read(*where, std::as_writable_bytes(std::span(&value, 1))))
      return std::nullopt;
    return value;
  }
  bool store(GuestVirt at, std::uint64_t value) override {
    const auto where = whole(at);
    return where && vcpu_.shared_.memory.write(*where, std::as_bytes(std::span(&value, 1)));
  }

 private:
  /// Only a word that crosses no page, and not in user memory, which may be one that a write must
  /// first copy.
  std::optional<GuestPhys> whole(GuestVirt at) const {
    if (arch::left_in_page(at.raw()) < sizeof(std::uint64_t) || registers_.in_user_mode())
      return std::nullopt;
    return vcpu_.locate(registers_, at);
  }
  Vcpu& vcpu_;
  const Registers& registers_;
};

/// A call on KVM that only a bug or a broken host lets fail: the guest cannot go on rightly.
void Vcpu::must(const Result<void>& done) {
  if (!done) shared_.guest_end.record(MachineState::Died, done.error().message);
}

/// As many bytes at `at` as can be read, ours included.
std::size_t Vcpu::read_code(GuestVirt at, std::span<std::byte> code) const {
  const kvm_sync_regs& now = const_cast<Vcpu*>(this)->kvm_.state().s.regs;
  const Registers registers = to_registers(now.regs, now.sregs, 0);
  std::size_t done = 0;
  while (done < code.size()) {
    const GuestVirt next = at.wrapping_add(done);
    const std::size_t length =
        std::min<std::size_t>(code.size() - done, arch::left_in_page(next.raw()));
    const auto where = locate(registers, next);
    if (!where || !shared_.memory.read(*where, code.subspan(done, length))) break;
    done += length;
  }
  return done;
}

Result<void> Vcpu::arm() {
  const DebugSetup setup = shared_.breakpoints.setup();
  return kvm_.set_debug(setup.control, setup.addresses, setup.dr7);
}

void Vcpu::on_debug() {
  const auto& debug = kvm_.state().debug.arch;
  const GuestVirt at(debug.pc);
  if (debug.exception == kBreakpointVector) return on_int3(at);
  if (shared_.breakpoints.find(at) == Breakpoints::Found::Watched) return on_watched(at);
  if ((debug.dr6 & kDr6Registers) != 0) return;  // a breakpoint that is gone by now
  give_back_debug(debug.dr6);
}

/// The breakpoint that the vCPU, whose rip is there, has met.
std::optional<GuestVirt> Vcpu::met_at(GuestVirt rip) const {
  const kvm_sync_regs& now = const_cast<Vcpu*>(this)->kvm_.state().s.regs;
  return shared_.breakpoints.met_at(
      rip, [&](GuestVirt at) { return locate(to_registers(now.regs, now.sregs, 0), at); });
}

/// rip is at the byte.
void Vcpu::on_int3(GuestVirt at) {
  std::array<std::byte, 1> now{};
  if (const auto site = met_at(at)) {
    fire(*site);
    return execute_under(*site, at);
  }
  // Taken out after the vCPU ran into it: nothing to do but to go on.
  if (read_code(at, now) == now.size() && now[0] != kBreakpoint) return;
  give_back_breakpoint();
}

/// A port exit: whether the `out` is a breakpoint of ours, or was one when the vCPU met it.
bool Vcpu::on_trap_port() {
  const GuestVirt at(instruction_start(registers()));
  std::array<std::byte, 2> now{};
  const auto ours = met_at(at);
  const bool gone = !ours && read_code(at, now) == now.size() &&
                    (now[0] != std::byte{0xe6} || now[1] != std::byte{Breakpoints::kTrapPort});
  if (ours) {
    fire(*ours);
    execute_under(*ours, at);
  } else if (gone) {
    settle(at);
  }
  return ours || gone;
}

/// A port exit: whether the `out` is the second byte of a breakpoint alone. What stood there is
/// executed as if nothing had happened.
bool Vcpu::on_split_trap() {
  const kvm_sync_regs& now = kvm_.state().s.regs;
  const GuestVirt at(instruction_start(to_registers(now.regs, now.sregs, 0)));
  const auto site = shared_.breakpoints.split_at(at);
  if (site) execute_under(*site, *site, 1);
  return site.has_value();
}

/// Takes back a port exit: KVM would step over the `out` at the next entry, if rip still stood at
/// it then. An entry that does not get into the guest makes KVM forget it.
void Vcpu::settle(GuestVirt at) {
  kvm_regs regs = kvm_.state().s.regs.regs;
  regs.rip = at.raw() ^ 1;
  must(kvm_.set_regs(regs));
  __atomic_store_n(&kvm_.state().immediate_exit, std::uint8_t{1}, __ATOMIC_SEQ_CST);
  (void)kvm_.run();  // EINTR
  regs.rip = at.raw();
  must(kvm_.set_regs(regs));
  kvm_.state().s.regs.regs = regs;
}

void Vcpu::on_watched(GuestVirt at) {
  fire(at);
  execute_under(at, at);
}

void Vcpu::fire(GuestVirt at) {
  shared_.tap.slot().with(index_, [&](ExitSink& sink) { sink.on_breakpoint(*this, at); });
}

/// Lets the vCPU get past our breakpoint `site`, which is at `rip`: there or under another address.
/// Under a port write there may be two instructions: the second, at the offset 1, goes with the
/// first if that is one byte long.
void Vcpu::execute_under(GuestVirt site, GuestVirt rip, std::uint64_t offset) {
  const kvm_run& state = kvm_.state();
  GuestVirt at = rip.wrapping_add(offset);
  do {
    if (!execute_simply(site, at, offset)) step_alone(site, at);
    offset = 1;
    at = rip.wrapping_add(offset);
  } while (shared_.breakpoints.by_port() && state.s.regs.regs.rip == at.raw() &&
           shared_.breakpoints.find(site) == Breakpoints::Found::Byte && !shared_.gate.stopping());
}

/// `at`: the instruction, whose place is `offset` bytes behind `site`.
bool Vcpu::execute_simply(GuestVirt site, GuestVirt at, std::uint64_t offset) {
  const kvm_sync_regs& now = kvm_.state().s.regs;
  if (!in_64_bit_mode(now.sregs)) return false;
  std::array<std::byte, kLongestInstruction> code{};
  const std::size_t length = read_code(at, code);
  shared_.breakpoints.hide(site.wrapping_add(offset), std::span(code).first(length));
  Registers registers = to_registers(now.regs, now.sregs, 0);
  Stack stack(*this, registers);
  const Displaced done = execute_displaced(std::span(code).first(length), registers, stack);
  if (done == Displaced::NotSimple) return false;
  kvm_.state().s.regs.regs = to_kvm_regs(registers);
  must(kvm_.set_regs(kvm_.state().s.regs.regs));
  if (done == Displaced::Halts) must(kvm_.set_mp_state(KVM_MP_STATE_HALTED));
  return true;
}

/// The others stay out of the guest meanwhile: they would run past a breakpoint that is not there.
void Vcpu::step_alone(GuestVirt site, GuestVirt at) {
  if (kvm_.state().exit_reason == KVM_EXIT_IO) settle(at);
  if (!shared_.gate.begin_alone(index_)) return;
  shared_.breakpoints.lift(site);
  std::uint32_t control = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP;
  if (shared_.can_block_irqs) control |= KVM_GUESTDBG_BLOCKIRQ;
  must(kvm_.set_debug(control, {}, 0));
  step_from(at);
  shared_.breakpoints.restore(site);
  must(arm());
  shared_.gate.end_alone();
}

void Vcpu::step_from(GuestVirt at) {
  std::array<std::byte, kLongestInstruction> code{};
  const bool rounds = repeats(std::span(code).first(read_code(at, code)));
  const kvm_run& state = kvm_.state();
  while (enter_gate()) {
    const int error = enter_guest();
    if (error == EINTR || error == EAGAIN) continue;
    if (error != 0) {
      return must(fail(ErrorCode::Io,
                       fmt::format("KVM_RUN failed on vCPU {}: {}", index_, std::strerror(error))));
    }
    const bool here = state.s.regs.regs.rip == at.raw();
    if (state.exit_reason == KVM_EXIT_DEBUG && state.debug.arch.exception == kDebugVector) {
      if (rounds && here) continue;
      return;
    }
    if (state.exit_reason == KVM_EXIT_DEBUG || state.exit_reason == KVM_EXIT_INTERNAL_ERROR) {
      std::array<std::byte, 1> now{};
      const bool int3 =
          read_code(GuestVirt(state.s.regs.regs.rip), now) == 1 && now[0] == kBreakpoint;
      // The guest's own int3 stood under ours; or the next one, which will be met again.
      if (int3 && here) return give_back_breakpoint();
      if (int3) return;
    }
    if (state.exit_reason == KVM_EXIT_IO && state.io.port == Breakpoints::kTrapPort && !here &&
        met_at(GuestVirt(state.s.regs.regs.rip))) {
      return settle(GuestVirt(state.s.regs.regs.rip));  // the next one, which will be met again
    }
    handle_exit();
  }
}

/// An exception without an error code, at the next entry.
void Vcpu::inject(std::uint8_t vector) {
  auto events = kvm_.events();
  if (!events) return must(Unexpected<Error>(events.error()));
  events->exception.injected = 1;
  events->exception.nr = vector;
  events->exception.has_error_code = 0;
  must(kvm_.set_events(*events));
}

/// A #BP for the guest, rip at its int3.
void Vcpu::give_back_breakpoint() {
  if (shared_.trap_behavior.route == TrapRoute::Emulated) {
    kvm_regs regs = kvm_.state().s.regs.regs;
    regs.rip += 1;
    must(kvm_.set_regs(regs));
  }
  inject(kBreakpointVector);
}

/// A #DB of the guest's own making (its trap flag), which KVM gave to us while we watch something.
void Vcpu::give_back_debug(std::uint64_t dr6) {
  must(kvm_.set_guest_dr6(dr6));
  inject(kDebugVector);
}

}  // namespace ringside::vmm::kvm
