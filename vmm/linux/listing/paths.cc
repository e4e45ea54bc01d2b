#include "vmm/linux/listing/paths.h"

#include <algorithm>

#include "vmm/linux/constants.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostSteps = 4096;    // dentries and mounts on the way to the root
constexpr std::size_t kMostPath = 8 << 10;  // bytes; PATH_MAX is 4096

}  // namespace

Paths::Paths(Wanted& wanted)
    : view_(&wanted.view()), dentry_(wanted, "dentry"), mount_(wanted, "mount") {
  parent_ = dentry_.need(wanted, "d_parent");
  name_ = dentry_.need(wanted, "d_name.name");
  length_ = dentry_.need(wanted, "d_name.len");
  hashed_ = dentry_.need(wanted, "d_hash.pprev");
  in_mount_ = mount_.need(wanted, "mnt");
  mount_root_ = mount_.need(wanted, "mnt.mnt_root");
  mount_parent_ = mount_.need(wanted, "mnt_parent");
  mount_point_ = mount_.need(wanted, "mnt_mountpoint");
}

std::string Paths::names(const StructCopy& dentry) const {
  const auto at = dentry.pointer(name_);
  if (!at) return {};
  return view_->raw_text(*at, std::min<std::size_t>(dentry.number(length_), kMostFileName));
}

std::optional<std::string> Paths::name(GuestVirt dentry) const {
  const auto copy = dentry_.copy(dentry);
  return copy ? std::optional(names(*copy)) : std::nullopt;
}

bool Paths::is_loose(const FilePlace& place) const {
  const auto dentry = dentry_.copy(place.dentry);
  if (!dentry || dentry->pointer(parent_) != place.dentry) return false;
  const auto mount = mount_.copy(mount_of(place.mount));
  return mount && mount->pointer(mount_root_) != place.dentry;
}

/// Up to `root`, or without one to the root of the mount namespace: a mount that is its own parent.
std::optional<std::string> Paths::walk(const FilePlace& place, const FilePlace* root) const {
  std::string path;
  FilePlace at = place;
  auto mount = mount_.copy(mount_of(at.mount));
  for (std::size_t steps = 0; mount && steps < kMostSteps && steps_left_ != 0; ++steps) {
    --steps_left_;
    if (root != nullptr && at == *root) return path.empty() ? "/" : path;
    if (mount->pointer(mount_root_) == at.dentry) {
      const auto above = mount->pointer(mount_parent_), point = mount->pointer(mount_point_);
      if (!above || !point) return std::nullopt;
      if (*above == mount->address()) {
        if (root != nullptr) return std::nullopt;
        return path.empty() ? "/" : path;
      }
      at = {vfsmount_of(*above), *point};
      mount = mount_.copy(*above);
      continue;
    }
    const auto dentry = dentry_.copy(at.dentry);
    const auto parent = dentry ? dentry->pointer(parent_) : std::nullopt;
    if (!parent) return std::nullopt;
    path.insert(0, "/" + names(*dentry));
    if (path.size() > kMostPath) return "..." + path;
    if (*parent == at.dentry) return path;  // in no tree
    at.dentry = *parent;
  }
  return std::nullopt;
}

std::optional<std::string> Paths::path(const FilePlace& place) const {
  auto path = walk(place, nullptr);
  if (!path) return std::nullopt;
  const auto dentry = dentry_.copy(place.dentry);
  const bool is_unhashed = dentry && dentry->number(hashed_) == 0;
  const bool is_root = dentry && dentry->pointer(parent_) == place.dentry;
  if ((is_unhashed && !is_root) || is_loose(place)) *path += " (deleted)";
  return path;
}

std::optional<std::string> Paths::path_below(const FilePlace& place, const FilePlace& root) const {
  return walk(place, &root);
}

}  // namespace ringside::guest_linux
