#include "vmm/linux/processes/reverse_map.h"

#include <algorithm>

#include "vmm/arch/arch.h"
#include "vmm/linux/load_numbers.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostUses = 1 << 18;
constexpr std::uint64_t kIsWriteLocked = 1;  // RWSEM_WRITER_LOCKED

}  // namespace

std::optional<ReverseMap> ReverseMap::from(const TypeGraph& types) {
  ReverseMap made;
  const auto mapping = offset_of(types, "inode", {"i_mapping"}),
             tree = offset_of(types, "address_space", {"i_mmap", "rb_root", "rb_node"}),
             lock = offset_of(types, "address_space", {"i_mmap_rwsem", "count"}),
             node = offset_of(types, "vm_area_struct", {"shared", "rb"}),
             last = offset_of(types, "vm_area_struct", {"shared", "rb_subtree_last"}),
             left = offset_of(types, "rb_node", {"rb_left"}),
             right = offset_of(types, "rb_node", {"rb_right"});
  if (!mapping || !tree || !lock || !node || !last || !left || !right) return std::nullopt;
  made.inode_mapping_ = *mapping;
  made.mapping_tree_ = *tree;
  made.mapping_lock_ = *lock;
  made.area_node_ = *node;
  made.area_[0] = {*node + *left, 8};
  made.area_[1] = {*node + *right, 8};
  made.area_[2] = {*last, 8};
  std::size_t next = 3;
  for (const auto* name : {"vm_start", "vm_end", "vm_pgoff", "vm_mm", "anon_vma"}) {
    const auto at = offset_of(types, "vm_area_struct", {name});
    if (!at) return std::nullopt;
    made.area_[next++] = {*at, 8};
  }
  return made;
}

std::optional<std::vector<FileUse>> ReverseMap::uses(const GuestReader& kernel, GuestVirt inode,
                                                     std::uint64_t first,
                                                     std::uint64_t last) const {
  const auto mapping = load_field<std::uint64_t>(kernel, inode, inode_mapping_);
  if (!mapping) return std::nullopt;
  const auto lock = load_field<std::uint64_t>(kernel, GuestVirt(*mapping), mapping_lock_),
             root = load_field<std::uint64_t>(kernel, GuestVirt(*mapping), mapping_tree_);
  if (!lock || !root || (*lock & kIsWriteLocked) != 0) return std::nullopt;
  std::vector<FileUse> found;
  std::vector<std::uint64_t> nodes;  // to be visited
  const auto visit_later = [&nodes](std::uint64_t node) {
    if (node != 0) nodes.push_back(node);
  };
  visit_later(*root);
  for (std::size_t seen = 0; !nodes.empty(); ++seen) {
    const GuestVirt area = GuestVirt(nodes.back()).wrapping_sub(area_node_);
    nodes.pop_back();
    const auto numbers = load_numbers(kernel, area, area_);
    if (!numbers || seen == kMostUses) return std::nullopt;
    const auto [left, right, last_below, begin, end, page, mm, anonymous] = *numbers;
    if (last_below < first) continue;
    visit_later(left);
    if (page > last) continue;
    visit_later(right);
    if (begin >= end || page > UINT64_MAX / arch::kPageSize) continue;
    if (page + (end - begin) / arch::kPageSize <= first) continue;
    found.push_back(
        {GuestVirt(mm), GuestVirt(begin), GuestVirt(end), page * arch::kPageSize, anonymous != 0});
  }
  return found;
}

}  // namespace ringside::guest_linux
