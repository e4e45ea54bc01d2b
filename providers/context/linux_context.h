// The guest at the moment of a firing, for Linux on x86-64: identity from `current`, arguments
// by the plan of the probe's place, memory through the kernel's and the process's page tables.
// Used by the dispatcher for traps, and through VcpuContext for samples and events. Each vCPU has
// one instance, which all its firings use, one after the other (LinuxContexts). Every answer is
// hostile data: a wrong pointer is a Fault and nothing worse. Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "dif/evaluate/guest_context.h"
#include "providers/context/binding.h"
#include "providers/context/linux_locks.h"
#include "providers/context/recorded_memory.h"
#include "providers/context/thread_clock.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/linear_map.h"
#include "vmm/linux/packets.h"
#include "vmm/linux/paths.h"
#include "vmm/linux/stacks/stack_tables.h"
#include "vmm/page_walk.h"
#include "vmm/shim/mailboxes.h"

namespace ringside::guest_linux {
class HostUnwindTables;
class UserUnwinder;
}  // namespace ringside::guest_linux

namespace ringside::providers {

/// Where the kernel's first thread is (init_task of init/init_task.c), which never ends; 0:
/// unknown.
GuestVirt first_task(const guest_linux::Kernel& kernel);

/// The lower half of the address space, which is the process's: the page table of a process maps
/// the kernel too, but copyin() of a kernel address must be a fault (BadAddress).
class UserHalfReader final : public GuestReader {
 public:
  explicit UserHalfReader(const GuestReader& process) : process_(process) {}
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    // A read that begins below ends in the addresses between the halves, which nothing maps.
    if (arch::in_kernel_half(at)) {
      return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
    }
    return process_.read(at, out);
  }

 private:
  const GuestReader& process_;
};

/// A context uses these beside the kernel; they must outlive it.
struct LinuxContextParts {
  const guest_linux::StackTables* stack_tables = nullptr;  // null: kernel stacks are empty
  vmm::Mailboxes* shim =
      nullptr;  // whose vCPUs stand still while a firing waits; null: it has none
  guest_linux::HostUnwindTables* host_tables = nullptr;  // of the guest's programs; null: none
  /// For a kernel that is traced while it boots, or that is not Linux: memory is what the vCPU
  /// itself maps. While there are no tasks, identities are 0 and execname is empty.
  bool follows_vcpus = false;
};

class LinuxContext final : public dif::GuestContext {
 public:
  /// `memory`, `kernel` and `run_times`, the machine's, must outlive it; what is changed in
  /// `memory` is what write_user() is asked for.
  LinuxContext(vmm::GuestMemory& memory, const guest_linux::Kernel& kernel, RunTimes& run_times,
               const LinuxContextParts& parts = {});
  ~LinuxContext() override;
  LinuxContext(const LinuxContext&) = delete;
  LinuxContext& operator=(const LinuxContext&) = delete;

  /// A new firing moment: forgets everything known of the last one. `task`: `current`, where it is
  /// known already. `when`: where it is known.
  void begin(const Registers& registers, GuestVirt percpu_base,
             const std::optional<vmm::TrappedTask>& task = std::nullopt,
             const std::optional<TrapMoment>& when = std::nullopt);
  /// The same for a moment that is over: the guest runs on, so only what the record holds is known,
  /// and all other memory is a fault. The trap and its runs must live until the next moment.
  void replay(const vmm::Trap& trap, std::uint64_t time);
  /// The thread has stood still for so long (ns) for the trap of that moment.
  void waited(std::uint64_t nanoseconds) {
    if (!task_ || !task_->ids) return;
    thread_clock_.waited(kernel_reader_, percpu_base_, {task_->address, task_->ids->pid},
                         nanoseconds);
  }
  /// Which probe fires now, of those at this place.
  void select(const Binding& binding) { binding_ = binding; }
  /// Whether that probe fires for this trap; works out its arguments. After select().
  bool passes_filter() {
    if (binding_.filter == nullptr) return true;
    filter_values_ = {};
    return binding_.filter->fires(moment(), filter_values_);
  }
  /// Whether it is in the process of this number.
  bool is_in(std::int32_t process) const {
    const auto pid = known_variable(dif::ContextVariable::Pid);
    return pid && static_cast<std::int64_t>(*pid) == process;
  }
  /// The firing is at no probe's place (a sample, an event of the host's): registers are those of
  /// any instruction, and arguments are not the guest's.
  void select_anywhere() { anywhere_ = true; }

  /// Which task this is, and where on its stack; empty when it cannot be read.
  std::optional<TaskMoment> task_moment() const;
  /// The number of the system call at the selected place; empty when it cannot be read.
  std::optional<std::uint32_t> system_call_number() const;

