// In this file: the thread, the way in and out of the guest, the exits but for breakpoints
// (vcpu_debug.cc), what the sink asks a stopped vCPU.
#include "vmm/kvm/vcpu/vcpu.h"

#include <fmt/format.h>
#include <linux/kvm.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cerrno>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/kvm/devices/little_endian.h"
#include "vmm/kvm/host/sandbox.h"
#include "vmm/kvm/vcpu/vcpu_state.h"
#include "vmm/page_walk.h"

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;

constexpr std::size_t kMostLines = 1024;              // events that wait; more are dropped
constexpr std::uint64_t kOffsetTrusted = 1ull << 30;  // TSC ticks, some 0.3 s

thread_local Vcpu* this_thread = nullptr;

std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// A bus takes 1, 2, 4 or 8 bytes; an access that KVM split at a page's end comes as any number.
bool is_whole(std::size_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

}  // namespace

int kick_signal() {
  return SIGRTMIN;
}

void prepare_kicks() {
  static const bool done = [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};  // its arrival is all: KVM_RUN ends with EINTR
    return sigaction(kick_signal(), &action, nullptr) == 0;
  }();
  (void)done;
}

Vcpu::Vcpu(unsigned index, KvmVcpu kvm, VcpuShared& shared)
    : index_(index), kvm_(std::move(kvm)), shared_(shared) {
  kvm_.share_registers();
}

Vcpu* Vcpu::current() {
  return this_thread;
}

Result<void> Vcpu::start() {
  thread_ =
      TRY(start_sandboxed({fmt::format("vcpu {}", index_), kick_signal()}, [this] { run(); }));
  return {};
}

void Vcpu::join() {
  if (thread_.joinable()) thread_.join();
}

void Vcpu::kick() {
  // SAFETY: KVM reads the byte when it enters; see Gate for why it is not cleared too late.
  __atomic_store_n(&kvm_.state().immediate_exit, std::uint8_t{1}, __ATOMIC_SEQ_CST);
  const int tid = tid_.load(std::memory_order_acquire);
  if (tid != 0) syscall(SYS_tgkill, getpid(), tid, kick_signal());
}

void Vcpu::run() {
  this_thread = this;
  tid_.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_release);
  tid_.notify_all();
  while (enter_gate()) {
    if (chores_.load(std::memory_order_seq_cst)) {
      shared_.gate.leave(index_);
      do_chores();
      continue;
    }
    const int error = enter_guest();
    if (wants(Kind::Cpuid) || wants(Kind::Hlt)) tell_host_events();
    if (error == 0) {
      handle_exit();
    } else if (error != EINTR && error != EAGAIN) {
      shared_.guest_end.record(MachineState::Died, fmt::format("KVM_RUN failed on vCPU {}: {}",
                                                               index_, std::strerror(error)));
    } else {
      tell_exit(KVM_EXIT_INTR);
    }
  }
}

/// Waits until it may run the guest; false when the machine stops. Kicks from before are forgotten.
bool Vcpu::enter_gate() {
  return shared_.gate.enter(index_, [this] {
    __atomic_store_n(&kvm_.state().immediate_exit, std::uint8_t{0}, __ATOMIC_SEQ_CST);
  });
}

/// KVM_RUN, between the gate's doors: the vCPU has been counted as inside.
int Vcpu::enter_guest() {
  if (wants(Kind::Exit)) {
    entered_ns_ = now_ns();
    outside_ns_ = left_ns_ == 0 ? 0 : entered_ns_ - left_ns_;
  }
  const int error = kvm_.run();
  left_tsc_ = __rdtsc();
  if (wants(Kind::Exit)) left_ns_ = now_ns();
  registers_.reset();
  shared_.gate.leave(index_);
  return error;
}

