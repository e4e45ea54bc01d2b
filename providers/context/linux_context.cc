// In this file, top to bottom: the firing moment, identity, arguments. Stacks and what is
// done to processes: linux_stacks.cc.
#include "providers/context/linux_context.h"

#include <algorithm>
#include <cstring>

#include "providers/context/registers.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/processes/user_unwind.h"

namespace ringside::providers {
namespace {

constexpr std::size_t kDeepestStack = 256;  // frames that are counted

std::unique_ptr<guest_linux::UserUnwinder> make_unwinder(const vmm::GuestMemory& memory,
                                                         const guest_linux::Kernel& kernel,
                                                         guest_linux::HostUnwindTables* host) {
  const auto layout = guest_linux::UserUnwindLayout::from(kernel.types(), kernel.symbols());
  return layout ? std::make_unique<guest_linux::UserUnwinder>(memory, *layout, host) : nullptr;
}

}  // namespace

GuestVirt first_task(const guest_linux::Kernel& kernel) {
  const guest_linux::Symbol* symbol = kernel.symbols().find("init_task", "vmlinux");
  return symbol != nullptr ? symbol->address : GuestVirt(0);
}

LinuxContext::LinuxContext(vmm::GuestMemory& memory, const guest_linux::Kernel& kernel,
                           RunTimes& run_times, const LinuxContextParts& parts)
    : memory_(memory),
      kernel_(kernel),
      parts_(parts),
      layout_(kernel.layout()),
      paths_(kernel.types()),
      packets_(kernel.types(), kernel.symbols()),
      locks_(kernel.types()),
      kernel_table_(kernel.table()),
      process_table_(kernel_table_),
      saved_registers_(guest_linux::find_saved_registers(kernel.symbols())),
      kernel_reader_(memory, kernel_table_, guest_linux::find_linear_map(memory, kernel)),
      process_reader_(memory, kernel_table_),
      thread_clock_(kernel, kernel_reader_, run_times),
      unwinder_(make_unwinder(memory, kernel, parts.host_tables)) {}

LinuxContext::~LinuxContext() = default;

void LinuxContext::begin(const Registers& registers, GuestVirt percpu_base,
                         const std::optional<vmm::TrappedTask>& task,
                         const std::optional<TrapMoment>& when) {
  own_registers_ = registers;
  begin_moment(own_registers_, percpu_base, task);
  when_ = when;
  is_over_ = false;
  kernel_reader_.forget();
  // With page-table isolation CR3 may be the user's half of the pair (bit 12 set): it maps all of
  // the process, which is what we read through it. The low bits are the PCID.
  const std::uint64_t root = arch::page_table_of(registers).root.raw();
  process_table_.root = GuestPhys(root & ~kernel_table_.encryption_mask);
  if (parts_.follows_vcpus) follow_tables();
  process_reader_.set_table(process_table_);  // forgets the last firing's translations
}

void LinuxContext::replay(const vmm::Trap& trap, std::uint64_t time) {
  begin_moment(trap.registers, trap.percpu_base, trap.task);
  when_.emplace(TrapMoment{trap.tsc, time});
  is_over_ = true;
  trap.list != nullptr ? runs_.begin(*trap.list, trap.runs) : runs_.clear();
}

void LinuxContext::begin_moment(const Registers& registers, GuestVirt percpu_base,
                                const std::optional<vmm::TrappedTask>& task) {
  registers_ = &registers;
  percpu_base_ = percpu_base;
  anywhere_ = false;
  keeps_still_ = false;
  task_ = task;
  current_ = task ? std::optional(task->address) : std::nullopt;
}

void LinuxContext::follow_tables() {
  arch::PageTable table = kernel_table_;
  table.levels = arch::page_table_of(*registers_).levels;
  process_table_.levels = table.levels;
  // In user mode it may be the user's half, but then the kernel has long had its own table.
  const bool has_own = layout_.task_comm.has_value();
  if (!registers_->in_user_mode() || !has_own) table.root = process_table_.root;
  // Without paging there are no tables: a root that is nowhere makes every read a fault.
  if (!arch::pages(*registers_)) table.root = arch::kNoRoot;
  kernel_reader_.set_table(table);
}

std::optional<TaskMoment> LinuxContext::task_moment() const {
  const auto task = current();
  const auto tid = known_variable(dif::ContextVariable::Tid);
  if (!task || !tid) return std::nullopt;
  return TaskMoment{task->raw(), static_cast<std::int32_t>(*tid), registers_->*arch::kStackPointer};
}

std::optional<std::uint32_t> LinuxContext::system_call_number() const {
  const auto number = binding_.plan->system_call_number.value(moment());
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number) & ~kX32NumberBit;
}

Result<GuestVirt, Fault> LinuxContext::current() const {
  if (!current_) current_ = TRY(kernel_.current_task(kernel(), percpu_base_));
  return *current_;
}

