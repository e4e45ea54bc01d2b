// A guest without devices: KVM's VM, RAM, the vCPUs with their threads, two empty buses. With
// devices on the buses it becomes a machine (board, kvm_machine). Life: create() -> devices on the
// buses, kernel in memory() -> start(): the vCPUs wait at the gate, paused once -> resume() ->
// stop(). Threads: create to start on one; then any.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "vmm/guest_memory.h"
#include "vmm/kvm/api/kvm_system.h"
#include "vmm/kvm/api/kvm_vm.h"
#include "vmm/kvm/boot/boot.h"
#include "vmm/kvm/devices/bus.h"
#include "vmm/kvm/devices/guest_end.h"
#include "vmm/kvm/vcpu/exit_subscription.h"
#include "vmm/kvm/vcpu/gate.h"
#include "vmm/kvm/vcpu/vcpu.h"
#include "vmm/machine.h"
#include "vmm/shared_ram.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

class KvmGuest {
 public:
  /// `memory`: bytes of RAM, placed as boot/layout.h says. Io, naming the call, where KVM refuses.
  static Result<std::unique_ptr<KvmGuest>> create(const KvmSystem& system, unsigned vcpus,
                                                  std::uint64_t memory);
  ~KvmGuest();
  KvmGuest(const KvmGuest&) = delete;
  KvmGuest& operator=(const KvmGuest&) = delete;

  unsigned vcpu_count() const { return static_cast<unsigned>(vcpus_.size()); }
  GuestMemory& memory() { return memory_; }
  Bus& ports() { return ports_; }
  Bus& mmio() { return mmio_; }
  GuestEnd& guest_end() { return guest_end_; }
  Gate& gate() { return gate_; }
  ExitSubscription& subscription() { return subscription_; }
  Breakpoints& breakpoints() { return breakpoints_; }
  std::span<const std::unique_ptr<Vcpu>> vcpus() const { return vcpus_; }
  const KvmVm& vm() const { return vm_; }
  /// Sets the pin `gsi` of the interrupt controllers, and makes an event of it if one is wanted.
  /// Any thread.
  void set_line(std::uint32_t gsi, bool level);
  /// From now on each page that a vCPU writes is an event (VcpuEvent::Kind::Dirty), or no longer.
  Result<void> log_dirty_pages(bool log) { return ram_slots_.set(vm_, ram_, log); }

  /// Starts the vCPUs' threads: vCPU 0 at `boot`, the others wait for INIT and SIPI, as on a PC.
  /// All wait at the gate until resume().
  Result<void> start(const BootState& boot);
  void pause() { gate_.pause(); }
  void resume() { gate_.resume(); }
  /// Ends the vCPUs' threads. Not from one of them; may be called again.
  void stop();

  // While paused.
  Result<Registers> registers(unsigned vcpu) const;
  /// The physical address of `at`: by the page tables of any vCPU, those of vCPU 0 first; else
  /// where `loaded_at` (may be empty) says; else the same number, if a vCPU does not page.
  std::optional<GuestPhys> locate(GuestVirt at, const VcpuExits::LoadedAt& loaded_at = {}) const;

 private:
  KvmGuest(KvmVm vm, SharedRam ram, std::vector<KvmVcpu> vcpus, TrapBehavior trap_behavior,
           UniqueFd end_event);

  const SharedRam ram_;  // before vm_: KVM maps it
  const KvmVm vm_;
  const RamSlots ram_slots_;
  GuestMemory memory_;
  Bus ports_, mmio_;
  Gate gate_;
  GuestEnd guest_end_;
  ExitSubscription subscription_;
  Breakpoints breakpoints_;
  std::vector<std::unique_ptr<Vcpu>> vcpus_;
};

}  // namespace ringside::vmm::kvm
