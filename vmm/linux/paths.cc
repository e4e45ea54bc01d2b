#include "vmm/linux/paths.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "vmm/linux/constants.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
namespace {

constexpr unsigned kLongestPath = 512;  // directories and mounts on the way

constexpr std::span<const char> kSlash{"/", 1};
constexpr std::string_view kDeleted = " (deleted)";

/// Text that grows at its beginning.
class Backward {
 public:
  explicit Backward(std::span<char> out) : out_(out), begin_(out.size()) {}
  bool put(std::span<const char> text) {
    if (text.size() > begin_) return false;
    begin_ -= text.size();
    std::ranges::copy(text, out_.begin() + static_cast<std::ptrdiff_t>(begin_));
    return true;
  }
  bool empty() const { return begin_ == out_.size(); }
  /// A path that begins with a slash is whole: the end of one that does not fit has none.
  std::size_t finish_cut() {
    if (!empty() && out_[begin_] == kSlash.front()) ++begin_;
    return finish();
  }
  /// Moves it to where `out` begins; its length.
  std::size_t finish() {
    std::memmove(out_.data(), out_.data() + begin_, out_.size() - begin_);
    return out_.size() - begin_;
  }

 private:
  std::span<char> out_;
  std::size_t begin_;
};

}  // namespace

std::optional<PathLayout> PathLayout::from(const TypeGraph& types) {
  const auto parent = offset_of(types, "dentry", {"d_parent"});
  const auto name = offset_of(types, "dentry", {"d_name", "name"});
  const auto length = offset_of(types, "dentry", {"d_name", "len"});
  const auto root = offset_of(types, "vfsmount", {"mnt_root"});
  const auto inner = offset_of(types, "mount", {"mnt"});
  const auto parent_mount = offset_of(types, "mount", {"mnt_parent"});
  const auto mounted_upon = offset_of(types, "mount", {"mnt_mountpoint"});
  if (!parent || !name || !length || !root || !inner || !parent_mount || !mounted_upon) {
    return std::nullopt;
  }
  PathLayout layout{.parent = *parent,
                    .name = *name,
                    .length = *length,
                    .root = *root,
                    .inner = *inner,
                    .parent_mount = *parent_mount,
                    .mounted_upon = *mounted_upon,
                    .hashed = offset_of(types, "dentry", {"d_hash", "pprev"}),
                    .short_name = {}};
  const auto dentry = types.find(TypeKind::Struct, "dentry");
  for (const std::string_view text : {"d_iname", "d_shortname"}) {  // the second one since 6.14
    const auto member = dentry ? types.find_member(*dentry, text) : std::nullopt;
    if (!member) continue;
    layout.short_name = {static_cast<std::uint32_t>(member->bit_offset / 8),
                         static_cast<std::uint32_t>(types.size_of(member->type))};
  }
  return layout;
}

/// d_unlinked() of include/linux/dcache.h: it is in no hash chain, and no root.
Result<bool, Fault> LinuxPaths::is_unlinked(const GuestReader& kernel, GuestVirt dentry) const {
  if (!at_->hashed) return false;
  const auto leads_to_it = TRY(load_field<std::uint64_t>(kernel, dentry, *at_->hashed));
  const auto parent = TRY(load_field<std::uint64_t>(kernel, dentry, at_->parent));
  return leads_to_it == 0 && parent != dentry.raw();
}

Result<std::size_t, Fault> LinuxPaths::path(const GuestReader& kernel, GuestVirt dentry,
                                            GuestVirt vfsmount, std::span<char> out) const {
  if (!at_) return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
  const auto pointer = [&](GuestVirt from, std::uint64_t offset) {
    return load_field<std::uint64_t>(kernel, from, offset);
  };
  GuestVirt mount = vfsmount.wrapping_add(-std::uint64_t{at_->inner});
  Backward text(out);
  if (TRY(is_unlinked(kernel, dentry)) && !text.put(kDeleted)) return text.finish();
  for (unsigned step = 0; step < kLongestPath; ++step) {
    const GuestVirt root(TRY(pointer(mount, std::uint64_t{at_->inner} + at_->root)));
    if (dentry == root) {
      const GuestVirt above(TRY(pointer(mount, at_->parent_mount)));
      if (above == mount) {
        if (text.empty()) text.put(kSlash);
        return text.finish();
      }
      dentry = GuestVirt(TRY(pointer(mount, at_->mounted_upon)));
      mount = above;
      continue;
    }
    std::array<char, kMostFileName> name{};
    const auto length = TRY(load_field<std::uint32_t>(kernel, dentry, at_->length));
    const auto used = std::span(name).first(std::min<std::size_t>(length, name.size()));
    TRY(kernel.read(GuestVirt(TRY(pointer(dentry, at_->name))), std::as_writable_bytes(used)));
    const GuestVirt parent(TRY(pointer(dentry, at_->parent)));
    if (!text.put(used)) return text.finish_cut();
    if (parent == dentry) return text.finish();
    if (!text.put(kSlash)) return text.finish_cut();
    dentry = parent;
  }
  return text.finish_cut();
}

}  // namespace ringside::guest_linux
