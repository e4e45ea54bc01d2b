// A trap table whose shim is installed in the guest only when the first slot is asked for. So a
// program without trap probes, or a listing, changes nothing in the guest. Used by the tracer of a
// running kernel. What fires uses installed().
// Threads: changes may come from several at once. Fire context: as TrapTable says.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

class DeferredShim final : public vmm::TrapTable {
 public:
  using Installer = std::function<Result<std::unique_ptr<vmm::Shim>>()>;

  explicit DeferredShim(Installer install) : install_(std::move(install)) {}

  /// Null while nothing asked for a slot.
  vmm::Shim* installed() const { return shim_.get(); }

  Result<GuestVirt> allocate_slot(std::size_t size) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->allocate_slot(size);
  }
  std::uint64_t slot_room() const override { return shim_ ? shim_->slot_room() : 0; }
  bool shares_slots() const override { return shim_ && shim_->shares_slots(); }
  Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code,
                          vmm::SlotHeader header = {}) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->write_slot(slot, code, header);
  }
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->add_entry(address, slot);
  }
  std::uint32_t ring_count() const override { return shim_ ? shim_->ring_count() : 0; }
  Result<void> record_at(std::span<const GuestVirt> addresses, std::uint8_t list = 0) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->record_at(addresses, list);
  }
  Result<void> enable_entries(std::span<const GuestVirt> addresses) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->enable_entries(addresses);
  }
  void disable_entry(GuestVirt address) override {
    const std::lock_guard lock(lock_);
    if (shim_) shim_->disable_entry(address);
  }
  void note_arming() override {
    const std::lock_guard lock(lock_);
    if (shim_) shim_->note_arming();
  }
  std::optional<GuestVirt> jump_entry() const override {
    return shim_ ? shim_->jump_entry() : std::nullopt;
  }
  Result<std::vector<std::byte>> kexec_notice(GuestVirt slot) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->kexec_notice(slot);
  }
  Result<std::vector<std::byte>> fault_search(GuestVirt slot) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->fault_search(slot);
  }
  Result<void> add_fault(GuestVirt slot, GuestVirt place) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->add_fault(slot, place);
  }
  Result<void> serve_processes(const vmm::FetchFacts& facts) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->serve_processes(facts);
  }
  Result<GuestVirt> add_user_point(const vmm::UserTrapPoint& point) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->add_user_point(point);
  }
  Result<GuestVirt> reserve_user_point() override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->reserve_user_point();
  }
  Result<void> describe_user_point(GuestVirt name, const vmm::UserTrapPoint& point) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->describe_user_point(name, point);
  }
  Result<void> note_semaphore(GuestVirt name, std::uint64_t semaphore) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->note_semaphore(name, semaphore);
  }
  Result<void> enable_user_points(std::span<const GuestVirt> names) override {
    const std::lock_guard lock(lock_);
    return TRY(shim())->enable_user_points(names);
  }
  void forget_user_point(GuestVirt name) override {
    const std::lock_guard lock(lock_);
    if (shim_) shim_->forget_user_point(name);
  }
  vmm::ShimPlace place() const override { return shim_ ? shim_->place() : vmm::ShimPlace(); }
  vmm::ShimState state() const override { return shim_ ? shim_->state() : vmm::ShimState::There; }
  Result<void> check_mapped(vmm::PausedMachine& machine) const override {
    return shim_ ? shim_->check_mapped(machine) : Result<void>();
  }
  vmm::TrapsUnderWay under_way() const override {
    return shim_ ? shim_->under_way() : vmm::TrapsUnderWay();
  }
  bool have_answers(const vmm::TrapsUnderWay& traps) const override {
    return !shim_ || shim_->have_answers(traps);
  }

 private:
  Result<vmm::Shim*> shim() {
    if (!shim_) shim_ = TRY(install_());
    return shim_.get();
  }

  Installer install_;
  std::mutex lock_;  // of each change: both tables of trap points make some, on several threads
  std::unique_ptr<vmm::Shim> shim_;
};

/// Pauses the machine and installs the real shim: in place of an earlier shim that had to stay, or
/// else in the memory that was set aside at start, or else in the first megabyte.
Result<std::unique_ptr<vmm::Shim>> install_shim(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                                vmm::RingWants rings);

}  // namespace ringside::providers
