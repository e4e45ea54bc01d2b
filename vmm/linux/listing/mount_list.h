// The mounts of a guest, as /proc/mounts of its first process shows them.
// Source: task_struct.nsproxy->mnt_ns of process 1: its mounts are a list (mnt_list) up to 6.7 and
// a red-black tree (mounts, mnt_node) since; struct mount, vfsmount, super_block, file_system_type
// (fs/mount.h, include/linux/mount.h, fs.h); flags as fs/proc_namespace.c prints them. Options that
// only the file system's own code can print (size=, lowerdir=) are not there.
// Used by `mounts`. Hostile input: bounded; raw bytes.
#pragma once

#include <string>
#include <vector>

#include "vmm/linux/listing/listing.h"

namespace ringside::guest_linux {

struct MountRow {
  std::string device, path, type;
  std::vector<std::string> options;  // "rw", "nosuid", "relatime"...
};

/// Those that process 1 can reach from its root, in the kernel's order.
Result<Listing<MountRow>> list_mounts(const ListedGuest& guest);

}  // namespace ringside::guest_linux
