// A vCPU and its thread: enters the guest when the gate lets it, and hands each exit to the class
// that knows its kind (exit_handlers.h), or here the doorbell.
// Used by kvm_guest. Threads: run() is the thread; kick(), the requests and the calls that say
// "while out of the guest" are for others.
// Does not: know devices (two buses), ACPI, boot protocols.
// Fire context: the sink is called from here.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "vmm/guest_memory.h"
#include "vmm/kvm/api/kvm_vcpu.h"
#include "vmm/kvm/api/kvm_vm.h"
#include "vmm/kvm/devices/bus.h"
#include "vmm/kvm/devices/guest_end.h"
#include "vmm/kvm/vcpu/breakpoints.h"
#include "vmm/kvm/vcpu/current_exit.h"
#include "vmm/kvm/vcpu/exit_handlers.h"
#include "vmm/kvm/vcpu/exit_subscription.h"
#include "vmm/kvm/vcpu/gate.h"
#include "vmm/kvm/vcpu/pending_events.h"
#include "vmm/kvm/vcpu/step_over.h"
#include "vmm/kvm/vcpu/trap_route.h"

namespace ringside::vmm::kvm {

class KvmVm;

/// The parts of a machine that all its vCPUs work with; they outlive the vCPUs.
struct VcpuShared {
  Gate& gate;
  const Bus& ports;
  const Bus& mmio;
  GuestMemory& memory;
  ExitSubscription& subscription;
  Breakpoints& breakpoints;
  GuestEnd& guest_end;
  const KvmVm& vm;
  const RamSlots& ram_slots;
  const TrapBehavior trap_behavior;
};

/// How long a vCPU was in the guest and out of it: the values of VcpuEvent::Kind::Exit.
class ExitTimes {
 public:
  /// Both: nanoseconds of a clock that only grows.
  void enter(std::uint64_t now) {
    entered_ = now;
    outside_ = left_ == 0 ? 0 : entered_ - std::min(left_, entered_);
  }
  void leave(std::uint64_t now) { left_ = now; }

  /// Whether the entry before the exit was timed.
  bool known() const { return entered_ != 0; }
  /// Nanoseconds in the guest before the exit.
  std::uint64_t inside() const { return left_ - std::min(left_, entered_); }
  /// Nanoseconds out of the guest before that; 0 for the first entry.
  std::uint64_t outside() const { return outside_; }

 private:
  std::uint64_t entered_ = 0, left_ = 0, outside_ = 0;
};

class Vcpu {
 public:
  /// `shared` is copied.
  Vcpu(unsigned index, KvmVcpu kvm, const VcpuShared& shared);
  ~Vcpu() { join(); }
  Vcpu(const Vcpu&) = delete;
  Vcpu& operator=(const Vcpu&) = delete;

  unsigned index() const { return exit_.index(); }
  /// Its thread begins, in the sandbox (sandbox.h).
  Result<void> start();
  /// Waits for the thread's end, which the gate's stop brings. May be called again.
  void join();
  /// Makes it come out of the guest soon; for the gate.
  void kick();
  /// The vCPU whose thread this is; null on other threads.
  static Vcpu* current();
  /// Which one it is, and its registers in the lines below; for its own thread, at an exit.
  std::string scene() const;

  KvmVcpu& kvm() { return kvm_; }
  /// Asks for ExitSink::on_sample on its thread.
  void ask_sample(std::uint64_t tag);
  /// A line of an interrupt controller has changed; told as an event on this vCPU's thread.
  void note_line(std::uint32_t gsi, bool level);
  /// The thread's; waits until there is one: after start().
  int tid() const;
  /// Makes events of what the host's tracepoints tell of this vCPU; null: no longer.
  void listen_to_host(std::unique_ptr<HostEventSource> source) { host_.listen(std::move(source)); }
  /// Events that were not told, because too many waited. Only grows.
  std::uint64_t lost_events() const { return host_.lost() + requests_.lost(); }
  /// While out of the guest: tells KVM of the machine's breakpoints.
  Result<void> arm() { return kvm_.set_debug(shared_.breakpoints.setup()); }
  /// While out of the guest: by this vCPU's page tables; see VcpuMemory::locate.
  std::optional<GuestPhys> locate(const Registers& registers, GuestVirt at) const {
    return memory_.locate(registers, at);
  }

 private:
  void run();
  bool pass_gate();
  int run_guest();
  std::optional<int> enter();
  void handle_exit();
  void ring();
  void handle_requests();
  void harvest_dirty_pages();
  void tell_exit(std::uint32_t reason);
  void tell_host_events();
  bool wants(VcpuEvent::Kind kind) const { return shared_.subscription.wants(kind); }

  const VcpuShared shared_;
  KvmVcpu kvm_;
  const VcpuMemory memory_;
  CurrentExit exit_;
  ExitTimes times_;
  GuestTraps traps_;
  StepOver step_over_;
  BreakpointExits breakpoint_exits_;
  IoExits io_exits_;
  FatalExits fatal_exits_;
  DirtyRing dirty_ring_;
  VcpuHostEvents host_;
  VcpuRequests requests_;

  std::atomic<int> tid_{0};
  std::thread thread_;
};

/// Makes a vCPU's thread leave KVM_RUN.
int kick_signal();
/// Installs the handler of the signal that kicks; once a process.
void prepare_kicks();

}  // namespace ringside::vmm::kvm
