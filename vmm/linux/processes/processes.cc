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
#include "vmm/linux/load_numbers.h"

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
constexpr std::size_t kMostEndedThreads = 1 << 12;  // before one that has not ended
constexpr std::size_t kMaxMappings = 1 << 16;       // vm.max_map_count is 65530
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
  layout.file_mount = offset_of(types, "file", {"f_path", "mnt"});
  layout.threads = TaskListLayout::from(types);
  const auto range = node_layout(types, "maple_range_64");
  const auto arange = node_layout(types, "maple_arange_64");
  if (!all || !range || !arange) return std::nullopt;
  layout.range = *range;
  layout.arange = *arange;
  return layout;
}

std::optional<GuestVirt> memory_of_process(const GuestReader& kernel, const ProcessLayout& layout,
                                           GuestVirt leader) {
  std::uint64_t mm = 0;
  const auto look = [&](GuestVirt task) {
    mm = load_field<std::uint64_t>(kernel, task, layout.task_mm).value_or(0);
    return mm == 0;
  };
  if (look(leader) && layout.threads) {
    (void)walk_threads(kernel, *layout.threads, leader, kMostEndedThreads, look);
  }
  return mm != 0 ? std::optional(GuestVirt(mm)) : std::nullopt;
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
  const auto mm = memory_of_process(kernel, layout, *task);
  if (!mm) return std::nullopt;
  const auto table = load_field<std::uint64_t>(kernel, *mm, layout.mm_pgd);
  if (!table) return std::nullopt;
  return ProcessAddressSpace{*task, *mm, GuestVirt(*table)};
}

namespace {

/// A copy of a node of the tree.
class Node {
 public:
  /// Empty when `entry` points to no node, or it cannot be read.
  static std::optional<Node> read(const GuestReader& kernel, const ProcessLayout& layout,
                                  std::uint64_t entry) {
    const NodeType type{static_cast<unsigned>(entry >> 3 & 15)};
    if (type < NodeType::Leaf64 || type > NodeType::Arange64) return std::nullopt;
    Node node(type, type == NodeType::Arange64 ? layout.arange : layout.range);
    if (!kernel.read(GuestVirt(round_down(entry, kNodeBytes)), node.bytes_)) return std::nullopt;
    return node;
  }
  bool is_leaf() const { return type_ == NodeType::Leaf64; }
  std::uint32_t slots() const { return shape_->slot_count; }
  std::uint64_t slot(std::uint32_t n) const { return word(shape_->slots, n); }
  /// The last address of slot n, in a node that reaches up to `high`.
  std::uint64_t last(std::uint32_t n, std::uint64_t high) const {
    if (n >= shape_->pivot_count) return high;
    const std::uint64_t pivot = word(shape_->pivots, n);
    return pivot != 0 || n == 0 ? std::min(high, pivot) : high;
  }

 private:
  Node(NodeType type, const ProcessLayout::Node& shape) : type_(type), shape_(&shape) {}
  std::uint64_t word(std::uint32_t from, std::uint32_t n) const {
    return load_at<std::uint64_t>(bytes_, from + n * std::size_t{8});
  }

  NodeType type_;
  const ProcessLayout::Node* shape_;
  std::array<std::byte, kNodeBytes> bytes_;
};

/// The mappings of a struct mm_struct.
class Mappings {
 public:
  Mappings(const GuestReader& kernel, const ProcessLayout& layout, GuestVirt mm)
      : kernel_(kernel), layout_(layout), mm_(mm) {
    const auto root = load_field<std::uint64_t>(kernel, mm, layout.mm_root);
    if (root && *root >= kPageSize && (*root & 3) == 2) root_ = *root;  // a node
  }

  std::vector<FileMapping> list() {
    if (root_ != 0) visit(root_, 0, UINT64_MAX, 0);
    return std::move(found_);
  }

