// Paths of files in a guest: from a dentry up to the root, through the mounts on the way, as the
// kernel's d_path() makes them (fs/d_path.c). Source: struct dentry and path
// (include/linux/dcache.h, path.h), struct mount (fs/mount.h). Used by lists of mounts and of open
// files. Hostile input: depth and length are bounded; raw bytes.
#pragma once

#include <optional>
#include <string>

#include "vmm/linux/listing/listing.h"

namespace ringside::guest_linux {

/// A struct path: a place in a mounted file system.
struct FilePlace {
  GuestVirt mount;  // struct vfsmount
  GuestVirt dentry;
  bool operator==(const FilePlace&) const = default;
};

class Paths {
 public:
  explicit Paths(Wanted& wanted);

  /// The path from the root of its mount namespace. " (deleted)" follows that of a deleted file. A
  /// file that was never in a tree (memfd, shared memory) has its name after "/". Empty where it
  /// cannot be read.
  std::optional<std::string> path(const FilePlace& place) const;
  /// The same from `root`; empty, too, where the place does not lie below it.
  std::optional<std::string> path_below(const FilePlace& place, const FilePlace& root) const;
  /// The last part of it.
  std::optional<std::string> name(GuestVirt dentry) const;
  /// Whether it is in no tree: its own parent, and not the root of its mount.
  bool is_loose(const FilePlace& place) const;

  /// Whether paths are missing because all together had too many parts.
  bool was_cut() const { return steps_left_ == 0; }

  /// struct mount of a struct vfsmount.
  GuestVirt mount_of(GuestVirt vfsmount) const { return vfsmount.wrapping_sub(in_mount_.offset); }
  GuestVirt vfsmount_of(GuestVirt mount) const { return mount.wrapping_add(in_mount_.offset); }

 private:
  std::optional<std::string> walk(const FilePlace& place, const FilePlace* root) const;
  std::string names(const StructCopy& dentry) const;

  const KernelView* view_;
  /// Dentries and mounts of all paths together: a hostile guest could let each of many files have
  /// the same endless path.
  mutable std::size_t steps_left_ = 1 << 24;
  Shape dentry_, mount_;
  Field parent_, name_, length_, hashed_, in_mount_, mount_root_, mount_parent_, mount_point_;
};

}  // namespace ringside::guest_linux