void Vcpu::handle_exit() {
  kvm_run& state = kvm_.state();
  // First, because it is what tracing waits for; and it is no exit of the guest's own.
  if (state.exit_reason == KVM_EXIT_IO && state.io.port == VcpuExits::kDoorbellPort &&
      state.io.direction == KVM_EXIT_IO_OUT) {
    return ring(kvm_.port_data());
  }
  if (state.exit_reason != KVM_EXIT_SHUTDOWN) {
    last_rip_ = state.s.regs.regs.rip;
    last_cr3_ = state.s.regs.sregs.cr3;
  }
  tell_exit(state.exit_reason);
  if (wants(Kind::Dirty)) harvest_dirty_pages();
  switch (state.exit_reason) {
    case KVM_EXIT_IO: return on_port();
    case KVM_EXIT_MMIO: return on_mmio();
    case KVM_EXIT_DEBUG: return on_debug();
    case KVM_EXIT_X86_RDMSR: return on_msr_read();
    case KVM_EXIT_X86_WRMSR: return on_msr_write();
    case KVM_EXIT_DIRTY_RING_FULL: return harvest_dirty_pages();
    case KVM_EXIT_SHUTDOWN: return on_shutdown();
    case KVM_EXIT_SYSTEM_EVENT: return on_system_event();
    case KVM_EXIT_INTERNAL_ERROR: return on_internal_error();
    case KVM_EXIT_HLT:  // only without interrupt controllers in the kernel
    case KVM_EXIT_INTR:
    case KVM_EXIT_IRQ_WINDOW_OPEN: return;
    default: return on_unknown();
  }
}

void Vcpu::ring(std::span<const std::byte> data) {
  const auto value = static_cast<std::uint32_t>(value_of(data));
  shared_.tap.slot().with(index_, [&](ExitSink& sink) { sink.on_doorbell(*this, value); });
}

void Vcpu::on_port() {
  const auto& io = kvm_.state().io;
  const std::span<std::byte> data = kvm_.port_data();
  const bool out = io.direction == KVM_EXIT_IO_OUT;
  if (out && io.size == 1 && shared_.breakpoints.by_port()) {
    if (on_split_trap()) return;
    if (io.port == Breakpoints::kTrapPort && on_trap_port()) return;
  }
  // A string instruction brings `count` accesses of `size` bytes each.
  for (std::size_t at = 0; is_whole(io.size) && at + io.size <= data.size(); at += io.size) {
    const auto access = data.subspan(at, io.size);
    if (out) {
      shared_.ports.write(io.port, access);
    } else {
      std::memset(access.data(), 0, access.size());
      shared_.ports.read(io.port, access);
    }
  }
  const Kind kind = out ? Kind::PortOut : Kind::PortIn;
  if (!wants(kind) || data.size() < io.size) return;
  tell({kind, 0, {io.port, io.size, io.count, value_of(data.first(io.size))}});
}

void Vcpu::on_mmio() {
  auto& mmio = kvm_.state().mmio;
  const auto data = std::as_writable_bytes(std::span(mmio.data)).first(std::min(mmio.len, 8u));
  const std::size_t step = is_whole(data.size()) ? data.size() : 1;
  for (std::size_t at = 0; at < data.size(); at += step) {
    const auto access = data.subspan(at, step);
    if (mmio.is_write != 0) {
      shared_.mmio.write(mmio.phys_addr + at, access);
    } else {
      std::memset(access.data(), 0, access.size());
      shared_.mmio.read(mmio.phys_addr + at, access);
    }
  }
  const Kind kind = mmio.is_write != 0 ? Kind::MmioWrite : Kind::MmioRead;
  if (wants(kind)) tell({kind, 0, {mmio.phys_addr, data.size(), value_of(data)}});
}

/// The filter that makes events of MSR accesses gave us this one: the access happens here.
void Vcpu::on_msr_read() {
  auto& msr = kvm_.state().msr;
  const auto value = kvm_.msr(msr.index);
  msr.error = value ? 0 : 1;  // #GP
  msr.data = value.value_or(0);
  if (wants(Kind::MsrRead)) tell({Kind::MsrRead, 0, {msr.index, msr.data}});
}

void Vcpu::on_msr_write() {
  auto& msr = kvm_.state().msr;
  msr.error = kvm_.set_msr(msr.index, msr.data) ? 0 : 1;
  if (wants(Kind::MsrWrite)) tell({Kind::MsrWrite, 0, {msr.index, msr.data}});
}

void Vcpu::on_shutdown() {
  const kvm_regs& regs = kvm_.state().s.regs.regs;
  const kvm_sregs& sregs = kvm_.state().s.regs.sregs;
  // Linux's reboot=t: a table without a single gate, on purpose (arch/x86/kernel/idt.c,
  // idt_invalidate).
  if (sregs.idt.base == 0 && sregs.idt.limit == 0) {
    return shared_.guest_end.record(MachineState::Rebooted, {});
  }
  // An SVM's state is undefined after it, so KVM makes it that of a reset.
  const bool lost = regs.rip == 0xfff0 && sregs.cs.selector == 0xf000;
  std::string words = fmt::format("triple fault on vCPU {}", index_);
  words += lost ? fmt::format(
                      "; this CPU keeps no state of it; at the exit before it: rip "
                      "{:016x}  cr3 {:016x}",
                      last_rip_, last_cr3_)
                : fmt::format("\n{}", describe(regs, sregs));
  shared_.guest_end.record(MachineState::Died, std::move(words));
}

