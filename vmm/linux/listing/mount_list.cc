#include "vmm/linux/listing/mount_list.h"

#include <array>
#include <utility>

#include "vmm/linux/listing/paths.h"
#include "vmm/linux/processes/processes.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostMounts = 1 << 17;  // fs.mount-max is 100,000
constexpr std::size_t kMostDevice = 4096, kMostType = 64;

/// A flag and the option that shows it.
using Flag = std::pair<std::uint64_t, const char*>;
// include/linux/fs.h (SB_...) and mount.h (MNT_...).
constexpr std::uint64_t kReadOnlySuper = 1, kReadOnlyMount = 0x40;
/// MNT_CURSOR: the place of somebody who reads the list, up to 6.7.
constexpr std::uint64_t kCursor = 0x1000'0000;
constexpr std::array<Flag, 4> kSuperFlags{
    {{1 << 4, "sync"}, {1 << 7, "dirsync"}, {1 << 6, "mand"}, {1 << 25, "lazytime"}}};
constexpr std::array<Flag, 7> kMountFlags{{{0x01, "nosuid"},
                                           {0x02, "nodev"},
                                           {0x04, "noexec"},
                                           {0x08, "noatime"},
                                           {0x10, "nodiratime"},
                                           {0x20, "relatime"},
                                           {0x80, "nosymfollow"}}};

class MountReader {
 public:
  MountReader(const KernelView& view, Wanted& wanted);
  Result<Listing<MountRow>> list();

 private:
  std::optional<GuestVirt> first_process() const;
  void read_mounts(GuestVirt space);
  bool add(GuestVirt mount);
  std::vector<std::string> options(std::uint64_t super_flags, std::uint64_t mount_flags) const;
  std::string type_of(const StructCopy& super) const;

  const KernelView& view_;
  Paths paths_;
  Shape task_, mount_, super_;
  GuestVirt init_task_;
  Field tasks_, tgid_, proxy_, fs_, namespace_, root_mount_, root_dentry_, super_at_, top_, flags_,
      device_, super_flags_, type_, type_name_;
  std::optional<Field> subtype_, list_, list_link_, tree_, tree_link_;
  FilePlace root_;
  Listing<MountRow> found_;
};

MountReader::MountReader(const KernelView& view, Wanted& wanted)
    : view_(view),
      paths_(wanted),
      task_(wanted, "task_struct"),
      mount_(wanted, "mount"),
      super_(wanted, "super_block") {
  init_task_ = wanted.symbol("init_task");
  tasks_ = task_.need(wanted, "tasks");
  tgid_ = task_.need(wanted, "tgid");
  proxy_ = task_.need(wanted, "nsproxy");
  fs_ = task_.need(wanted, "fs");
  Shape proxy(wanted, "nsproxy"), fs(wanted, "fs_struct"), type(wanted, "file_system_type"),
      space(wanted, "mnt_namespace");
  namespace_ = proxy.need(wanted, "mnt_ns");
  root_mount_ = fs.need(wanted, "root.mnt");
  root_dentry_ = fs.need(wanted, "root.dentry");
  super_at_ = mount_.need(wanted, "mnt.mnt_sb");
  top_ = mount_.need(wanted, "mnt.mnt_root");
  flags_ = mount_.need(wanted, "mnt.mnt_flags");
  device_ = mount_.need(wanted, "mnt_devname");
  super_flags_ = super_.need(wanted, "s_flags");
  type_ = super_.need(wanted, "s_type");
  subtype_ = super_.want("s_subtype");
  type_name_ = type.need(wanted, "name");
  tree_ = space.want("mounts");
  tree_link_ = mount_.want("mnt_node");
  list_ = space.want("list");
  list_link_ = mount_.want("mnt_list");
  const bool has_tree = tree_ && tree_link_, has_list = list_ && list_link_;
  if (!has_tree && !has_list) wanted.lacks("mnt_namespace.mounts");
}

std::optional<GuestVirt> MountReader::first_process() const {
  std::optional<GuestVirt> found;
  (void)walk_processes(view_.reader(), tasks_.offset, init_task_, 64, [&](GuestVirt task) {
    if (view_.value(task, tgid_) == 1U) found = task;
    return !found;
  });
  return found;
}

