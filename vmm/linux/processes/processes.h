// Processes of the guest as its kernel knows them: where a process's memory is described, which
// files it has mapped, and what those are called.
// Used by UserNames. Layouts come from the kernel's own types: task_struct, mm_struct, file,
// dentry, vm_area_struct, and the maple tree that holds its mappings since 6.1
// (include/linux/maple_tree.h). Does not: look into the process's own memory (user_elf.h). Hostile
// input, and the guest runs while it is read: walks are bounded, ranges only narrow, what does not
// fit is left out. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// Byte offsets in the kernel's structures.
struct ProcessLayout {
  std::uint32_t task_tasks, task_tgid, task_mm;
  std::uint32_t mm_root, mm_pgd;         // mm_mt.ma_root, pgd
  std::optional<std::uint32_t> mm_vdso;  // context.vdso
  std::uint32_t area_begin, area_end, area_offset, area_file;
  std::uint32_t file_dentry, dentry_name, dentry_length;
  struct Node {
    std::uint32_t pivots, pivot_count, slots, slot_count;
  };
  Node range, arange;  // maple_range_64 (leaves too), maple_arange_64

  /// Empty when the kernel's types do not describe all of it (before 6.1).
  static std::optional<ProcessLayout> from(const TypeGraph& types);
};

struct ProcessMemory {
  GuestVirt task, mm;
  GuestVirt page_table;  // mm->pgd: a kernel address
  bool operator==(const ProcessMemory&) const = default;
};

/// Of the process with this id (tgid); empty when there is none, or it has no memory (a kernel
/// thread, one that has ended).
std::optional<ProcessMemory> find_process(const GuestReader& kernel, const ProcessLayout& layout,
                                          GuestVirt init_task, std::uint64_t pid);

/// A mapping of a file, or of the vdso, in the lower half of the address space.
struct FileMapping {
  GuestVirt begin, end;
  std::uint64_t offset = 0;  // bytes into the file
  GuestVirt file;            // struct file; 0: the vdso
};

/// In the order of addresses; as many as can be read.
std::vector<FileMapping> list_file_mappings(const GuestReader& kernel, const ProcessLayout& layout,
                                            GuestVirt mm);

/// The last part of the file's path, "[vdso]" for the vdso; what is not printable becomes '?'.
/// Empty when it cannot be read.
std::string file_name(const GuestReader& kernel, const ProcessLayout& layout, GuestVirt file);

}  // namespace ringside::guest_linux
