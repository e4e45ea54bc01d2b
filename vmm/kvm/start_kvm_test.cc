#include <gtest/gtest.h>
#include <linux/kvm.h>

#include <fstream>
#include <limits>

#include "vmm/kvm/initrd_file.h"
#include "vmm/kvm/kvm_system.h"
#include "vmm/machine.h"

namespace ringside::vmm {
namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// One cpio header with its name, "newc".
std::string member(const std::string& name, const std::string& data) {
  char header[128];
  std::snprintf(header, sizeof header,
                "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x", 1, 0, 0, 0, 1, 0,
                data.size(), 0, 0, 0, 0, name.size() + 1, 0);
  std::string text = header + name + '\0';
  text.resize((text.size() + 3) / 4 * 4);
  text += data;
  text.resize((text.size() + 3) / 4 * 4);
  return text;
}

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
  MachineConfig config;
  config.kvm_device = "/dev/no-such-device";
  config.memory = std::uint64_t{1} << 50;
  const auto large = start_kvm(config);
  config.memory = 1 << 20;
  const auto small = start_kvm(config);
  config.memory = 64 << 20;
  config.keep = true;
  const auto kept = start_kvm(config);

  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::Limit);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().message, "a guest needs 16 MiB of memory or more, not 1 MiB");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::Unsupported);
}

TEST(Initrd, IsCutOffWhenAMemberOrTheTrailerIsMissing) {
  const std::string whole = member("init", "#!/bin/sh\n") + member("TRAILER!!!", "");

  EXPECT_FALSE(kvm::is_cut_off(bytes(whole)));
  EXPECT_FALSE(kvm::is_cut_off(bytes(whole + std::string(512, '\0'))));
  EXPECT_TRUE(kvm::is_cut_off(bytes(whole.substr(0, 118))));
  EXPECT_TRUE(kvm::is_cut_off(bytes(member("init", "#!/bin/sh\n"))));
  EXPECT_TRUE(
      kvm::is_cut_off(bytes(std::string("\xfd"
                                        "7zXZ\0rest",
                                        10))));
  EXPECT_FALSE(kvm::is_cut_off(bytes("\x1f\x8b whatever")));
  EXPECT_FALSE(kvm::is_cut_off({}));
}

TEST(Initrd, OfNoNameIsEmptyAndAnEmptyFileIsAnError) {
  const std::string path = testing::TempDir() + "empty-initrd";
  std::ofstream(path).flush();

  const auto none = kvm::InitrdFile::open("");
  const auto empty = kvm::InitrdFile::open(path);
  const auto missing = kvm::InitrdFile::open(path + "-not");

  ASSERT_TRUE(none);
  EXPECT_TRUE(none->bytes().empty());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "the initrd " + path + " is empty");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace ringside::vmm