  std::optional<FileMapping> find(GuestVirt address) const {
    std::uint64_t entry = root_, low = 0, high = UINT64_MAX;
    for (unsigned depth = 0; entry != 0 && depth <= kMaxDepth; ++depth) {
      const auto node = Node::read(kernel_, layout_, entry);
      if (!node) return std::nullopt;
      std::uint32_t n = 0;
      for (; n < node->slots(); ++n) {
        const std::uint64_t last = node->last(n, high);
        if (last < low) return std::nullopt;
        if (address.raw() <= last) {
          high = last;
          break;
        }
        if (last >= high) return std::nullopt;
        low = last + 1;
      }
      if (n == node->slots()) return std::nullopt;
      entry = node->slot(n);
      if (!node->is_leaf()) continue;
      const auto mapping = read_area(entry, low, high);
      const bool covers = mapping && mapping->begin <= address && address < mapping->end;
      return covers ? mapping : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  /// The node that `entry` points to, which covers [low, high].
  void visit(std::uint64_t entry, std::uint64_t low, std::uint64_t high, unsigned depth) {
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) return;
    const auto node = Node::read(kernel_, layout_, entry);
    if (!node) return;
    for (std::uint32_t n = 0; n < node->slots(); ++n) {
      const std::uint64_t last = node->last(n, high);
      if (last < low) return;  // torn: ranges only go up
      if (!node->is_leaf()) {
        visit(node->slot(n), low, last, depth + 1);
      } else if (const auto mapping = read_area(node->slot(n), low, last)) {
        found_.push_back(*mapping);
      }
      if (last >= high || found_.size() >= kMaxMappings) return;
      low = last + 1;
    }
  }

  std::optional<FileMapping> read_area(std::uint64_t pointer, std::uint64_t low,
                                       std::uint64_t last) const {
    // Nothing there, or the tree's own mark.
    if (pointer < kPageSize || (pointer & 3) != 0) return std::nullopt;
    const GuestVirt area(pointer);
    const auto numbers = load_numbers<4>(kernel_, area,
                                         {{{layout_.area_begin, 8},
                                           {layout_.area_end, 8},
                                           {layout_.area_offset, 8},
                                           {layout_.area_file, 8}}});
    if (!numbers) return std::nullopt;
    const auto [begin, end, offset, file] = *numbers;
    // A mapping that was freed and is used for another one lies outside the tree's range for it.
    if (begin < low || begin >= end || end - 1 > last || end > kUserEnd) return std::nullopt;
    if (file == 0 && begin != vdso()) return std::nullopt;
    return FileMapping{GuestVirt(begin), GuestVirt(end), offset * kPageSize, GuestVirt(file)};
  }

  /// Where the vdso begins; nothing begins at UINT64_MAX.
  std::uint64_t vdso() const {
    if (vdso_) return *vdso_;
    const auto at =
        layout_.mm_vdso ? load_field<std::uint64_t>(kernel_, mm_, *layout_.mm_vdso).value_or(0) : 0;
    vdso_ = at != 0 ? at : UINT64_MAX;
    return *vdso_;
  }

  const GuestReader& kernel_;
  const ProcessLayout& layout_;
  const GuestVirt mm_;
  std::uint64_t root_ = 0;
  mutable std::optional<std::uint64_t> vdso_;  // read when an area without a file asks
  std::vector<FileMapping> found_;
  unsigned nodes_ = 0;
};

}  // namespace

std::vector<FileMapping> list_file_mappings(const GuestReader& kernel, const ProcessLayout& layout,
                                            GuestVirt mm) {
  return Mappings(kernel, layout, mm).list();
}

std::optional<FileMapping> find_file_mapping(const GuestReader& kernel, const ProcessLayout& layout,
                                             GuestVirt mm, GuestVirt address) {
  return Mappings(kernel, layout, mm).find(address);
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

std::optional<FilePathPlace> file_path_place(const GuestReader& kernel, const ProcessLayout& layout,
                                             GuestVirt file) {
  if (file.raw() == 0 || !layout.file_mount) return std::nullopt;
  const auto dentry = load_field<std::uint64_t>(kernel, file, layout.file_dentry),
             mount = load_field<std::uint64_t>(kernel, file, *layout.file_mount);
  if (!dentry || !mount) return std::nullopt;
  return FilePathPlace{GuestVirt(*dentry), GuestVirt(*mount)};
}

std::string file_path(const GuestReader& kernel, const LinuxPaths& paths,
                      const FilePathPlace& place) {
  constexpr std::size_t kLongestPath = 4096;  // PATH_MAX, with its end
  std::string path(kLongestPath, '\0');
  const auto length = paths.path(kernel, place.dentry, place.mount, path);
  path.resize(length.value_or(0));
  return path.starts_with('/') ? path : std::string();
}

std::string file_path(const GuestReader& kernel, const ProcessLayout& layout,
                      const LinuxPaths& paths, GuestVirt file) {
  const auto place = file_path_place(kernel, layout, file);
  return place ? file_path(kernel, paths, *place) : std::string();
}

}  // namespace ringside::guest_linux