template <class T>
Result<std::uint64_t, Fault> LinuxContext::task_field(std::optional<std::uint32_t> offset) const {
  const GuestVirt task = TRY(current());
  return static_cast<std::uint64_t>(TRY(field<T>(task, offset)));
}

Result<std::uint64_t, Fault> LinuxContext::credential(std::optional<std::uint32_t> offset) const {
  const std::uint64_t cred = TRY(task_field<std::uint64_t>(layout_.task_cred));
  return std::uint64_t{TRY(field<std::uint32_t>(GuestVirt(cred), offset))};
}

Result<std::uint64_t, Fault> LinuxContext::parent_pid() const {
  const std::uint64_t parent = TRY(task_field<std::uint64_t>(layout_.task_real_parent));
  const auto pid = TRY(field<std::int32_t>(GuestVirt(parent), layout_.task_tgid));
  return static_cast<std::uint64_t>(std::int64_t{pid});
}

Result<std::uint64_t, Fault> LinuxContext::variable(dif::ContextVariable which) const {
  auto value = known_variable(which);
  if (value || !parts_.follows_vcpus) return value;
  return 0;
}

Result<std::uint64_t, Fault> LinuxContext::known_variable(dif::ContextVariable which) const {
  using dif::ContextVariable;
  const vmm::TrappedTask::Ids* const ids = task_ && task_->ids ? &*task_->ids : nullptr;
  switch (which) {
    case ContextVariable::Curthread: return TRY(current()).raw();
    case ContextVariable::Pid:
      if (ids != nullptr) return static_cast<std::uint64_t>(std::int64_t{ids->tgid});
      return task_field<std::int32_t>(layout_.task_tgid);
    case ContextVariable::Tid:
      if (ids != nullptr) return static_cast<std::uint64_t>(std::int64_t{ids->pid});
      return task_field<std::int32_t>(layout_.task_pid);
    case ContextVariable::Ppid: return parent_pid();
    case ContextVariable::Uid: return credential(layout_.cred_uid);
    case ContextVariable::Gid: return credential(layout_.cred_gid);
    case ContextVariable::Errno: return error_number();
    case ContextVariable::Caller: return caller();
    case ContextVariable::Vtimestamp:
      return thread_clock_.ran(kernel(), percpu_base_, TRY(current()), when_);
    case ContextVariable::Born:
      if (ids != nullptr) return ids->start_time;
      return task_field<std::uint64_t>(layout_.task_start_time);
    case ContextVariable::Ipl: return 0;  // Linux has no interrupt priority levels
    case ContextVariable::Ucaller: return user_caller();
    case ContextVariable::Stackdepth: {
      std::array<std::uint64_t, kDeepestStack> frames;
      return kernel_stack(frames);
    }
    case ContextVariable::Ustackdepth: {
      std::array<std::uint64_t, kDeepestStack> frames;
      return user_stack(frames);
    }
  }
  return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
}

Result<std::size_t, Fault> LinuxContext::execname(std::span<char> out) const {
  using Comm = std::array<char, guest_linux::kCommBytes>;
  if (parts_.follows_vcpus && !known_variable(dif::ContextVariable::Tid)) return 0;
  const GuestVirt task = TRY(current());
  const Comm comm = task_ ? task_->comm : TRY(field<Comm>(task, layout_.task_comm));
  const auto end = std::find(comm.begin(), comm.end(), '\0');
  const std::size_t length = std::min(static_cast<std::size_t>(end - comm.begin()), out.size());
  std::memcpy(out.data(), comm.data(), length);
  return length;
}

Result<std::uint64_t, Fault> LinuxContext::error_number() const {
  constexpr std::uint64_t kMaxErrno = 4095;
  if (anywhere_) return 0;
  const std::uint64_t negated = 0 - TRY(binding_.plan->system_call_result.value(moment()));
  return negated <= kMaxErrno ? negated : 0;
}

Result<std::uint64_t, Fault> LinuxContext::stack_word(unsigned index) const {
  const std::uint64_t top = registers_->*arch::kStackPointer;
  const auto at = GuestVirt(top).checked_add(std::uint64_t{index} * arch::kStackWord);
  if (!at) return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, top});
  return load<std::uint64_t>(kernel(), *at);
}

Result<std::uint64_t, Fault> LinuxContext::machine_register(dif::RegisterSet set,
                                                            std::uint64_t n) const {
  if (set == dif::RegisterSet::AtProbe) return register_for_d(*registers_, n);
  return register_for_d(TRY(user_registers()), n);
}

std::uint64_t LinuxContext::address_space() const {
  // With page-table isolation, both tables of a process are one space: they lie side by side.
  return arch::page_table_of(*registers_).root.raw() >> (arch::kPageShift + 1);
}

Result<std::uint64_t, Fault> LinuxContext::argument(unsigned n) const {
  if (anywhere_) return 0;
  return binding_.plan->value(n, moment());
}

}  // namespace ringside::providers
