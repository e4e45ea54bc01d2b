#include "vmm/linux/processes/task_list.h"

#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

std::optional<TaskListLayout> TaskListLayout::from(const TypeGraph& types) {
  const auto tasks = offset_of(types, "task_struct", {"tasks"}),
             signal = offset_of(types, "task_struct", {"signal"}),
             node = offset_of(types, "task_struct", {"thread_node"}),
             head = offset_of(types, "signal_struct", {"thread_head"});
  if (!tasks || !signal || !node || !head) return std::nullopt;
  return TaskListLayout{*tasks, *signal, *node, *head};
}

ListEnd walk_processes(const GuestReader& kernel, std::uint32_t task_tasks, GuestVirt init_task,
                       std::size_t most, const ListVisitor& visit) {
  return walk_list(kernel, init_task.wrapping_add(task_tasks), most,
                   [&](GuestVirt node) { return visit(node.wrapping_sub(task_tasks)); });
}

ListEnd walk_threads(const GuestReader& kernel, const TaskListLayout& layout, GuestVirt leader,
                     std::size_t most, const ListVisitor& visit) {
  const auto signal = load_field<std::uint64_t>(kernel, leader, layout.task_signal);
  if (!signal || *signal == 0) return signal ? ListEnd::Whole : ListEnd::Unreadable;
  return walk_list(
      kernel, GuestVirt(*signal).wrapping_add(layout.signal_thread_head), most,
      [&](GuestVirt node) { return visit(node.wrapping_sub(layout.task_thread_node)); });
}

}  // namespace ringside::guest_linux
