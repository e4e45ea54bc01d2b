#include "vmm/linux/processes/file_lookup.h"

#include <array>

#include "vmm/linux/constants.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostChildren = 1 << 14, kMostMounts = 4096, kMostStacked = 16;
constexpr std::int32_t kMostLevels = 32;  // MAX_PID_NS_LEVEL, include/linux/pid_namespace.h

class Lookup {
 public:
  Lookup(const GuestReader& kernel, const FileLookupLayout& layout)
      : kernel_(kernel), layout_(layout) {}

  std::optional<GuestVirt> find(GuestVirt task, std::string_view path) {
    const auto fs = pointer(task, layout_.task_fs);
    const auto mount = fs ? pointer(*fs, layout_.root_mount) : std::nullopt;
    const auto root = fs ? pointer(*fs, layout_.root_dentry) : std::nullopt;
    if (!mount || !root) return std::nullopt;
    mount_ = mount->wrapping_sub(layout_.path.inner), dentry_ = *root;
    while (!path.empty()) {
      path.remove_prefix(path.front() == '/' ? 1 : 0);
      const std::string_view name = path.substr(0, path.find('/'));
      if (!name.empty() && !enter(name)) return std::nullopt;
      path.remove_prefix(name.size());
    }
    return pointer(dentry_, layout_.inode);
  }

 private:
  /// Empty when it cannot be read, and for a null pointer.
  std::optional<GuestVirt> pointer(GuestVirt from, std::uint64_t offset) const {
    const auto value = load_field<std::uint64_t>(kernel_, from, offset);
    return value && *value != 0 ? std::optional(GuestVirt(*value)) : std::nullopt;
  }

  bool has_name(GuestVirt dentry, std::string_view name) const {
    const auto length = load_field<std::uint32_t>(kernel_, dentry, layout_.path.length);
    if (!length || *length != name.size() || name.size() > kMostFileName) return false;
    std::array<char, kMostFileName> text{};
    const auto used = std::span(text).first(name.size());
    const auto at = pointer(dentry, layout_.path.name);
    return at && kernel_.read(*at, std::as_writable_bytes(used)) &&
           std::string_view(used.data(), used.size()) == name;
  }

  bool enter(std::string_view name) {
    std::optional<GuestVirt> found;
    const auto look = [&](GuestVirt link) {
      const GuestVirt dentry = link.wrapping_sub(layout_.sibling);
      // One that was unlinked, or that says that there is no such file, has no inode.
      if (has_name(dentry, name) && pointer(dentry, layout_.inode)) found = dentry;
      return !found;
    };
    if (layout_.is_hash_list) {
      auto link = pointer(dentry_, layout_.children);  // struct hlist_node: next comes first
      for (std::size_t n = 0; link && n < kMostChildren && look(*link); ++n) {
        link = pointer(*link, 0);
      }
    } else {
      (void)walk_list(kernel_, dentry_.wrapping_add(layout_.children), kMostChildren, look);
    }
    if (!found) return false;
    dentry_ = *found;
    for (std::size_t n = 0; n < kMostStacked && cross_mount(); ++n) {
    }
    return true;
  }

  /// Whether something is mounted there.
  bool cross_mount() {
    bool found = false;
    (void)walk_list(kernel_, mount_.wrapping_add(layout_.mounts), kMostMounts, [&](GuestVirt link) {
      const GuestVirt child = link.wrapping_sub(layout_.mount_sibling);
      const auto root = pointer(child, std::uint64_t{layout_.path.inner} + layout_.path.root);
      if (pointer(child, layout_.path.mounted_upon) != dentry_ || !root) return true;
      mount_ = child, dentry_ = *root;
      found = true;
      return false;
    });
    return found;
  }

  const GuestReader& kernel_;
  const FileLookupLayout& layout_;
  GuestVirt mount_, dentry_;
};

}  // namespace

std::optional<FileLookupLayout> FileLookupLayout::from(const TypeGraph& types) {
  FileLookupLayout layout;
  bool is_whole = true;
  const auto take = [&](std::uint32_t& to, std::string_view structure,
                        std::initializer_list<std::string_view> path) {
    const auto offset = offset_of(types, structure, path);
    is_whole = is_whole && offset;
    to = offset.value_or(0);
  };
  layout.is_hash_list = offset_of(types, "dentry", {"d_children"}).has_value();
  take(layout.children, "dentry", {layout.is_hash_list ? "d_children" : "d_subdirs"});
  take(layout.sibling, "dentry", {layout.is_hash_list ? "d_sib" : "d_child"});
  take(layout.task_fs, "task_struct", {"fs"});
  take(layout.root_mount, "fs_struct", {"root", "mnt"});
  take(layout.root_dentry, "fs_struct", {"root", "dentry"});
  take(layout.inode, "dentry", {"d_inode"});
  take(layout.mounts, "mount", {"mnt_mounts"});
  take(layout.mount_sibling, "mount", {"mnt_child"});
  take(layout.task_pid, "task_struct", {"thread_pid"});
  take(layout.pid_level, "pid", {"level"});
  take(layout.pid_numbers, "pid", {"numbers"});
  take(layout.number, "upid", {"nr"});
  const auto number = types.find(TypeKind::Struct, "upid");
  const auto path = PathLayout::from(types);
  if (!is_whole || !number || !path) return std::nullopt;
  layout.number_bytes = static_cast<std::uint32_t>(types.size_of(*number));
  layout.path = *path;
  return layout;
}

std::optional<GuestVirt> find_file(const GuestReader& kernel, const FileLookupLayout& layout,
                                   GuestVirt task, std::string_view path) {
  return Lookup(kernel, layout).find(task, path);
}

std::optional<std::int32_t> own_number(const GuestReader& kernel, const FileLookupLayout& layout,
                                       GuestVirt task) {
  const auto pid = load_field<std::uint64_t>(kernel, task, layout.task_pid);
  if (!pid) return std::nullopt;
  const auto level = load_field<std::int32_t>(kernel, GuestVirt(*pid), layout.pid_level);
  if (!level || *level < 0 || *level > kMostLevels) return std::nullopt;
  const std::uint64_t offset =
      layout.pid_numbers + static_cast<std::uint64_t>(*level) * layout.number_bytes;
  const auto number = load_field<std::int32_t>(kernel, GuestVirt(*pid), offset + layout.number);
  return number ? std::optional(*number) : std::nullopt;
}

}  // namespace ringside::guest_linux
