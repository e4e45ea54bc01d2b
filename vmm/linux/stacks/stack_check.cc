// In this file, top to bottom: offsets, all tasks, the stacks of tasks, vCPUs.
#include "vmm/linux/stacks/stack_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "vmm/arch/arch.h"
#include "vmm/base/printable.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/kernel_memory.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/stacks/stack_walk.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostTasks = 1 << 17;
constexpr std::size_t kMostCodeUsers = 1024;

tl::unexpected<Error> unclear(std::string what) {
  return fail(ErrorCode::Invalid, std::move(what));
}

tl::unexpected<Error> unreadable(GuestVirt structure) {
  return unclear(fmt::format("the guest's memory at {:#x} cannot be read", structure.raw()));
}

}  // namespace

Result<StackCheckLayout> StackCheckLayout::from(const TypeGraph& types) {
  StackCheckLayout layout{};
  std::string missing;
  const auto take_number = [&](NumberMember& place, std::string_view member) {
    const auto found = number_of(types, "task_struct", {member});
    if (!found) missing = fmt::format("task_struct.{}", member);
    place = found.value_or(NumberMember{});
  };
  const auto take = [&](std::uint32_t& offset, std::string_view structure,
                        std::initializer_list<std::string_view> path) {
    const auto found = offset_of(types, structure, path);
    if (!found) missing = fmt::format("{}.{}", structure, fmt::join(path, "."));
    offset = found.value_or(0);
  };
  take(layout.list.task_tasks, "task_struct", {"tasks"});
  take(layout.list.task_signal, "task_struct", {"signal"});
  take(layout.list.task_thread_node, "task_struct", {"thread_node"});
  take(layout.task_stack, "task_struct", {"stack"});
  take(layout.task_sp, "task_struct", {"thread", "sp"});
  take(layout.task_pid, "task_struct", {"pid"});
  take(layout.task_comm, "task_struct", {"comm"});
  take_number(layout.task_on_cpu, "on_cpu");
  take_number(layout.task_on_rq, "on_rq");
  take(layout.list.signal_thread_head, "signal_struct", {"thread_head"});
  take(layout.rq_running, "rq", {"nr_running"});
  take(layout.rq_current, "rq", {"curr"});
  take(layout.rq_idle, "rq", {"idle"});
  take(layout.frame_bp, "inactive_task_frame", {"bp"});
  take(layout.frame_return, "inactive_task_frame", {"ret_addr"});
  if (missing.empty()) return layout;
  return fail(ErrorCode::Unsupported,
              fmt::format("the stacks of the guest's tasks cannot be looked at: its types lack {} "
                          "(--types FILE takes them from a file)",
                          missing));
}

Result<StackCheck> StackCheck::prepare(const Kernel& kernel) {
  StackCheck made;
  made.layout_ = TRY(StackCheckLayout::from(kernel.types()));
  const Symbol* first = kernel.symbols().find("init_task", "vmlinux");
  const Symbol* queues = kernel.symbols().find("runqueues", "vmlinux");
  if (first == nullptr || queues == nullptr) {
    return fail(
        ErrorCode::Unsupported,
        "the stacks of the guest's tasks cannot be looked at: it has no symbol init_task or "
        "runqueues");
  }
  made.online_.emplace(kernel);
  made.orc_ = OrcLayout::from(kernel.types());
  made.stack_bytes_ = kernel_stack_bytes(kernel.symbols());
  made.init_task_ = first->address;
  made.run_queues_ = queues->address.raw();
  return made;
}

/// One look at one moment.
class StackCheck::Look {
 public:
  Look(StackCheck& of, vmm::PausedMachine& machine, const GuestReader& reader, Kernel& kernel,
       std::span<const Kernel::AddressRange> ranges)
      : of_(of),
        layout_(of.layout_),
        machine_(machine),
        reader_(reader),
        kernel_(kernel),
        ranges_(ranges) {}

  /// Of one range.
  Result<std::vector<CodeUser>> run() {
    TRY(list_all());
    std::vector<CodeUser> found;
    for (const Task& task : tasks_) {
      const Places inside = TRY(look_at(task));
      if (!inside.empty()) found.push_back({name_of(task), inside});
      if (found.size() > kMostCodeUsers) return unclear("too many tasks may be inside");
    }
    for (unsigned vcpu = 0; vcpu < machine_.vcpu_count(); ++vcpu) {
      const Places inside = TRY(look_at_vcpu(vcpu));
      if (!inside.empty()) found.push_back({fmt::format("vCPU {}", vcpu), inside});
    }
    TRY(check_online());
    return found;
  }

