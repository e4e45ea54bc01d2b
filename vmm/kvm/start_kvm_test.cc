#include "vmm/kvm/start_kvm.h"

#include <gtest/gtest.h>
#include <linux/kvm.h>

#include <fstream>
#include <limits>

#include "vmm/kvm/api/kvm_system.h"
#include "vmm/kvm/initrd.h"

namespace ringside::vmm {
namespace {

TEST(KvmSystem, SaysWhatToDoWhereThereIsNoKvm) {
  const auto missing = kvm::KvmSystem::open("/dev/no-such-device");
  const auto other = kvm::KvmSystem::open("/dev/null");

  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "this host has no /dev/no-such-device: modprobe kvm_intel or kvm_amd, with "
            "virtualization (VT-x, AMD-V) turned on in the firmware; or take --machine qemu");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message.find('\n'), std::string::npos);
}

TEST(KvmSystem, NamesTheCapabilityThatIsMissing) {
  const auto lacking = [](int capability, int instead) {
    const auto done = kvm::check_capabilities(
        [=](int asked) { return asked == capability ? instead : std::numeric_limits<int>::max(); });
    return done ? std::string() : done.error().message;
  };

  EXPECT_EQ(lacking(-1, 0), "");
  EXPECT_EQ(lacking(KVM_CAP_IMMEDIATE_EXIT, 0),
            "this host's KVM lacks KVM_CAP_IMMEDIATE_EXIT: Linux 5.10 or later has it; or take "
            "--machine qemu");
  EXPECT_NE(lacking(KVM_CAP_SYNC_REGS, KVM_SYNC_X86_REGS).find("KVM_CAP_SYNC_REGS"),
            std::string::npos)
      << "half of what it should copy is not enough";
}

TEST(StartKvm, RefusesSizesBeforeItTouchesKvm) {
  GuestConfig guest;
  KvmConfig config;
  config.device = "/dev/no-such-device";
  guest.memory = std::uint64_t{1} << 50;
  const auto large = start_kvm(guest, config);
  guest.memory = 1 << 20;
  const auto small = start_kvm(guest, config);

  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::Limit);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().message, "a guest needs 16 MiB of memory or more, not 1 MiB");
}

TEST(Initrd, OfNoNameIsEmptyAndABadFileIsAnErrorWithTheWayOut) {
  const std::string path = ::testing::TempDir() + "empty-initrd";
  std::ofstream(path).flush();

  const auto none = kvm::InitrdFile::open("");
  const auto empty = kvm::InitrdFile::open(path);
  const auto missing = kvm::InitrdFile::open(path + "-not");
  std::ofstream(path) << "070701";
  const auto short_one = kvm::InitrdFile::open(path);

  ASSERT_TRUE(none);
  EXPECT_TRUE(none->bytes().empty());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "the initrd " + path + " is empty: copy or build it again");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "cannot read the guest's initrd " + path +
                "-not: No such file or directory; give --initrd a file that you may read, or leave "
                "it away for a kernel that needs none");
  ASSERT_FALSE(short_one);
  EXPECT_EQ(short_one.error().message,
            "the initrd " + path + " is cut off after 6 bytes: copy or build it again");
}

}  // namespace
}  // namespace ringside::vmm
