#include "vmm/linux/kernel_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "vmm/inert_machine_for_tests.h"

namespace ringside::guest_linux {
namespace {

// An image mapped at 16 MiB above the base of the kernel's map, lying at 2 MiB of RAM.
constexpr std::uint64_t kImageStext = 0xffff'ffff'8100'0000;
constexpr std::int64_t kPhysBase = 0x20'0000 - 0x100'0000;
constexpr std::uint64_t kImageInRam = 0x20'0000;  // in RAM
constexpr std::uint64_t kRootInRam = kImageInRam + 0x1'0000;
constexpr std::uint64_t kUts = kImageInRam + 0x2'0000;

std::string info_text(std::string_view release, std::uint64_t root_offset = 0x1'0000) {
  return fmt::format(
      "OSRELEASE={}\nSYMBOL(init_uts_ns)={:x}\nOFFSET(uts_namespace.name)=4\nSYMBOL(_stext)={:x}\n"
      "SYMBOL(swapper_pg_dir)={:x}\nNUMBER(phys_base)={}\nNUMBER(pgtable_l5_enabled)=0\n",
      release, kImageStext + 0x2'0000, kImageStext, kImageStext + root_offset, kPhysBase);
}

class FakeMachine final : public vmm::InertMachine {
 public:
  FakeMachine() : ram_(4 << 20), memory_({{GuestPhys(0), ram_}}) {
    map(kRootInRam, 0x1000);
    put_text(kUts + 4 + 130, "6.1.0-test");
  }

  /// Page tables at `root` that map the image by one large page.
  void map(std::uint64_t root, std::uint64_t tables) {
    put64(root + 511 * 8, tables | 1);
    put64(tables + 510 * 8, (tables + 0x1000) | 1);
    put64(tables + 0x1000 + 8 * 8, kImageInRam | 0x81);
  }
  void put64(std::uint64_t at, std::uint64_t value) {
    ASSERT_TRUE(memory_.store64(GuestPhys(at), value));
  }
  void put_text(std::uint64_t at, std::string_view text) {
    std::memcpy(ram_.data() + at, text.data(), text.size());
  }

  vmm::GuestMemory& memory() override { return memory_; }

  std::uint64_t cr3 = kRootInRam;
  std::optional<std::uint64_t> other_cr3;  // of vCPU 1, if there is one
  int pauses = 0;

 protected:
  unsigned count() const override { return other_cr3 ? 2 : 1; }
  Result<void> pause() override {
    ++pauses;
    return {};
  }
  Result<Registers> registers(unsigned vcpu) override {
    Registers registers;
    registers.cr3 = vcpu == 0 ? cr3 : *other_cr3;
    return registers;
  }

 private:
  std::vector<std::byte> ram_;
  vmm::GuestMemory memory_;
};

TEST(KernelMemory, IsFoundWithoutPausingWhenThereIsOneDescription) {
  FakeMachine machine;
  machine.put_text(0x8000, info_text("6.1.0-test"));

  const auto kernel = find_kernel_memory(machine);

  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->table().root.raw(), kRootInRam);
  EXPECT_EQ(kernel->table().levels, 4u);
  EXPECT_EQ(machine.pauses, 0);
}

TEST(KernelMemory, IsNotFoundBeforeTheKernelWroteIt) {
  FakeMachine machine;

  const auto kernel = find_kernel_memory(machine);

  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::NotFound);
}

TEST(KernelMemory, AForgedReleaseOrPageTableIsRejected) {
  FakeMachine machine;
  machine.put_text(0x8000, info_text("6.6.6-forged"));
  machine.put_text(0x9000, info_text("6.1.0-test", 0x3'0000));  // no page table there
  machine.put_text(0xa000, info_text("6.1.0-test", 0xffff'f000));
  machine.put_text(0xb000, info_text("6.1.0-test"));

  const auto kernel = find_kernel_memory(machine);

  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->table().root.raw(), kRootInRam);
  EXPECT_EQ(machine.pauses, 0);
}

TEST(KernelMemory, AForgeryWithPageTablesOfItsOwnLosesToTheOneThatAVcpuUses) {
  FakeMachine machine;
  machine.map(kImageInRam + 0x4'0000, 0x10'0000);
  machine.put_text(0x8000, info_text("6.1.0-test", 0x4'0000));
  machine.put_text(0x9000, info_text("6.1.0-test"));
  machine.cr3 = kRootInRam | 0x1003;  // the user's half and a PCID, as under KPTI

  const auto kernel = find_kernel_memory(machine);

  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->table().root.raw(), kRootInRam);
  EXPECT_EQ(machine.pauses, 1);
}

TEST(KernelMemory, SeveralThatNoVcpuUsesAreAnError) {
  FakeMachine machine;
  machine.map(kImageInRam + 0x4'0000, 0x10'0000);
  machine.put_text(0x8000, info_text("6.1.0-test", 0x4'0000));
  machine.put_text(0x9000, info_text("6.1.0-test"));
  machine.cr3 = 0x3f'0000;

  const auto kernel = find_kernel_memory(machine);

  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::Invalid);
}

/// A kernel that crashed, whose root is at 0x4'0000 of the image, and its crash kernel.
class CrashedKernels : public testing::Test {
 protected:
  static constexpr std::uint64_t kDeadRoot = kImageInRam + 0x4'0000;

  CrashedKernels() {
    machine_.map(kDeadRoot, 0x10'0000);
    machine_.put_text(0x8000, info_text("6.1.0-test", 0x4'0000));  // as it was when it booted
    machine_.put_text(0x9000, info_text("6.1.0-test", 0x4'0000) + "CRASHTIME=1795000000\n");
    machine_.put_text(0xa000, info_text("6.1.0-test"));
  }
  void check() {
    const auto kernel = find_kernel_memory(machine_);

    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_EQ(kernel->table().root.raw(), kRootInRam);
    EXPECT_FALSE(kernel->info().has_crashed());
    ASSERT_NE(kernel->crashed(), nullptr);
    EXPECT_EQ(kernel->crashed()->table().root.raw(), kDeadRoot);
  }
  FakeMachine machine_;
};

TEST_F(CrashedKernels, TheCrashKernelRunsAndTheOtherIsKnown) {
  check();
}

TEST_F(CrashedKernels, AVcpuMayHaveStayedInTheKernelThatCrashed) {
  machine_.other_cr3 = kDeadRoot;
  check();
  machine_.cr3 = kDeadRoot;
  machine_.other_cr3 = kRootInRam;
  check();
}

TEST_F(CrashedKernels, TwoThatRunAndHaveNotCrashedAreAnError) {
  machine_.put_text(0x9000, std::string(4096, '\0'));
  machine_.other_cr3 = kDeadRoot;

  const auto kernel = find_kernel_memory(machine_);

  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::Invalid);
}

TEST_F(CrashedKernels, ADescriptionOfTheRunningKernelThatSaysItCrashedIsForged) {
  machine_.put_text(0xb000, info_text("6.1.0-test") + "NUMBER(x)=1\nCRASHTIME=1\n");

  EXPECT_FALSE(find_kernel_memory(machine_));
}

TEST(KernelMemory, CopiesOfTheImageStayInsideIt) {
  FakeMachine machine;
  machine.put_text(0x8000, info_text("6.1.0-test"));
  machine.put_text(kImageInRam + 0x100, "text");
  const auto kernel = find_kernel_memory(machine);
  ASSERT_TRUE(kernel);

  const auto copy = kernel->copy_image(GuestVirt(kImageStext + 0x100), 4);
  ASSERT_TRUE(copy);
  EXPECT_EQ(std::memcmp(copy->data(), "text", 4), 0);
  EXPECT_FALSE(kernel->copy_image(GuestVirt(kImageStext), 4 << 20)) << "RAM ends after 2 MiB of it";
  EXPECT_FALSE(kernel->copy_image(GuestVirt(kImageStext), UINT64_MAX));
  EXPECT_FALSE(kernel->copy_image(GuestVirt(0x1000), 4));
  EXPECT_EQ(kernel->copy_whole_image().size(), 2u << 20);
}

}  // namespace
}  // namespace ringside::guest_linux
