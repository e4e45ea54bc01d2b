// All mappings of a file, in all processes, as the kernel finds them itself: by the file and not by
// the processes (its "reverse mapping"). Each costs one read; going through the processes' own
// mappings costs tens of reads for each process.
//
//   struct inode -> i_mapping -> i_mmap, a tree of struct vm_area_struct, by its shared.rb
//
// It is an interval tree (include/linux/interval_tree_generic.h, mm/interval_tree.c; so since 3.7):
// in order of vm_pgoff, and each node also knows the last page of the file that is mapped below it
// (shared.rb_subtree_last). Layouts come from the kernel's types. Who changes the tree holds
// i_mmap_rwsem for writing: bit 0 of its count (kernel/locking/rwsem.c, since 5.3).
// Hostile input, and the guest may run meanwhile: the walk is bounded, and what it finds may be
// wrong then.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

/// A mapping of a file in a process.
struct FileUse {
  GuestVirt mm;  // struct mm_struct
  GuestVirt begin, end;
  std::uint64_t offset = 0;  // bytes into the file
  bool has_copies = false;   // the process may have changed pages, so has its own copies of them
  bool operator==(const FileUse&) const = default;
};

class ReverseMap {
 public:
  /// Empty when the kernel's types do not describe all of it (a real-time kernel has another lock).
  static std::optional<ReverseMap> from(const TypeGraph& types);

  /// The mappings of any of the pages [first, last] of the file, in no order. Empty: the tree is
  /// being changed, cannot be read, or has more than 262,144 mappings.
  std::optional<std::vector<FileUse>> uses(const GuestReader& kernel, GuestVirt inode,
                                           std::uint64_t first, std::uint64_t last) const;

 private:
  std::uint32_t inode_mapping_ = 0, mapping_tree_ = 0, mapping_lock_ = 0;
  std::uint32_t area_node_ = 0;  // of struct vm_area_struct: shared.rb
  // Bytes into it: left, right, last page below, begin, end, offset in pages, mm, anon_vma.
  std::array<NumberMember, 8> area_{};
};

}  // namespace ringside::guest_linux
