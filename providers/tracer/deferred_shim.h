// A Shim that is installed in the guest only when the first slot is asked for. So a program without
// trap probes, or a listing, changes nothing in the guest. Used by the tracer, between the
// tracepoint table and the real shim. Once installed, it only forwards; the fire thread uses
// installed() instead.
// Fire context: like Shim, once installed.
#pragma once

#include <functional>
#include <memory>

#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

/// The facts of this kernel that the installer needs, from its symbols. Unsupported, naming the
/// symbol, when one is missing.
Result<vmm::ShimKernelFacts> find_shim_facts(vmm::Machine& machine, guest_linux::Kernel& kernel);

class DeferredShim final : public vmm::Shim {
 public:
  using Installer = std::function<Result<std::unique_ptr<vmm::Shim>>()>;

  explicit DeferredShim(Installer install) : install_(std::move(install)) {}

  /// Null while nothing asked for a slot.
  vmm::Shim* installed() const { return shim_.get(); }

  Result<GuestVirt> allocate_slot(std::size_t size) override;
  std::uint64_t slot_room() const override { return shim_ ? shim_->slot_room() : 0; }
  Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code) override;
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override;
  Result<void> enable_entries(std::span<const GuestVirt> addresses) override;
  void disable_entry(GuestVirt address) override {
    if (shim_) shim_->disable_entry(address);
  }
  void note_arming() override {
    if (shim_) shim_->note_arming();
  }
  std::optional<GuestVirt> jump_entry() const override {
    return shim_ ? shim_->jump_entry() : std::nullopt;
  }
  std::vector<std::byte> kexec_notice(GuestVirt slot) override {
    return shim_ ? shim_->kexec_notice(slot) : std::vector<std::byte>();
  }
  Result<std::vector<std::byte>> fault_search(GuestVirt slot) override;
  Result<void> add_fault(GuestVirt slot, GuestVirt place) override;
  vmm::ShimState state() const override { return shim_ ? shim_->state() : vmm::ShimState::There; }
  Result<void> check_mapped(vmm::PausedMachine& machine) const override {
    return shim_ ? shim_->check_mapped(machine) : Result<void>();
  }
  void activate() override {
    if (shim_) shim_->activate();
  }
  void deactivate() override {
    if (shim_) shim_->deactivate();
  }
  Result<void> retire(vmm::PausedMachine& machine) override {
    return shim_ ? shim_->retire(machine) : Result<void>();
  }
  Result<void> remove(vmm::PausedMachine& machine) override {
    return shim_ ? shim_->remove(machine) : Result<void>();
  }
  vmm::ShimPlace place() const override { return shim_ ? shim_->place() : vmm::ShimPlace(); }
  unsigned poll_share(const vmm::TrapHandlers& handlers, vmm::PollShare share) override {
    return shim_ ? shim_->poll_share(handlers, share) : 0;
  }
  void set_doorbell(std::uint16_t port) override {
    if (shim_) shim_->set_doorbell(port);
  }
  void answer(std::uint32_t mailbox, const vmm::TrapHandlers& handlers) override {
    if (shim_) shim_->answer(mailbox, handlers);
  }
  void heartbeat() override {
    if (shim_) shim_->heartbeat();
  }
  bool quiescent() const override { return !shim_ || shim_->quiescent(); }
  vmm::TrapsUnderWay under_way() const override {
    return shim_ ? shim_->under_way() : vmm::TrapsUnderWay();
  }
  bool have_answers(const vmm::TrapsUnderWay& traps) const override {
    return !shim_ || shim_->have_answers(traps);
  }
  vmm::ShimCounters counters() const override {
    return shim_ ? shim_->counters() : vmm::ShimCounters{};
  }
  bool contains(GuestVirt pc) const override { return shim_ && shim_->contains(pc); }
  std::optional<Registers> waiting(GuestVirt percpu_base) const override {
    return shim_ ? shim_->waiting(percpu_base) : std::nullopt;
  }
  std::optional<GuestVirt> displaced_from(GuestVirt pc) const override {
    return shim_ ? shim_->displaced_from(pc) : std::nullopt;
  }

 private:
  Result<vmm::Shim*> shim();

  Installer install_;
  std::unique_ptr<vmm::Shim> shim_;
};

/// Pauses the machine and installs the real shim: in place of an earlier shim that had to stay, or
/// else in the memory that was set aside at start, or else in the first megabyte.
Result<std::unique_ptr<vmm::Shim>> install_shim(vmm::Machine& machine, guest_linux::Kernel& kernel);

}  // namespace ringside::providers
