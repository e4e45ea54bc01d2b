// Looks a file up by its path, as a process of the guest would: from its root directory, through
// the directory entries that the kernel has in memory and the mounts on the way. By struct
// fs_struct, dentry (since 6.8 d_children and d_sib, before d_subdirs and d_child) and mount, as
// the kernel's types lay them out. Does not: follow links, or find what the kernel has not looked
// up itself. The way back, from a file to its path, is paths.h. Hostile input, and the guest runs
// meanwhile: walks are bounded. Used by UserNames.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/paths.h"

namespace ringside::guest_linux {

struct FileLookupLayout {
  std::uint32_t task_fs = 0, root_mount = 0, root_dentry = 0;  // task_struct.fs, fs_struct.root
  std::uint32_t children = 0, sibling = 0;                     // of struct dentry
  bool is_hash_list = false;                                   // of children: struct hlist_head
  std::uint32_t inode = 0;
  std::uint32_t mounts = 0, mount_sibling = 0;  // of struct mount
  PathLayout path;
  /// task_struct.thread_pid, pid.level, pid.numbers, and upid.nr: a process's number in its own
  /// namespace.
  std::uint32_t task_pid = 0, pid_level = 0, pid_numbers = 0, number_bytes = 0, number = 0;

  /// Empty where the types lack one of these.
  static std::optional<FileLookupLayout> from(const TypeGraph& types);
};

/// The struct inode of the file that the process has at this path ("/tmp/x"), `task` being its
/// struct task_struct. Empty: there is none that the kernel has in memory.
std::optional<GuestVirt> find_file(const GuestReader& kernel, const FileLookupLayout& layout,
                                   GuestVirt task, std::string_view path);

/// The number of a process in its own namespace; empty when it cannot be read.
std::optional<std::int32_t> own_number(const GuestReader& kernel, const FileLookupLayout& layout,
                                       GuestVirt task);

}  // namespace ringside::guest_linux