std::string Vcpu::scene() const {
  const kvm_sync_regs& now = const_cast<Vcpu*>(this)->kvm_.state().s.regs;
  return fmt::format("on vCPU {}\n{}", index_, describe(now.regs, now.sregs));
}

void Vcpu::on_system_event() {
  switch (kvm_.state().system_event.type) {
    case KVM_SYSTEM_EVENT_SHUTDOWN: return shared_.guest_end.guest_ended(MachineState::PoweredOff);
    case KVM_SYSTEM_EVENT_RESET: return shared_.guest_end.guest_ended(MachineState::Rebooted);
    default: return shared_.guest_end.guest_ended(MachineState::Panicked);
  }
}

void Vcpu::on_internal_error() {
  const kvm_run& state = kvm_.state();
  const GuestVirt at(state.s.regs.regs.rip);
  std::array<std::byte, arch::kLongestInstruction> code{};
  const std::size_t length = read_code(at, code);
  const bool emulation = state.internal.suberror == KVM_INTERNAL_ERROR_EMULATION;
  if (emulation && length != 0) {
    // What KVM stumbled over may have been a byte of ours that is gone by now.
    const bool was_int3 = state.emulation_failure.ndata >= 4 &&
                          (state.emulation_failure.flags & 1) != 0 &&
                          std::byte{state.emulation_failure.insn_bytes[0]} == arch::kBreakpoint;
    if (code[0] == arch::kBreakpoint || was_int3) return on_int3(at);
  }
  std::string bytes;
  for (const std::byte byte : std::span(code).first(length)) {
    bytes += fmt::format(" {:02x}", std::to_integer<unsigned>(byte));
  }
  shared_.guest_end.record(
      MachineState::Died,
      fmt::format("this host's KVM cannot go on with vCPU {} (error {}); code at rip:{}"
                  "\n{}",
                  index_, state.internal.suberror, bytes,
                  describe(state.s.regs.regs, state.s.regs.sregs)));
}

void Vcpu::on_unknown() {
  const kvm_run& state = kvm_.state();
  std::string what =
      fmt::format("KVM left the guest for a reason that we do not know ({})", state.exit_reason);
  if (state.exit_reason == KVM_EXIT_FAIL_ENTRY) {
    what = fmt::format("KVM could not enter the guest (hardware's reason {:#x})",
                       std::uint64_t{state.fail_entry.hardware_entry_failure_reason});
  }
  shared_.guest_end.record(MachineState::Died,
                           fmt::format("{}, vCPU {}\n{}", what, index_,
                                       describe(state.s.regs.regs, state.s.regs.sregs)));
}

/// api.rst, 8.29: entries from next_dirty_ on whose flag says dirty are ours to take.
void Vcpu::harvest_dirty_pages() {
  const std::span<kvm_dirty_gfn> ring = kvm_.dirty_ring();
  bool any = false;
  for (std::size_t seen = 0; seen < ring.size(); ++seen, ++next_dirty_) {
    kvm_dirty_gfn& entry = ring[next_dirty_ % ring.size()];
    if (__atomic_load_n(&entry.flags, __ATOMIC_ACQUIRE) != KVM_DIRTY_GFN_F_DIRTY) break;
    any = true;
    if (const auto page = shared_.dirty_page(entry.slot, entry.offset);
        page && wants(Kind::Dirty)) {
      tell({Kind::Dirty, 0, {page->raw()}});
    }
    __atomic_store_n(&entry.flags, std::uint32_t{KVM_DIRTY_GFN_F_RESET}, __ATOMIC_RELEASE);
  }
  if (any) shared_.reset_dirty_ring();
}

void Vcpu::ask_sample(std::uint64_t tag) {
  {
    const std::lock_guard lock(chores_mutex_);
    sample_ = tag;
    chores_.store(true, std::memory_order_seq_cst);
  }
  kick();
}

