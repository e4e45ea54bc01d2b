#include "vmm/machine.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "vmm/inert_machine_for_tests.h"

namespace ringside::vmm {
namespace {

/// One large page of code at the start of the kernel's region; counts pauses, notes writes.
class SmallMachine final : public InertMachine {
 public:
  static constexpr std::uint64_t kCode = 2 << 20;
  static constexpr GuestVirt kText{0xffff'ffff'8000'0000};
  static constexpr PageTable kTable{GuestPhys(0x1000), 4, 0};

  SmallMachine() {
    put64(0x1000 + 8 * 511, 0x2003);
    put64(0x2000 + 8 * 510, 0x3003);
    put64(0x3000, kCode | 0x83);
  }
  GuestMemory& memory() override { return memory_; }

  int pauses = 0;
  std::vector<std::pair<std::uint64_t, std::uint8_t>> written;

 protected:
  Result<void> pause() override {
    ++pauses;
    return {};
  }
  Result<void> resume() override {
    --pauses;
    return {};
  }
  Result<void> write(std::span<const CodeWrite> writes) override {
    for (const CodeWrite& write : writes) written.emplace_back(write.at.raw(), write.byte);
    return {};
  }

 private:
  void put64(std::uint64_t at, std::uint64_t value) {
    std::memcpy(ram_.data() + at, &value, sizeof value);
  }

  std::vector<std::byte> ram_ = std::vector<std::byte>(4 << 20);
  GuestMemory memory_{{{GuestPhys(0), ram_}}};
};

TEST(PausedMachine, PausesAsLongAsItLives) {
  SmallMachine machine;
  {
    auto outer = PausedMachine::pause(machine);
    ASSERT_TRUE(outer);
    const auto inner = PausedMachine::pause(machine);
    EXPECT_EQ(machine.pauses, 2);
    EXPECT_EQ(machine.stops().version(), 1U);
    EXPECT_EQ(machine.stops().pauses().count, 0U);
  }
  EXPECT_EQ(machine.pauses, 0);
  EXPECT_EQ(machine.stops().pauses().count, 1U);
}

TEST(PausedMachine, WritesCodeWhereTheGivenTableHasIt) {
  SmallMachine machine;
  auto paused = PausedMachine::pause(machine);
  ASSERT_TRUE(paused);
  const std::array writes{VirtualCodeWrite{GuestVirt(SmallMachine::kText.raw() + 0x123), 0xcc}};

  ASSERT_TRUE(paused->write_code(SmallMachine::kTable, writes));

  const std::pair<std::uint64_t, std::uint8_t> expected{SmallMachine::kCode + 0x123, 0xcc};
  EXPECT_EQ(machine.written, std::vector{expected});
}

TEST(PausedMachine, NamesCodeThatIsNotMappedAndWritesTheRest) {
  SmallMachine machine;
  auto paused = PausedMachine::pause(machine);
  ASSERT_TRUE(paused);
  const std::array writes{VirtualCodeWrite{GuestVirt(0x401000), 1},
                          VirtualCodeWrite{GuestVirt(0x402000), 2},
                          VirtualCodeWrite{SmallMachine::kText, 3}};

  const auto done = paused->write_code(SmallMachine::kTable, writes);

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::Invalid);
  EXPECT_NE(done.error().message.find("0x401000"), std::string::npos);
  ASSERT_EQ(machine.written.size(), 1u);
  EXPECT_EQ(machine.written[0].second, 3);
}

}  // namespace
}  // namespace ringside::vmm
