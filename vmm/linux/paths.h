// Path names in a Linux guest: from a directory entry and its mount to the root of the mounts, by
// struct dentry (d_parent, d_name), struct vfsmount (mnt_root) and struct mount (mnt, mnt_parent,
// mnt_mountpoint) of fs/mount.h, as the guest's types lay them out. The text has the form of the
// kernel's d_path(). Nothing is locked, so a rename that happens meanwhile may be seen half done.
// Used by firings, and by who looks a file of the guest up. Fire context: yes, but for the
// constructor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// Where the kernel keeps what path names are made of, by its types.
struct PathLayout {
  /// Empty where one of the members is missing.
  static std::optional<PathLayout> from(const TypeGraph& types);

  std::uint32_t parent = 0, name = 0, length = 0;               // of struct dentry
  std::uint32_t root = 0;                                       // of struct vfsmount
  std::uint32_t inner = 0, parent_mount = 0, mounted_upon = 0;  // of struct mount
  std::optional<std::uint32_t> hashed;  // of struct dentry: what leads to it in the cache, or 0
  /// The text of a name that is shorter than this lies in struct dentry itself. 0 bytes: it is not
  /// known where.
  struct {
    std::uint32_t offset = 0, bytes = 0;
  } short_name;
};

class LinuxPaths {
 public:
  /// Without types every path() is a fault.
  LinuxPaths() = default;
  explicit LinuxPaths(const TypeGraph& types) : at_(PathLayout::from(types)) {}

  /// Writes the path without a NUL, and returns its length. Of a path that is longer than `out`, or
  /// deeper than some hundred directories, it writes the end, which then does not begin with a
  /// slash. A file in no directory (a pipe, a socket) has its bare name, which may be empty. One
  /// that was unlinked has " (deleted)" behind its path.
  /// Fault: memory on the way that is not mapped; types without one of the members.
  Result<std::size_t, Fault> path(const GuestReader& kernel, GuestVirt dentry, GuestVirt vfsmount,
                                  std::span<char> out) const;

 private:
  Result<bool, Fault> is_unlinked(const GuestReader& kernel, GuestVirt dentry) const;

  std::optional<PathLayout> at_;
};

}  // namespace ringside::guest_linux