  Result<std::vector<GuestVirt>> words() {
    TRY(list_all());
    std::vector<GuestVirt> found;
    const auto take = [&found](const Places& more) {
      found.insert(found.end(), more.begin(), more.end());
    };
    for (const Task& task : tasks_) {
      if (TRY(is_asleep(task))) take(TRY(words_inside(task, task.sp)));
    }
    for (unsigned vcpu = 0; vcpu < machine_.vcpu_count(); ++vcpu) take(TRY(words_of_vcpu(vcpu)));
    TRY(check_online());
    return found;
  }

 private:
  using Places = std::vector<GuestVirt>;

  Result<void> list_all() {
    TRY(read_queues());
    TRY(list_tasks());
    if (running_ > queued_) return unclear("a task that is ending is in no list");
    return {};
  }

  template <class T>
  Result<T> field(GuestVirt structure, std::uint64_t offset) const {
    const auto value = load_field<T>(reader_, structure, offset);
    if (value) return *value;
    return unreadable(structure);
  }
  Result<bool> is_set(GuestVirt structure, NumberMember flag) const {
    const auto value = load_number(reader_, structure, flag);
    if (value) return *value != 0;
    return unreadable(structure);
  }
  bool leads_inside(std::uint64_t word) const {
    const auto after =
        std::ranges::upper_bound(ranges_, GuestVirt(word), {}, &Kernel::AddressRange::begin);
    return after != ranges_.begin() && std::prev(after)->contains(GuestVirt(word));
  }

  Result<void> read_queues() {
    for (const std::uint64_t base : kernel_.percpu_bases()) {
      const GuestVirt queue(base + of_.run_queues_);
      running_ += TRY(field<std::uint32_t>(queue, layout_.rq_running));
      current_.insert(TRY(field<std::uint64_t>(queue, layout_.rq_current)));
      idle_.insert(TRY(field<std::uint64_t>(queue, layout_.rq_idle)));
    }
    return {};
  }

  Result<void> list_tasks() {
    TRY(add(of_.init_task_));
    Result<void> added;
    const auto end = walk_processes(reader_, layout_.list.task_tasks, of_.init_task_, kMostTasks,
                                    [&](GuestVirt leader) {
                                      added = add_threads(leader);
                                      return added.has_value();
                                    });
    TRY(added);
    TRY(check_whole(end));
    for (const std::uint64_t idle : idle_) {
      if (idle != 0 && GuestVirt(idle) != of_.init_task_) TRY(add(GuestVirt(idle)));
    }
    return {};
  }

  Result<void> add_threads(GuestVirt leader) {
    Result<void> added;
    const std::size_t before = tasks_.size();
    const auto end = walk_threads(reader_, layout_.list, leader, kMostTasks, [&](GuestVirt task) {
      added = add(task);
      return added.has_value();
    });
    TRY(added);
    TRY(check_whole(end));
    return tasks_.size() == before ? add(leader) : Result<void>();
  }

  static Result<void> check_whole(ListEnd end) {
    if (end == ListEnd::Whole) return {};
    return unclear(end == ListEnd::Endless ? "the guest's list of tasks has no end"
                                           : "the guest's list of tasks cannot be read");
  }

  Result<void> add(GuestVirt address) {
    if (tasks_.size() == kMostTasks) return unclear("the guest's list of tasks has no end");
    Task task{.address = address};
    task.stack = TRY(field<std::uint64_t>(address, layout_.task_stack));
    task.sp = TRY(field<std::uint64_t>(address, layout_.task_sp));
    task.on_cpu = TRY(is_set(address, layout_.task_on_cpu));
    task.queued = TRY(is_set(address, layout_.task_on_rq));
    task.current = current_.contains(address.raw());
    task.idle = idle_.contains(address.raw());
    if (task.queued && !task.idle) ++queued_;
    tasks_.push_back(task);
    return {};
  }

  std::string name_of(const Task& task) const {
    std::array<char, kCommBytes> comm{};
    const auto pid = load_field<std::int32_t>(reader_, task.address, layout_.task_pid);
    (void)reader_.read(task.address.wrapping_add(layout_.task_comm),
                       std::as_writable_bytes(std::span(comm)));
    const std::string_view name(comm.data(), comm.size());
    return fmt::format("task {} ({})", pid.value_or(0), printable(name.substr(0, name.find('\0'))));
  }

  /// The words of the stack from `sp` up that lead inside.
  Result<Places> words_inside(const Task& task, std::uint64_t sp) const {
    std::vector<std::uint64_t> words((task.stack + of_.stack_bytes_ - sp) / 8);
    if (!reader_.read(GuestVirt(sp), std::as_writable_bytes(std::span(words)))) {
      return unclear(fmt::format("the stack of {} cannot be read", name_of(task)));
    }
    Places inside;
    for (const std::uint64_t word : words) {
      if (leads_inside(word)) inside.emplace_back(word);
    }
    return inside;
  }
  bool is_on_stack(const Task& task, std::uint64_t sp) const {
    return task.stack != 0 && sp % 8 == 0 && sp >= task.stack && sp - task.stack < of_.stack_bytes_;
  }

