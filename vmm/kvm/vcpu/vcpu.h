// A vCPU and its thread: enters the guest when the gate lets it, and does what each exit asks for.
// The exits: vcpu.cc (the loop, ports, memory, MSRs), vcpu_debug.cc (breakpoints); what KVM answers
// itself: vcpu_host_events.cc.
// Used by kvm_guest. Threads: run() is the thread; kick(), the requests and the calls that say
// "while out of the guest" are for others.
// Does not: know devices (two buses), ACPI, boot protocols.
// Fire context: the sink is called from here.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "vmm/guest_memory.h"
#include "vmm/kvm/devices/bus.h"
#include "vmm/kvm/guest_end.h"
#include "vmm/kvm/host/host_tracepoints.h"
#include "vmm/kvm/vcpu/breakpoints.h"
#include "vmm/kvm/vcpu/exit_tap.h"
#include "vmm/kvm/vcpu/gate.h"
#include "vmm/kvm/vcpu/kvm_vcpu.h"
#include "vmm/kvm/vcpu/trap_route.h"

namespace ringside::vmm::kvm {

/// What all vCPUs of a machine share; outlives them.
struct VcpuShared {
  Gate& gate;
  const Bus& ports;
  const Bus& mmio;
  GuestMemory& memory;
  ExitTap& tap;
  Breakpoints& breakpoints;
  GuestEnd& guest_end;
  TrapBehavior trap_behavior{};
  bool can_block_irqs = false;               // KVM_GUESTDBG_BLOCKIRQ
  std::function<void()> reset_dirty_ring{};  // KVM_RESET_DIRTY_RINGS
  std::function<std::optional<GuestPhys>(std::uint32_t slot, std::uint64_t page)> dirty_page{};
};

class Vcpu final : public StoppedVcpu {
 public:
  Vcpu(unsigned index, KvmVcpu kvm, VcpuShared& shared);
  ~Vcpu() override { join(); }

  /// Its thread begins, in the sandbox (sandbox.h).
  Result<void> start();
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
  /// What the host's tracepoints tell of it becomes events; null: no longer.
  void listen_to_host(std::unique_ptr<VcpuTracepoints> points);
  /// Events that were not told, because too many waited.
  std::uint64_t lost_events() const;
  /// While out of the guest: says the breakpoints to KVM.
  Result<void> arm();
  /// While out of the guest: by this vCPU's page tables, or one to one where it does not page.
  std::optional<GuestPhys> locate(const Registers& registers, GuestVirt at) const;

  // StoppedVcpu
  unsigned index() const override { return index_; }
  const Registers& registers() override;
  std::uint64_t guest_tsc() const override;

 private:
  class Stack;

  void run();
  bool enter_gate();
  int enter_guest();
  void handle_exit();
  void on_port();
  void ring(std::span<const std::byte> data);
  void on_mmio();
  void on_msr_read();
  void on_msr_write();
  void on_shutdown();
  void on_system_event();
  void on_internal_error();
  void on_unknown();
  void harvest_dirty_pages();
  void do_chores();
  void tell(const VcpuEvent& event);
  void tell_exit(std::uint32_t reason);
  bool wants(VcpuEvent::Kind kind) const { return shared_.tap.wants(kind); }
  std::uint64_t instruction_start(const Registers& registers) const;

  void tell_host_events();
  void step_back_to(VcpuEvent::Kind kind);

  void on_debug();
  void on_int3(GuestVirt at);
  bool on_trap_port();
  bool on_split_trap();
  void settle(GuestVirt at);
  void on_watched(GuestVirt at);
  void fire(GuestVirt at);
  std::optional<GuestVirt> met_at(GuestVirt rip) const;
  void execute_under(GuestVirt site, GuestVirt rip, std::uint64_t offset = 0);
  bool execute_simply(GuestVirt site, GuestVirt at, std::uint64_t offset);
  void step_alone(GuestVirt site, GuestVirt at);
  void step_from(GuestVirt at);
  void inject(std::uint8_t vector);
  void give_back_breakpoint();
  void give_back_debug(std::uint64_t dr6);
  std::size_t read_code(GuestVirt at, std::span<std::byte> code) const;
  void must(const Result<void>& done);

  const unsigned index_;
  KvmVcpu kvm_;
  VcpuShared& shared_;
  std::thread thread_;
  std::atomic<int> tid_{0};

  // Of the exit at hand.
  std::optional<Registers> registers_;
  std::uint64_t left_tsc_ = 0;
  std::uint64_t entered_ns_ = 0, left_ns_ = 0, outside_ns_ = 0;
  std::uint64_t last_rip_ = 0, last_cr3_ = 0;
  mutable std::optional<std::uint64_t> tsc_offset_;
  mutable std::uint64_t tsc_offset_until_ = 0;
  std::uint32_t next_dirty_ = 0;

  const TscOfTime tsc_of_time_;
  mutable std::mutex host_mutex_;
  std::unique_ptr<VcpuTracepoints> host_;
  std::atomic<std::uint64_t> lost_{0};
  std::vector<HostEvent> host_events_;  // of this exit

  std::atomic<bool> chores_{false};
  std::mutex chores_mutex_;
  std::optional<std::uint64_t> sample_;
  std::vector<std::pair<std::uint32_t, bool>> lines_;  // at most kMostLines
};

/// Makes a vCPU's thread leave KVM_RUN.
int kick_signal();
/// Installs the handler of the signal that kicks; once a process.
void prepare_kicks();

}  // namespace ringside::vmm::kvm
