// Tasks of the guest as its kernel knows them: all processes, by init_task.tasks, and each one's
// threads, by signal_struct.thread_head (struct task_struct, include/linux/sched.h; the same since
// 3.14). Of a process also its page table, and the files that it has mapped, with names. Layouts
// come from the kernel's own types: task_struct, mm_struct, file, dentry, vm_area_struct, and the
// maple tree of a process's mappings (include/linux/maple_tree.h, since 6.1).
// Does not: look into the process's own memory (user_elf.h).
// Hostile input, and the guest runs meanwhile: walks are bounded, ranges can only get narrower, and
// entries that contradict their node are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/paths.h"

namespace ringside::guest_linux {

/// Byte offsets in the kernel's structures, for walks of the list of tasks.
struct TaskListLayout {
  std::uint32_t task_tasks = 0, task_signal = 0, task_thread_node = 0, signal_thread_head = 0;

  /// Empty when the kernel's types do not describe all of it.
  static std::optional<TaskListLayout> from(const TypeGraph& types);
};

/// The first thread of each process, kernel threads included. Not init_task, the idle task of the
/// first CPU: the list begins there.
ListEnd walk_processes(const GuestReader& kernel, std::uint32_t task_tasks, GuestVirt init_task,
                       std::size_t most, const ListVisitor& visit);

/// All threads of the process, its first one included. None for init_task, which is in no such
/// list, and for one that has ended.
ListEnd walk_threads(const GuestReader& kernel, const TaskListLayout& layout, GuestVirt leader,
                     std::size_t most, const ListVisitor& visit);

/// Byte offsets in the kernel's structures.
struct ProcessLayout {
  std::uint32_t task_tasks, task_tgid, task_mm;
  std::uint32_t mm_root, mm_pgd;         // mm_mt.ma_root, pgd
  std::optional<std::uint32_t> mm_vdso;  // context.vdso
  std::uint32_t area_begin, area_end, area_offset, area_file;
  std::uint32_t file_dentry, dentry_name, dentry_length;
  std::optional<std::uint32_t> file_mount;  // f_path.mnt
  std::optional<TaskListLayout> threads;
  struct Node {
    std::uint32_t pivots, pivot_count, slots, slot_count;
  };
  Node range, arange;  // maple_range_64 (leaves too), maple_arange_64

  /// Empty when the kernel's types do not describe all of it (before 6.1).
  static std::optional<ProcessLayout> from(const TypeGraph& types);
};

struct ProcessAddressSpace {
  GuestVirt task, mm;
  GuestVirt page_table;  // mm->pgd: a kernel address
  bool operator==(const ProcessAddressSpace&) const = default;
};

/// The struct mm_struct of a process. Its first thread may have ended before the others, and then
/// has none. Empty: it is a kernel thread, has ended, or cannot be read.
std::optional<GuestVirt> memory_of_process(const GuestReader& kernel, const ProcessLayout& layout,
                                           GuestVirt leader);

/// The memory of the process `pid` (a tgid); empty when there is none, or it has no memory (a
/// kernel thread, one that has ended). `init_task`: the symbol, where the list of tasks begins.
std::optional<ProcessAddressSpace> find_process(const GuestReader& kernel,
                                                const ProcessLayout& layout, GuestVirt init_task,
                                                std::uint64_t pid);

/// A mapping of a file, or of the vdso, in the lower half of the address space.
struct FileMapping {
  GuestVirt begin, end;
  std::uint64_t offset = 0;  // bytes into the file
  GuestVirt file;            // struct file; 0: the vdso
};

/// The file mappings of a struct mm_struct, in the order of addresses, as many as can be read.
std::vector<FileMapping> list_file_mappings(const GuestReader& kernel, const ProcessLayout& layout,
                                            GuestVirt mm);

/// The one of them that has this address. Empty: no file's, no vdso, or it cannot be read. Fire
/// context: yes.
std::optional<FileMapping> find_file_mapping(const GuestReader& kernel, const ProcessLayout& layout,
                                             GuestVirt mm, GuestVirt address);

/// The last part of the path of a struct file, "[vdso]" for the vdso. Bytes that do not print
/// become '?'. Empty when it cannot be read.
std::string file_name(const GuestReader& kernel, const ProcessLayout& layout, GuestVirt file);

/// Where the kernel has the path of a struct file.
struct FilePathPlace {
  GuestVirt dentry, mount;  // struct dentry, struct vfsmount
};
/// Empty when it cannot be read. Fire context: yes.
std::optional<FilePathPlace> file_path_place(const GuestReader& kernel, const ProcessLayout& layout,
                                             GuestVirt file);
/// The whole path, as the file's process names it; with " (deleted)" behind it where the file was
/// unlinked. Empty when it cannot be read, or has more than 4,095 bytes.
std::string file_path(const GuestReader& kernel, const LinuxPaths& paths,
                      const FilePathPlace& place);
std::string file_path(const GuestReader& kernel, const ProcessLayout& layout,
                      const LinuxPaths& paths, GuestVirt file);

}  // namespace ringside::guest_linux
