// In this file: the thread, the way into the guest and out of it, which exit goes where, events
// that are not about an access.
#include "vmm/kvm/vcpu/vcpu.h"

#include <fmt/format.h>
#include <linux/kvm.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cerrno>
#include <utility>

#include "vmm/kvm/api/kvm_vm.h"
#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/host/sandbox.h"

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;

thread_local Vcpu* this_thread = nullptr;

std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
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

Vcpu::Vcpu(unsigned index, KvmVcpu kvm, const VcpuShared& shared)
    : shared_(shared),
      kvm_(std::move(kvm)),
      memory_(shared_.memory, kvm_),
      exit_(index, kvm_, memory_, shared_.trap_behavior.rip_after_out),
      traps_(kvm_, shared_.trap_behavior.route, shared_.guest_end),
      step_over_({kvm_,
                  memory_,
                  exit_,
                  {[this] { return enter(); }, [this] { handle_exit(); }},
                  traps_,
                  shared_.gate,
                  shared_.breakpoints,
                  shared_.guest_end},
                 shared_.trap_behavior.can_block_irqs),
      breakpoint_exits_(exit_, shared_.breakpoints, shared_.subscription, step_over_, traps_),
      io_exits_(exit_, kvm_, shared_.ports, shared_.mmio, shared_.subscription),
      fatal_exits_(exit_, shared_.guest_end),
      dirty_ring_(kvm_.dirty_ring()) {
  kvm_.share_registers();
}

Vcpu* Vcpu::current() {
  return this_thread;
}

Result<void> Vcpu::start() {
  thread_ =
      TRY(start_sandboxed({fmt::format("vcpu {}", index()), kick_signal()}, [this] { run(); }));
  return {};
}

void Vcpu::join() {
  if (thread_.joinable()) thread_.join();
}

int Vcpu::tid() const {
  tid_.wait(0);
  return tid_.load(std::memory_order_acquire);
}

void Vcpu::kick() {
  // SAFETY: KVM reads the byte when it enters; see Gate for why it is not cleared too late.
  __atomic_store_n(&kvm_.state().immediate_exit, std::uint8_t{1}, __ATOMIC_SEQ_CST);
  const int tid = tid_.load(std::memory_order_acquire);
  if (tid != 0) syscall(SYS_tgkill, getpid(), tid, kick_signal());
}

std::string Vcpu::scene() const {
  return fmt::format("on vCPU {}\n{}", index(), exit_.describe());
}

void Vcpu::run() {
  this_thread = this;
  tid_.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_release);
  tid_.notify_all();
  while (pass_gate()) {
    if (requests_.any()) {
      shared_.gate.leave(index());
      handle_requests();
      continue;
    }
    const int error = run_guest();
    if (wants(Kind::Cpuid) || wants(Kind::Hlt)) tell_host_events();
    if (error == 0) {
      handle_exit();
    } else if (error != EINTR && error != EAGAIN) {
      fatal_exits_.on_run_error(error);
    } else {
      tell_exit(KVM_EXIT_INTR);
    }
  }
}

std::optional<int> Vcpu::enter() {
  if (!pass_gate()) return std::nullopt;
  return run_guest();
}

/// Waits until it may run the guest; false when the machine stops. Kicks from before are forgotten.
bool Vcpu::pass_gate() {
  return shared_.gate.enter(index(), [this] {
    __atomic_store_n(&kvm_.state().immediate_exit, std::uint8_t{0}, __ATOMIC_SEQ_CST);
  });
}

/// KVM_RUN, after pass_gate(): the vCPU has been counted as inside. 0, or errno.
int Vcpu::run_guest() {
  if (wants(Kind::Exit)) times_.enter(now_ns());
  const int error = kvm_.run();
  exit_.begin(__rdtsc());
  if (wants(Kind::Exit)) times_.leave(now_ns());
  shared_.gate.leave(index());
  return error;
}

