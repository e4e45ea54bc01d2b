// In this file, top to bottom: the list of tasks, offsets, finding a process, the maple tree, names
// of files. The tree's encoding (lib/maple_tree.c, 6.1 to 6.12): a pointer to a node carries the
// node's type in bits 3 to 6, nodes are 256 bytes and aligned; slot n of a node covers what lies
// above pivot n - 1 up to pivot n, a pivot of 0 after the first ends the node, and the last slot
// reaches to the node's own end. Leaves' slots point to struct vm_area_struct.
#include "vmm/linux/processes/processes.h"

#include <algorithm>
#include <array>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/constants.h"
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

namespace {

constexpr unsigned kMaxProcesses = 1 << 16;
constexpr std::size_t kMaxMappings = 1 << 16;  // vm.max_map_count is 65530
constexpr unsigned kMaxNodes = 1 << 15;
constexpr unsigned kMaxDepth = 16;
constexpr std::uint64_t kNodeBytes = 256;
using arch::kPageSize;
constexpr std::uint64_t kUserEnd = std::uint64_t{1} << 56;  // five levels

/// enum maple_type.
enum class NodeType : unsigned { Leaf64 = 1, Range64 = 2, Arange64 = 3 };

std::optional<ProcessLayout::Node> node_layout(const TypeGraph& types, std::string_view name) {
  const auto structure = types.find(TypeKind::Struct, name);
  if (!structure) return std::nullopt;
  ProcessLayout::Node node{};
  const auto take = [&](std::string_view member, std::uint32_t& offset, std::uint32_t& count) {
    const auto found = types.find_member(*structure, member);
    if (!found) return false;
    const Type& array = types[types.resolve(found->type)];
    const std::uint64_t at = found->bit_offset / 8;
    if (array.kind != TypeKind::Array || at + std::uint64_t{array.count} * 8 > kNodeBytes) {
      return false;
    }
    offset = static_cast<std::uint32_t>(at);
    count = array.count;
    return true;
  };
  if (!take("pivot", node.pivots, node.pivot_count)) return std::nullopt;
  if (!take("slot", node.slots, node.slot_count)) return std::nullopt;
  return node;
}

}  // namespace

std::optional<ProcessLayout> ProcessLayout::from(const TypeGraph& types) {
  ProcessLayout layout{};
  bool all = true;
  const auto take = [&](std::uint32_t& offset, std::string_view structure,
                        std::initializer_list<std::string_view> path) {
    const auto found = offset_of(types, structure, path);
    all = all && found.has_value();
    offset = found.value_or(0);
  };
  take(layout.task_tasks, "task_struct", {"tasks"});
  take(layout.task_tgid, "task_struct", {"tgid"});
  take(layout.task_mm, "task_struct", {"mm"});
  take(layout.mm_root, "mm_struct", {"mm_mt", "ma_root"});
  take(layout.mm_pgd, "mm_struct", {"pgd"});
  take(layout.area_begin, "vm_area_struct", {"vm_start"});
  take(layout.area_end, "vm_area_struct", {"vm_end"});
  take(layout.area_offset, "vm_area_struct", {"vm_pgoff"});
  take(layout.area_file, "vm_area_struct", {"vm_file"});
  take(layout.file_dentry, "file", {"f_path", "dentry"});
  take(layout.dentry_name, "dentry", {"d_name", "name"});
  take(layout.dentry_length, "dentry", {"d_name", "len"});
  layout.mm_vdso = offset_of(types, "mm_struct", {"context", "vdso"});
  const auto range = node_layout(types, "maple_range_64");
  const auto arange = node_layout(types, "maple_arange_64");
  if (!all || !range || !arange) return std::nullopt;
  layout.range = *range;
  layout.arange = *arange;
  return layout;
}

std::optional<ProcessAddressSpace> find_process(const GuestReader& kernel,
                                                const ProcessLayout& layout, GuestVirt init_task,
                                                std::uint64_t pid) {
  std::optional<GuestVirt> task;
  (void)walk_processes(kernel, layout.task_tasks, init_task, kMaxProcesses, [&](GuestVirt each) {
    const auto id = load_field<std::uint32_t>(kernel, each, layout.task_tgid);
    if (id && *id == pid) task = each;
    return id && *id != pid;
  });
  if (!task) return std::nullopt;
  const auto mm = load_field<std::uint64_t>(kernel, *task, layout.task_mm);
  if (!mm || *mm == 0) return std::nullopt;
  const auto table = load_field<std::uint64_t>(kernel, GuestVirt(*mm), layout.mm_pgd);
  if (!table) return std::nullopt;
  return ProcessAddressSpace{*task, GuestVirt(*mm), GuestVirt(*table)};
}