  Result<std::uint64_t, Fault> variable(dif::ContextVariable which) const override;
  Result<std::size_t, Fault> execname(std::span<char> out) const override;
  Result<std::uint64_t, Fault> argument(unsigned n) const override;
  const GuestReader& kernel() const override {
    if (is_over_) return recorded_kernel_;
    return kernel_reader_;
  }
  const GuestReader& user() const override {
    if (is_over_) return recorded_user_;
    return user_half_;
  }
  bool is_on_vcpu() const override { return true; }
  Result<std::uint64_t, Fault> machine_register(dif::RegisterSet set,
                                                std::uint64_t n) const override;
  std::uint64_t address_space() const override;
  Result<std::uint64_t, Fault> lock(dif::LockFact which, GuestVirt at) const override {
    return locks_.fact(kernel(), which, at);
  }
  const LinuxLocks& locks() const { return locks_; }
  Result<std::size_t, Fault> path(GuestVirt dentry, GuestVirt mount,
                                  std::span<char> out) const override {
    return paths_.path(kernel(), dentry, mount, out);
  }
  Result<CopiedPacket, Fault> packet(GuestVirt skb, PacketPart part,
                                     std::span<std::byte> out) const override {
    return packets_.copy(kernel(), skb, part, out);
  }
  const Registers& registers() const { return *registers_; }
  /// The process's: the trap's own where it came from user mode, else those that the kernel saved
  /// when it was entered. Fault: a kernel thread, which has none, or a stack without an entry from
  /// user mode.
  Result<Registers, Fault> user_registers() const;
  Result<std::size_t, Fault> kernel_stack(std::span<std::uint64_t> frames) const override;
  /// By the unwind tables of what the process runs, and by frame pointers where there are none
  /// (vmm/linux/processes/user_unwind.h). By frame pointers alone if the kernel's types do not
  /// describe processes.
  Result<std::size_t, Fault> user_stack(std::span<std::uint64_t> frames) const override;
  Result<bool, Fault> progeny_of(std::int64_t pid) const override;
  /// Fault: a page that is absent, read-only, code, or was never written.
  Result<void, Fault> write_user(GuestVirt at, std::span<const std::byte> bytes) const override;
  Result<void, Fault> wait(std::uint64_t nanoseconds) const override;
  Result<void, Fault> keep_still() const override {
    keeps_still_ = true;
    return {};
  }
  /// Whether the moment's firings wanted that.
  bool keeps_still() const { return keeps_still_; }

 private:
  void begin_moment(const Registers& registers, GuestVirt percpu_base,
                    const std::optional<vmm::TrappedTask>& task);
  Result<GuestVirt, Fault> current() const;
  void follow_tables();
  Result<std::uint64_t, Fault> known_variable(dif::ContextVariable which) const;
  /// A member of a structure; an offset that the guest's types did not have is a fault.
  template <class T>
  Result<T, Fault> field(GuestVirt object, std::optional<std::uint32_t> offset) const {
    if (!offset) return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
    const auto at = object.checked_add(*offset);
    if (!at) return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, object.raw()});
    return load<T>(kernel(), *at);
  }
  template <class T>
  Result<std::uint64_t, Fault> task_field(std::optional<std::uint32_t> offset) const;
  Result<std::uint64_t, Fault> credential(std::optional<std::uint32_t> offset) const;
  Result<std::uint64_t, Fault> parent_pid() const;
  Result<std::uint64_t, Fault> caller() const;
  Result<std::uint64_t, Fault> user_caller() const;
  /// Whether rsp points at the return address into the caller, as at a function's ends.
  bool at_function_edge() const;
  Result<std::uint64_t, Fault> stack_word(unsigned index) const;
  Result<std::uint64_t, Fault> error_number() const;
  ArgumentMoment moment() const {
    return {*registers_,     kernel(),     binding_.site, {},
            &filter_values_, percpu_base_, this,          when_ ? when_->time : 0};
  }

  vmm::GuestMemory& memory_;
  const guest_linux::Kernel& kernel_;
  const LinuxContextParts parts_;
  const guest_linux::KernelLayout layout_;
  const guest_linux::LinuxPaths paths_;
  const guest_linux::LinuxPackets packets_;
  const LinuxLocks locks_;
  const arch::PageTable kernel_table_;
  arch::PageTable process_table_;
  const std::uint64_t saved_registers_;  // guest_linux::find_saved_registers()
  guest_linux::LinearMapReader kernel_reader_;
  vmm::PageTableReader process_reader_;
  mutable ThreadClock thread_clock_;
  const std::unique_ptr<guest_linux::UserUnwinder> unwinder_;  // null: by frame pointers
  const UserHalfReader user_half_{process_reader_};
  vmm::RecordedRuns runs_;
  const RecordedMemory recorded_kernel_{runs_, RecordedMemory::Half::Kernel},
      recorded_user_{runs_, RecordedMemory::Half::User};

  Registers own_registers_;
  const Registers* registers_ = &own_registers_;  // of the moment: these, or the trap's
  GuestVirt percpu_base_;
  Binding binding_;
  FilterValues filter_values_;
  bool anywhere_ = false;
  bool is_over_ = false;  // the moment: its vCPU runs on
  mutable bool keeps_still_ = false;
  std::optional<vmm::TrappedTask> task_;
  std::optional<TrapMoment> when_;
  mutable std::optional<GuestVirt> current_;
};

/// One context for each of a machine's vCPUs. A firing on a vCPU (a trap, a sample or an event)
/// uses that vCPU's context while it holds the vCPU's firing lock (dif/engine/engine.h). So no
/// context is used by two firings at once. Fire context: operator[] yes; everything else no.
class LinuxContexts {
 public:
  /// The parts of each LinuxContext; they share their RunTimes.
  LinuxContexts(unsigned vcpus, vmm::GuestMemory& memory, const guest_linux::Kernel& kernel,
                const LinuxContextParts& parts = {}) {
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
      contexts_.emplace_back(memory, kernel, run_times_, parts);
    }
  }

  LinuxContext& operator[](std::uint32_t vcpu) { return contexts_[vcpu]; }
  unsigned size() const { return static_cast<unsigned>(contexts_.size()); }
  auto begin() { return contexts_.begin(); }
  auto end() { return contexts_.end(); }

 private:
  RunTimes run_times_;
  std::deque<LinuxContext> contexts_;
};

}  // namespace ringside::providers