void Vcpu::handle_exit() {
  const kvm_run& state = kvm_.state();
  // First, because it is what tracing waits for; and it is no exit of the guest's own.
  if (state.exit_reason == KVM_EXIT_IO && state.io.port == VcpuExits::kDoorbellPort &&
      state.io.direction == KVM_EXIT_IO_OUT) {
    return ring();
  }
  if (state.exit_reason != KVM_EXIT_SHUTDOWN) fatal_exits_.note_place();
  tell_exit(state.exit_reason);
  if (wants(Kind::Dirty)) harvest_dirty_pages();
  switch (state.exit_reason) {
    case KVM_EXIT_IO:
      if (!breakpoint_exits_.on_port()) io_exits_.on_port(kvm_.port_data());
      return;
    case KVM_EXIT_MMIO: return io_exits_.on_mmio();
    case KVM_EXIT_DEBUG: return breakpoint_exits_.on_debug();
    case KVM_EXIT_X86_RDMSR: return io_exits_.on_msr_read();
    case KVM_EXIT_X86_WRMSR: return io_exits_.on_msr_write();
    case KVM_EXIT_DIRTY_RING_FULL: return harvest_dirty_pages();
    case KVM_EXIT_SHUTDOWN: return fatal_exits_.on_shutdown();
    case KVM_EXIT_SYSTEM_EVENT: return fatal_exits_.on_system_event();
    case KVM_EXIT_INTERNAL_ERROR:
      if (!breakpoint_exits_.on_internal_error()) fatal_exits_.on_internal_error();
      return;
    case KVM_EXIT_HLT:  // only without interrupt controllers in the kernel
    case KVM_EXIT_INTR:
    case KVM_EXIT_IRQ_WINDOW_OPEN: return;
    default: return fatal_exits_.on_unknown();
  }
}

void Vcpu::ring() {
  const auto value = static_cast<std::uint32_t>(value_of(kvm_.port_data()));
  shared_.subscription.slot().with(index(),
                                   [&](ExitSink& sink) { sink.on_doorbell(exit_, value); });
}

void Vcpu::harvest_dirty_pages() {
  const bool any = dirty_ring_.harvest([this](std::uint32_t slot, std::uint64_t page) {
    const auto at = wants(Kind::Dirty) ? shared_.ram_slots.page(slot, page) : std::nullopt;
    if (at) shared_.subscription.tell(exit_, {Kind::Dirty, 0, {at->raw()}});
  });
  if (any) shared_.vm.reset_dirty_rings();
}

void Vcpu::ask_sample(std::uint64_t tag) {
  requests_.ask_sample(tag);
  kick();
}

void Vcpu::note_line(std::uint32_t gsi, bool level) {
  if (requests_.note_line(gsi, level) && this != current()) kick();
}

void Vcpu::handle_requests() {
  const VcpuRequests::Taken taken = requests_.take();
  for (const auto& [gsi, level] : taken.lines) {
    if (wants(Kind::Inject))
      shared_.subscription.tell(exit_, {Kind::Inject, 0, {gsi, level ? 1u : 0u}});
  }
  if (!taken.sample) return;
  shared_.subscription.slot().with(index(),
                                   [&](ExitSink& sink) { sink.on_sample(exit_, *taken.sample); });
}

void Vcpu::tell_exit(std::uint32_t reason) {
  if (!wants(Kind::Exit) || !times_.known()) return;
  shared_.subscription.tell(exit_, {Kind::Exit, reason, {times_.inside(), times_.outside()}});
}

/// Runs after KVM_RUN and before its exit is handled, because these events happened before the
/// exit.
void Vcpu::tell_host_events() {
  const bool kicked = __atomic_load_n(&kvm_.state().immediate_exit, __ATOMIC_SEQ_CST) != 0;
  host_.take({kicked, [this] { return kvm_.is_halted(); }},
             [this](std::uint64_t host_tsc, const VcpuEvent& event) {
               if (!wants(event.kind)) return;
               exit_.show_earlier(host_tsc, instruction_of(event.kind));
               shared_.subscription.tell(exit_, event);
               exit_.show_now();
             });
}

}  // namespace ringside::vmm::kvm
