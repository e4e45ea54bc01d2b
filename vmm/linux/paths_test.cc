#include "vmm/linux/paths.h"

#include <gtest/gtest.h>

#include <string>

#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kBase = 0xffff'8880'0000'0000;
// Where the members lie in this kernel.
constexpr std::uint64_t kHash = 8, kPrevious = 8, kDentryParent = 24, kName = 32, kLength = 4,
                        kNameText = 8;
constexpr std::uint64_t kMountParent = 16, kMountPoint = 24, kMnt = 32, kMountRoot = 0;

class LinuxPathNames : public ::testing::Test {
 protected:
  LinuxPathNames() {
    const TypeId word = types_.add({.kind = TypeKind::Integer, .name = "unsigned long", .size = 8});
    const TypeId half = types_.add({.kind = TypeKind::Integer, .name = "unsigned int", .size = 4});
    const Member qstr[] = {
        {"hash", half, 0, 0}, {"len", half, kLength * 8, 0}, {"name", word, kNameText * 8, 0}};
    const TypeId name = types_.add_struct(TypeKind::Struct, "qstr", 16, qstr);
    const Member link[] = {{"next", word, 0, 0}, {"pprev", word, kPrevious * 8, 0}};
    const TypeId hash = types_.add_struct(TypeKind::Struct, "hlist_bl_node", 16, link);
    const Member dentry[] = {{"d_hash", hash, kHash * 8, 0},
                             {"d_parent", word, kDentryParent * 8, 0},
                             {"d_name", name, kName * 8, 0},
                             {"d_iname", types_.array_of(*types_.find("char"), 16), 48 * 8, 0}};
    types_.index(types_.add_struct(TypeKind::Struct, "dentry", 64, dentry));
    const Member vfsmount[] = {{"mnt_root", word, kMountRoot * 8, 0}};
    const TypeId mnt = types_.add_struct(TypeKind::Struct, "vfsmount", 16, vfsmount);
    types_.index(mnt);
    const Member mount[] = {{"mnt_parent", word, kMountParent * 8, 0},
                            {"mnt_mountpoint", word, kMountPoint * 8, 0},
                            {"mnt", mnt, kMnt * 8, 0}};
    types_.index(types_.add_struct(TypeKind::Struct, "mount", 64, mount));
  }
  std::uint64_t room(std::uint64_t size) { return kBase + (used_ += size) - size; }
  /// 0: its own.
  std::uint64_t dentry(std::string_view name, std::uint64_t parent) {
    const std::uint64_t at = room(64), text = room(name.size());
    for (std::size_t i = 0; i < name.size(); ++i) memory_.put(text + i, name[i]);
    memory_.put(at + kHash + kPrevious, kBase);
    memory_.put(at + kDentryParent, parent != 0 ? parent : at);
    memory_.put(at + kName + kLength, static_cast<std::uint32_t>(name.size()));
    memory_.put(at + kName + kNameText, text);
    return at;
  }
  /// Answers with the struct vfsmount; `parent` is one, too. 0: its own.
  std::uint64_t mount(std::uint64_t root, std::uint64_t parent, std::uint64_t upon) {
    const std::uint64_t at = room(64);
    memory_.put(at + kMountParent, parent != 0 ? parent - kMnt : at);
    memory_.put(at + kMountPoint, upon);
    memory_.put(at + kMnt + kMountRoot, root);
    return at + kMnt;
  }
  std::string path(std::uint64_t dentry, std::uint64_t mount, std::size_t room = 4096) {
    std::string text(room, '?');
    const auto length = LinuxPaths(types_).path(memory_, GuestVirt(dentry), GuestVirt(mount), text);
    return length ? text.substr(0, *length) : "(fault)";
  }

  TypeGraph types_;
  fakes::PagedGuest memory_;
  std::uint64_t used_ = 0;
  const std::uint64_t root_ = dentry("/", 0), data_ = dentry("data", root_), disk_ = dentry("/", 0);
  const std::uint64_t first_ = mount(root_, 0, 0), second_ = mount(disk_, first_, data_);
};

TEST_F(LinuxPathNames, GoFromTheNameToTheRootOfAllMounts) {
  EXPECT_EQ(path(dentry("file", dentry("a", root_)), first_), "/a/file");
  EXPECT_EQ(path(dentry("file", dentry("b", disk_)), second_), "/data/b/file");
  EXPECT_EQ(path(root_, first_), "/");
  EXPECT_EQ(path(disk_, second_), "/data");
}

TEST_F(LinuxPathNames, WhatIsInNoDirectoryHasItsName) {
  EXPECT_EQ(path(dentry("memfd:x", 0), first_), "memfd:x");
  EXPECT_EQ(path(dentry("", 0), first_), "");
}

TEST_F(LinuxPathNames, WhatWasUnlinkedIsMarkedAsTheKernelsPathsAre) {
  const std::uint64_t file = dentry("file", dentry("a", root_)), pipe = dentry("pipe", 0);
  memory_.put(file + kHash + kPrevious, std::uint64_t{0});
  memory_.put(pipe + kHash + kPrevious, std::uint64_t{0});

  EXPECT_EQ(path(file, first_), "/a/file (deleted)");
  EXPECT_EQ(path(pipe, first_), "pipe") << "it is a root, which is in no chain";
}

TEST_F(LinuxPathNames, OfALongOneThereIsTheEnd) {
  std::uint64_t deepest = root_;
  for (int i = 0; i < 1000; ++i) deepest = dentry("d", deepest);
  EXPECT_EQ(path(deepest, first_), path(deepest, first_, 1024));
  EXPECT_TRUE(path(deepest, first_).starts_with("d/d")) << "with a slash it would be whole";
  EXPECT_TRUE(path(deepest, first_).ends_with("/d/d"));
  EXPECT_EQ(path(deepest, first_, 4), "d/d");
  EXPECT_EQ(path(deepest, first_, 3), "d/d");
  EXPECT_EQ(path(dentry("long", root_), first_, 4), "long");
}

TEST_F(LinuxPathNames, HostileMemoryEndsIt) {
  const std::uint64_t one = dentry("x", root_), other = dentry("y", one);
  memory_.put(one + kDentryParent, other);
  EXPECT_EQ(path(other, first_).size(), 512u * 2 - 1) << "a circle";
  memory_.put(one + kName + kLength, UINT32_MAX);
  memory_.put(one + kName + kNameText, kBase - 64);
  EXPECT_EQ(path(one, first_), "(fault)") << "its name begins where nothing is";
  EXPECT_EQ(path(0, first_), "(fault)");
  EXPECT_EQ(path(one, 0), "(fault)");
}

TEST_F(LinuxPathNames, ShortOnesLieInTheDirectoryEntry) {
  const auto layout = PathLayout::from(types_);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->short_name.offset, 48u);
  EXPECT_EQ(layout->short_name.bytes, 16u);
  EXPECT_FALSE(PathLayout::from(TypeGraph()));
}

TEST_F(LinuxPathNames, WithoutTypesThereAreNone) {
  std::array<char, 8> out{};
  const auto length = LinuxPaths().path(memory_, GuestVirt(root_), GuestVirt(first_), out);
  ASSERT_FALSE(length);
  EXPECT_EQ(length.error().kind, FaultKind::IllegalOperation);
}

}  // namespace
}  // namespace ringside::guest_linux