std::vector<std::string> MountReader::options(std::uint64_t super_flags,
                                              std::uint64_t mount_flags) const {
  const bool is_read_only =
      (mount_flags & kReadOnlyMount) != 0 || (super_flags & kReadOnlySuper) != 0;
  std::vector<std::string> options{is_read_only ? "ro" : "rw"};
  for (const auto& [flag, name] : kSuperFlags) {
    if ((super_flags & flag) != 0) options.emplace_back(name);
  }
  for (const auto& [flag, name] : kMountFlags) {
    if ((mount_flags & flag) != 0) options.emplace_back(name);
  }
  return options;
}

std::string MountReader::type_of(const StructCopy& super) const {
  const auto type = super.pointer(type_);
  const auto name = type ? view_.pointer(*type, type_name_) : std::nullopt;
  std::string text = name ? view_.raw_text(*name, kMostType) : "?";
  const auto subtype = super.pointer(subtype_);
  if (subtype) text += "." + view_.raw_text(*subtype, kMostType);
  return text;
}

/// False where it cannot be read. One that process 1 cannot reach is left out.
bool MountReader::add(GuestVirt at) {
  const auto mount = mount_.copy(at);
  const auto super_at = mount ? mount->pointer(super_at_) : std::nullopt;
  const auto super = super_at ? super_.copy(*super_at) : std::nullopt;
  const auto top = mount ? mount->pointer(top_) : std::nullopt;
  if (mount && (mount->number(flags_) & kCursor) != 0) return true;
  if (!super || !top) return false;
  auto path = paths_.path_below({paths_.vfsmount_of(at), *top}, root_);
  if (!path) return true;
  MountRow row;
  row.path = std::move(*path);
  const auto device = mount->pointer(device_);
  row.device = device ? view_.raw_text(*device, kMostDevice) : "none";
  row.type = type_of(*super);
  row.options = options(super->number(super_flags_), mount->number(flags_));
  found_.rows.push_back(std::move(row));
  return true;
}

Result<Listing<MountRow>> MountReader::list() {
  const auto init = first_process();
  const auto proxy = init ? view_.pointer(*init, proxy_) : std::nullopt;
  const auto space = proxy ? view_.pointer(*proxy, namespace_) : std::nullopt;
  const auto fs = init ? view_.pointer(*init, fs_) : std::nullopt;
  const auto root_mount = fs ? view_.pointer(*fs, root_mount_) : std::nullopt;
  const auto root_dentry = fs ? view_.pointer(*fs, root_dentry_) : std::nullopt;
  if (!space || !root_mount || !root_dentry) {
    return fail(ErrorCode::NotFound, "mounts: the guest has no process 1 whose mounts to show");
  }
  root_ = {*root_mount, *root_dentry};
  read_mounts(*space);
  return std::move(found_);
}

void MountReader::read_mounts(GuestVirt space) {
  Walk walk(view_, kMostMounts);
  const bool by_tree = tree_ && tree_link_;
  const Field head = by_tree ? *tree_ : list_.value_or(Field());
  const Field link = by_tree ? *tree_link_ : list_link_.value_or(Field());
  const GuestVirt first = space.wrapping_add(head.offset);
  const auto visit = [&](GuestVirt node) { return add(node.wrapping_sub(link.offset)); };
  const ListEnd end = by_tree ? walk.tree(first, visit) : walk.circular(first, visit);
  const auto note =
      cut_note("the list of mounts", end == ListEnd::Stopped ? ListEnd::Unreadable : end);
  if (note) found_.notes.push_back(*note);
  if (paths_.was_cut()) found_.notes.emplace_back("mounts are left out: their paths are too long");
}

}  // namespace

Result<Listing<MountRow>> list_mounts(const ListedGuest& guest) {
  return read_until_whole<MountRow>(guest, [&]() -> Result<Listing<MountRow>> {
    Wanted wanted(guest.view);
    MountReader reader(guest.view, wanted);
    TRY(wanted.check("mounts"));
    return reader.list();
  });
}

}  // namespace ringside::guest_linux