namespace {

class MappingWalk {
 public:
  MappingWalk(const GuestReader& kernel, const ProcessLayout& layout, std::uint64_t vdso)
      : kernel_(kernel), layout_(layout), vdso_(vdso) {}

  /// The node that `entry` points to, which covers [low, high].
  void visit(std::uint64_t entry, std::uint64_t low, std::uint64_t high, unsigned depth) {
    const NodeType type{static_cast<unsigned>(entry >> 3 & 15)};
    if (type < NodeType::Leaf64 || type > NodeType::Arange64) return;
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) return;
    std::array<std::byte, kNodeBytes> node;
    if (!kernel_.read(GuestVirt(round_down(entry, kNodeBytes)), node)) return;
    const ProcessLayout::Node& shape = type == NodeType::Arange64 ? layout_.arange : layout_.range;
    for (std::uint32_t n = 0; n < shape.slot_count; ++n) {
      std::uint64_t last = high;
      if (n < shape.pivot_count) {
        const auto pivot = load_at<std::uint64_t>(node, shape.pivots + n * std::size_t{8});
        if (pivot != 0 || n == 0) last = std::min(high, pivot);
      }
      if (last < low) return;  // torn: ranges only go up
      const auto slot = load_at<std::uint64_t>(node, shape.slots + n * std::size_t{8});
      if (type == NodeType::Leaf64) {
        add(slot, low, last);
      } else {
        visit(slot, low, last, depth + 1);
      }
      if (last >= high || mappings.size() >= kMaxMappings) return;
      low = last + 1;
    }
  }

  std::vector<FileMapping> mappings;

 private:
  void add(std::uint64_t pointer, std::uint64_t low, std::uint64_t last) {
    if (pointer < kPageSize || (pointer & 3) != 0) return;  // nothing there, or the tree's own mark
    const GuestVirt area(pointer);
    const auto begin = load_field<std::uint64_t>(kernel_, area, layout_.area_begin);
    const auto end = load_field<std::uint64_t>(kernel_, area, layout_.area_end);
    const auto offset = load_field<std::uint64_t>(kernel_, area, layout_.area_offset);
    const auto file = load_field<std::uint64_t>(kernel_, area, layout_.area_file);
    if (!begin || !end || !offset || !file) return;
    // A mapping that was freed and is used for another one lies outside the tree's range for it.
    if (*begin < low || *begin >= *end || *end - 1 > last || *end > kUserEnd) return;
    if (*file == 0 && (*begin != vdso_ || vdso_ == 0)) return;
    mappings.push_back({GuestVirt(*begin), GuestVirt(*end), *offset * kPageSize, GuestVirt(*file)});
  }

  const GuestReader& kernel_;
  const ProcessLayout& layout_;
  const std::uint64_t vdso_;
  unsigned nodes_ = 0;
};

}  // namespace

std::vector<FileMapping> list_file_mappings(const GuestReader& kernel, const ProcessLayout& layout,
                                            GuestVirt mm) {
  const auto root = load_field<std::uint64_t>(kernel, mm, layout.mm_root);
  if (!root || *root < kPageSize || (*root & 3) != 2) return {};  // not a node
  std::uint64_t vdso = 0;
  if (layout.mm_vdso) vdso = load_field<std::uint64_t>(kernel, mm, *layout.mm_vdso).value_or(0);
  MappingWalk walk(kernel, layout, vdso);
  walk.visit(*root, 0, UINT64_MAX, 0);
  return std::move(walk.mappings);
}

std::string file_name(const GuestReader& kernel, const ProcessLayout& layout, GuestVirt file) {
  if (file.raw() == 0) return "[vdso]";
  const auto dentry = load_field<std::uint64_t>(kernel, file, layout.file_dentry);
  if (!dentry) return {};
  const auto text = load_field<std::uint64_t>(kernel, GuestVirt(*dentry), layout.dentry_name);
  const auto length = load_field<std::uint32_t>(kernel, GuestVirt(*dentry), layout.dentry_length);
  if (!text || !length) return {};
  std::string name(std::min<std::size_t>(*length, kMostFileName), '\0');
  if (!kernel.read(GuestVirt(*text), std::as_writable_bytes(std::span(name)))) return {};
  // A backquote would look like the end of the name in what is printed.
  std::ranges::replace_if(
      name, [](char c) { return c <= ' ' || c >= 0x7f || c == '`'; }, '?');
  return name;
}

}  // namespace ringside::guest_linux