  const StackTables& tables() {
    if (!of_.tables_) of_.tables_ = load_stack_tables(reader_, kernel_, of_.orc_);
    return *of_.tables_;
  }

  /// Whether its stack tells where it goes on.
  Result<bool> is_asleep(const Task& task) const {
    if (task.stack == 0) return false;  // it has ended, and waits for its parent
    if (task.current) return false;     // its vCPU tells
    // Also the idle task: the next one is current already, and no vCPU is on its stack yet.
    if (task.on_cpu) return unclear("a vCPU changes from a task to the next");
    if (is_on_stack(task, task.sp)) return true;
    return unclear(fmt::format("{} does not stand on its stack", name_of(task)));
  }

  /// By the unwinder; where it cannot tell, all that may be.
  Result<Places> look_at(const Task& task) {
    if (!TRY(is_asleep(task))) return Places();
    Places inside = TRY(words_inside(task, task.sp));
    if (inside.empty()) return inside;
    Registers asleep;
    const GuestVirt frame(task.sp);
    asleep.*arch::kStackPointer = frame.wrapping_add(layout_.frame_return).raw();
    asleep.*arch::kFramePointer =
        load<std::uint64_t>(reader_, frame.wrapping_add(layout_.frame_bp)).value_or(0);
    const auto comes_through = passes(tables(), reader_, asleep, WalkStart::Caller, ranges_[0]);
    return comes_through.value_or(true) ? inside : Places();
  }

  /// Of its task's stack, and where it stands; empty when it is on no task's stack.
  Result<std::optional<Places>> words_at(const Registers& registers) {
    if (!arch::pages(registers) || !arch::in_long_mode(registers)) {
      ++without_paging_;
      return Places();
    }
    if (registers.in_user_mode()) return Places();
    if (stays_in_crashed_kernel(kernel_, machine_.memory(), registers)) return Places();
    for (const Task& task : tasks_) {
      if (!task.current || !is_on_stack(task, registers.*arch::kStackPointer)) continue;
      Places inside = TRY(words_inside(task, registers.*arch::kStackPointer));
      if (leads_inside(registers.*arch::kProgramCounter))
        inside.emplace_back(registers.*arch::kProgramCounter);
      return inside;
    }
    return std::nullopt;
  }

  Result<Places> look_at_vcpu(unsigned vcpu) {
    const Registers registers = TRY(machine_.registers(vcpu));
    const std::optional<Places> inside = TRY(words_at(registers));
    if (inside && inside->empty()) return *inside;
    // On a stack of interrupts, which leads to others.
    const auto comes_through = passes(tables(), reader_, registers, WalkStart::Here, ranges_[0]);
    if (!comes_through)
      return unclear(fmt::format("the stack of vCPU {} cannot be followed", vcpu));
    if (!*comes_through) return Places();
    if (!inside) return unclear(fmt::format("vCPU {} is inside", vcpu));
    return *inside;
  }

  /// A vCPU without paging has not been started, or handles a system management interrupt, after
  /// which it goes on where nobody has looked.
  Result<void> check_online() {
    if (without_paging_ == 0) return {};
    const auto cpus = static_cast<std::uint32_t>(kernel_.percpu_bases().size());
    const auto online = of_.online_->count(reader_, cpus);
    if (online.value_or(0) + without_paging_ <= machine_.vcpu_count()) return {};
    return unclear("a vCPU handles a system management interrupt");
  }

  Result<Places> words_of_vcpu(unsigned vcpu) {
    std::optional<Places> inside = TRY(words_at(TRY(machine_.registers(vcpu))));
    if (inside) return std::move(*inside);
    return unclear(fmt::format("vCPU {} is on no task's stack", vcpu));
  }

  StackCheck& of_;
  const StackCheckLayout& layout_;
  vmm::PausedMachine& machine_;
  const GuestReader& reader_;
  Kernel& kernel_;
  const std::span<const Kernel::AddressRange> ranges_;
  std::vector<Task> tasks_;
  std::unordered_set<std::uint64_t> current_, idle_;
  std::uint64_t running_ = 0, queued_ = 0;
  std::uint32_t without_paging_ = 0;  // vCPUs
};

Result<std::vector<CodeUser>> StackCheck::find(vmm::PausedMachine& machine,
                                               const GuestReader& reader, Kernel& kernel,
                                               Kernel::AddressRange code) {
  return Look(*this, machine, reader, kernel, std::span(&code, 1)).run();
}

Result<std::vector<GuestVirt>> StackCheck::words_in(vmm::PausedMachine& machine,
                                                    const GuestReader& reader, Kernel& kernel,
                                                    std::span<const Kernel::AddressRange> ranges) {
  return Look(*this, machine, reader, kernel, ranges).words();
}

}  // namespace ringside::guest_linux
