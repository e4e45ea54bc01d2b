#include "vmm/linux/processes/file_lookup.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kTask = fakes::kKernel + 0x10000;

/// A process with a root directory; structures are laid out as its layout says.
class FileLookup : public testing::TestWithParam<bool> {
 protected:
  FileLookup() {
    at_.is_hash_list = GetParam();
    at_.task_fs = 0x8, at_.root_mount = 0x10, at_.root_dentry = 0x18;
    at_.children = 0x10, at_.sibling = 0x20;
    at_.path.name = 0x38, at_.path.length = 0x34, at_.inode = 0x40;
    at_.path.root = 0x8, at_.path.inner = 0x20, at_.path.mounted_upon = 0x18;
    at_.mounts = 0x40, at_.mount_sibling = 0x50;
    at_.task_pid = 0x20, at_.pid_level = 4, at_.pid_numbers = 0x10, at_.number_bytes = 16,
    at_.number = 0;
    root_ = dentry("/", 0x100);
    mount_ = mount(root_);
    guest_.put(kTask + 8, fs_);
    guest_.put(fs_ + 0x10, mount_ + 0x20);
    guest_.put(fs_ + 0x18, root_);
  }
  std::uint64_t fresh(std::uint64_t size) { return next_ += size; }
  std::uint64_t dentry(std::string_view name, std::uint64_t inode) {
    const std::uint64_t at = fresh(0x200);
    guest_.put_text(at + 0x100, name);
    guest_.put(at + 0x38, at + 0x100);
    guest_.put(at + 0x34, static_cast<std::uint32_t>(name.size()));
    guest_.put(at + 0x40, inode);
    link(at + 0x10, {});
    return at;
  }
  std::uint64_t mount(std::uint64_t root) {
    const std::uint64_t at = fresh(0x200);
    guest_.put(at + 0x28, root);
    circle(at + 0x40, {});
    return at;
  }
  void circle(std::uint64_t head, const std::vector<std::uint64_t>& nodes) {
    std::uint64_t last = head;
    for (const std::uint64_t node : nodes) guest_.put(std::exchange(last, node), node);
    guest_.put(last, head);
  }
  /// Children of a directory, by their links.
  void link(std::uint64_t head, const std::vector<std::uint64_t>& nodes) {
    if (!GetParam()) return circle(head, nodes);
    std::uint64_t last = head;
    for (const std::uint64_t node : nodes) guest_.put(std::exchange(last, node), node);
    guest_.put(last, std::uint64_t{0});
  }
  void put_into(std::uint64_t directory, const std::vector<std::uint64_t>& entries) {
    std::vector<std::uint64_t> links;
    for (const std::uint64_t entry : entries) links.push_back(entry + 0x20);
    link(directory + 0x10, links);
  }
  std::uint64_t found(std::string_view path) {
    const auto inode = find_file(guest_, at_, GuestVirt(kTask), path);
    return inode ? inode->raw() : 0;
  }

  fakes::PagedGuest guest_;
  std::uint64_t next_ = fakes::kKernel + 0x20000;
  const std::uint64_t fs_ = fakes::kKernel + 0x18000;
  FileLookupLayout at_;
  std::uint64_t root_ = 0, mount_ = 0;
};

TEST_P(FileLookup, GoesFromDirectoryToDirectory) {
  const std::uint64_t tmp = dentry("tmp", 0x200);
  put_into(root_, {dentry("tm", 0x300), dentry("tmpx", 0x400), tmp});
  put_into(tmp, {dentry("a", 0), dentry("b", 0x500)});
  EXPECT_EQ(found("/tmp"), 0x200u);
  EXPECT_EQ(found("/tmp/b"), 0x500u);
  EXPECT_EQ(found("//tmp//b"), 0x500u);
  EXPECT_EQ(found("/"), 0x100u);
  EXPECT_EQ(found("/tmp/a"), 0u) << "known not to be there";
  EXPECT_EQ(found("/tmp/c"), 0u);
  EXPECT_EQ(found("/tmp/b/c"), 0u);
  EXPECT_EQ(found(std::string("/") + std::string(300, 'x')), 0u);
}

TEST_P(FileLookup, GoesIntoWhatIsMountedThere) {
  const std::uint64_t tmp = dentry("tmp", 0x200), below = dentry("x", 0x600);
  put_into(root_, {tmp});
  put_into(tmp, {below});
  const std::uint64_t inner = dentry("/", 0x700), upper = dentry("/", 0x900);
  put_into(upper, {dentry("x", 0x800)});
  const std::uint64_t first = mount(inner), second = mount(upper), other = mount(root_);
  guest_.put(other + 0x18, below);
  guest_.put(first + 0x18, tmp);
  guest_.put(second + 0x18, inner);  // over the first one
  circle(mount_ + 0x40, {other + 0x50, first + 0x50});
  circle(first + 0x40, {second + 0x50});
  EXPECT_EQ(found("/tmp"), 0x900u);
  EXPECT_EQ(found("/tmp/x"), 0x800u);
}

TEST_P(FileLookup, EndsInCirclesAndWhereNothingCanBeRead) {
  const std::uint64_t tmp = dentry("tmp", 0x200);
  put_into(root_, {tmp});
  link(tmp + 0x10, {tmp + 0x20});
  guest_.put(tmp + 0x20, tmp + 0x20);  // its own next one
  EXPECT_EQ(found("/tmp/x"), 0u);
  link(tmp + 0x10, {0xdead'0000'0000'0000});
  EXPECT_EQ(found("/tmp/x"), 0u);
  const std::uint64_t self = mount(tmp);
  guest_.put(self + 0x18, tmp);
  circle(mount_ + 0x40, {self + 0x50});
  circle(self + 0x40, {self + 0x50});
  EXPECT_EQ(found("/tmp"), 0x200u) << "mounted on itself";
  guest_.put(kTask + 8, std::uint64_t{0});
  EXPECT_EQ(found("/tmp"), 0u);
}

TEST_P(FileLookup, KnowsAProcesssNumberInItsNamespace) {
  const std::uint64_t pid = fresh(0x200);
  guest_.put(kTask + 0x20, pid);
  guest_.put(pid + 4, std::int32_t{1});
  guest_.put(pid + 0x10, std::int32_t{812});
  guest_.put(pid + 0x20, std::int32_t{7});
  EXPECT_EQ(own_number(guest_, at_, GuestVirt(kTask)), 7);
  guest_.put(pid + 4, std::int32_t{1000});
  EXPECT_FALSE(own_number(guest_, at_, GuestVirt(kTask)));
}

INSTANTIATE_TEST_SUITE_P(BothLists, FileLookup, testing::Bool());

}  // namespace
}  // namespace ringside::guest_linux