void Vcpu::note_line(std::uint32_t gsi, bool level) {
  {
    const std::lock_guard lock(chores_mutex_);
    if (lines_.size() >= kMostLines) {
      ++lost_;
      return;
    }
    lines_.emplace_back(gsi, level);
    chores_.store(true, std::memory_order_seq_cst);
  }
  if (this != current()) kick();
}

void Vcpu::do_chores() {
  std::optional<std::uint64_t> sample;
  std::vector<std::pair<std::uint32_t, bool>> lines;
  {
    const std::lock_guard lock(chores_mutex_);
    chores_.store(false, std::memory_order_seq_cst);
    sample = std::exchange(sample_, std::nullopt);
    lines.swap(lines_);
  }
  for (const auto& [gsi, level] : lines) {
    if (wants(Kind::Inject)) tell({Kind::Inject, 0, {gsi, level ? 1u : 0u}});
  }
  if (sample) {
    shared_.tap.slot().with(index_, [&](ExitSink& sink) { sink.on_sample(*this, *sample); });
  }
}

void Vcpu::tell(const VcpuEvent& event) {
  shared_.tap.slot().with(index_, [&](ExitSink& sink) { sink.on_event(*this, event); });
}

void Vcpu::tell_exit(std::uint32_t reason) {
  if (!wants(Kind::Exit) || entered_ns_ == 0) return;
  tell({Kind::Exit, reason, {left_ns_ - std::min(left_ns_, entered_ns_), outside_ns_}});
}

const Registers& Vcpu::registers() {
  if (!registers_) {
    constexpr std::uint64_t kKernelHalf = 1ull << 63;
    const kvm_sync_regs& shared = kvm_.state().s.regs;
    registers_ = to_registers(shared.regs, shared.sregs, 0);
    // KVM does not copy it, and asking is half as dear as an exit: only where it may be the CPU's.
    const bool in_kernel = (registers_->cs & 3) == 0 && registers_->gs_base >= kKernelHalf;
    if (!in_kernel) registers_->kernel_gs_base = kvm_.kernel_gs_base();
    registers_->rip = instruction_start(*registers_);
  }
  return *registers_;
}

/// A host that emulates kernel code leaves rip behind an `out`; all others at it.
std::uint64_t Vcpu::instruction_start(const Registers& registers) const {
  const kvm_run& state = const_cast<Vcpu*>(this)->kvm_.state();
  const std::uint64_t rip = registers.rip;
  if (!shared_.trap_behavior.rip_after_out || state.exit_reason != KVM_EXIT_IO ||
      state.io.direction != KVM_EXIT_IO_OUT) {
    return rip;
  }
  std::array<std::byte, 4> before{};
  const auto where = locate(registers, GuestVirt(rip - before.size()));
  if (!where || !shared_.memory.read(*where, before)) return rip;
  const auto code = [&](std::size_t back) {
    return std::to_integer<unsigned>(before[before.size() - back]);
  };
  std::uint64_t length = 0;
  if ((code(2) == 0xe6 || code(2) == 0xe7) && code(1) == state.io.port)
    length = 2;
  else if (code(1) == 0xee || code(1) == 0xef || code(1) == 0x6e || code(1) == 0x6f)
    length = 1;
  if (length == 0) return rip;
  while (length < before.size() && (code(length + 1) == 0x66 || code(length + 1) == 0xf3)) ++length;
  return rip - length;
}

std::uint64_t Vcpu::guest_tsc() const {
  // The guest may set its TSC, which is rare: asked for now and then, not at each exit.
  if (!tsc_offset_ || left_tsc_ - tsc_offset_until_ < UINT64_MAX / 2) {
    tsc_offset_ = kvm_.tsc_offset();
    if (!tsc_offset_) {
      constexpr std::uint32_t kTsc = 0x10;
      const auto guest = kvm_.msr(kTsc);
      tsc_offset_ = guest ? *guest - __rdtsc() : 0;
    }
    tsc_offset_until_ = left_tsc_ + kOffsetTrusted;
  }
  return left_tsc_ + *tsc_offset_;
}

std::optional<GuestPhys> Vcpu::locate(const Registers& registers, GuestVirt at) const {
  if (!arch::pages(registers)) return GuestPhys(at.raw());
  if (!arch::in_long_mode(registers))
    return kvm_.translate(at);  // 32-bit page tables: KVM walks them
  const auto found = translate(shared_.memory, arch::page_table_of(registers), at);
  if (!found) return std::nullopt;
  return found->address;
}

}  // namespace ringside::vmm::kvm
