#include "vmm/kvm/vcpu/vcpu_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "vmm/kvm/vcpu/fakes_for_tests.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kTables = 0x4000;  // four levels, a page each

class VcpuMemoryTest : public ::testing::Test {
 protected:
  /// Pages 0x10000 and 0x12000 of the vCPU's addresses lie at 0x1000 and 0x2000.
  Registers paging() {
    const auto entry = [this](std::uint64_t at, std::uint64_t value) {
      std::memcpy(&fakes_.ram_bytes[at], &value, sizeof value);
    };
    for (std::uint64_t level = 0; level < 3; ++level) {
      entry(kTables + level * 0x1000, (kTables + (level + 1) * 0x1000) | 3);
    }
    entry(kTables + 0x3000 + 0x10 * 8, 0x1000 | 3);
    entry(kTables + 0x3000 + 0x12 * 8, 0x2000 | 3);
    Registers registers = flat();
    registers.cr0 = std::uint64_t{1} << 31;
    registers.cr3 = kTables;
    registers.efer = 1 << 10;
    return registers;
  }
  static Registers flat() {
    Registers registers;
    registers.cs = 0x10;
    return registers;
  }

  VcpuFakes fakes_;
};

TEST_F(VcpuMemoryTest, AddressesAreOneToOneUntilTheVcpuPages) {
  EXPECT_EQ(fakes_.memory.locate(flat(), GuestVirt(0x1'0008)), GuestPhys(0x1'0008));
  EXPECT_EQ(fakes_.memory.locate(paging(), GuestVirt(0x1'0008)), GuestPhys(0x1008));
  EXPECT_FALSE(fakes_.memory.locate(paging(), GuestVirt(0x1'1000)));
}

TEST_F(VcpuMemoryTest, KvmWalksTheTablesOfOtherModes) {
  Registers registers = paging();
  registers.efer = 0;
  fakes_.kvm.translated = GuestPhys(0x3456);

  EXPECT_EQ(fakes_.memory.locate(registers, GuestVirt(0x1'0000)), GuestPhys(0x3456));
}

TEST_F(VcpuMemoryTest, CodeIsReadUpToThePageThatIsNotThere) {
  const Registers registers = paging();
  fakes_.put(0x1ffd, {0x11, 0x22, 0x33});
  std::array<std::byte, 8> code{};

  EXPECT_EQ(fakes_.memory.read_code(registers, GuestVirt(0x1'0ffd), code), 3u);

  EXPECT_EQ(code[2], std::byte{0x33});
  EXPECT_EQ(fakes_.memory.read_code(registers, GuestVirt(0x1'2000), code), 8u);
}

TEST_F(VcpuMemoryTest, TheStackIsThatOfThePageTable) {
  const Registers registers = paging();
  VcpuStack stack(fakes_.memory, registers);

  ASSERT_TRUE(stack.store(GuestVirt(0x1'2010), 0x1122));

  EXPECT_EQ(fakes_.byte(0x2010), 0x22u);
  EXPECT_EQ(stack.load(GuestVirt(0x1'2010)), 0x1122u);
  EXPECT_FALSE(stack.load(GuestVirt(0x1'1000)));
  EXPECT_FALSE(stack.store(GuestVirt(0x1'1000), 1));
}

TEST_F(VcpuMemoryTest, TheStackTakesNoWordAcrossPagesAndNoneOfUserMode) {
  Registers registers = flat();
  VcpuStack stack(fakes_.memory, registers);
  EXPECT_TRUE(stack.store(GuestVirt(0x1ff8), 1));
  EXPECT_FALSE(stack.store(GuestVirt(0x1ff9), 1));

  registers.cs = 0x33;

  EXPECT_FALSE(stack.store(GuestVirt(0x1000), 1));
  EXPECT_FALSE(stack.load(GuestVirt(0x1000)));
}

}  // namespace
}  // namespace ringside::vmm::kvm
