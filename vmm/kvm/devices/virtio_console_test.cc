#include "vmm/kvm/devices/virtio_console.h"

#include <gtest/gtest.h>

#include "vmm/kvm/devices/testing/fake_driver.h"
#include "vmm/kvm/devices/virtio_mmio.h"

namespace ringside::vmm::kvm {
namespace {

class Console : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(driver_.bring_up(mmio_, 2), 15u); }
  void offer(unsigned queue, std::uint16_t head, std::initializer_list<FakeDriver::Piece> pieces) {
    driver_.select(queue);
    driver_.offer(head, pieces);
    write_to(mmio_, 0x050, queue, 4);
  }

  FakeLine line_;
  FakeDriver driver_{64};
  std::string sent_;
  std::size_t sink_room_ = SIZE_MAX;
  unsigned rooms_ = 0;
  VirtioConsole console_{[this](std::span<const std::byte> bytes) {
                           const std::size_t taken = std::min(bytes.size(), sink_room_);
                           for (const std::byte byte : bytes.first(taken)) sent_ += char(byte);
                           sink_room_ -= taken;
                           return taken;
                         },
                         [this] { ++rooms_; }};
  VirtioMmio mmio_{line_, driver_.memory(), console_};
};

TEST_F(Console, SendsChains) {
  driver_.put_text(kData, "hello, world");
  offer(1, 0, {{kData, 7}, {kData + 7, 5}});
  EXPECT_EQ(sent_, "hello, world");
  EXPECT_EQ(driver_.used(0), std::pair(0u, 0u));
  EXPECT_TRUE(line_.level());
}

TEST_F(Console, GivesInputToTheBuffersThatAreThere) {
  offer(0, 0, {{kData, 3, kWrite}});
  offer(0, 1, {{kData + 0x100, 100, kWrite}});
  EXPECT_EQ(driver_.used_index(), 0u) << "nothing to give yet";
  EXPECT_EQ(console_.receive(bytes_of("terminal")), 8u);

  EXPECT_EQ(driver_.used(0), std::pair(0u, 3u));
  EXPECT_EQ(driver_.used(1), std::pair(1u, 5u));
  EXPECT_EQ(driver_.text(kData, 3), "ter");
  EXPECT_EQ(driver_.text(kData + 0x100, 5), "minal");
}

TEST_F(Console, InputWaitsForBuffersAndItsFeederForRoom) {
  const std::string much(VirtioConsole::kQueue + 1, 'm');
  EXPECT_EQ(console_.receive(bytes_of(much)), VirtioConsole::kQueue);
  offer(0, 0, {{kData, 0x700, kWrite}});
  EXPECT_EQ(rooms_, 0u);
  offer(0, 1, {{kData, 0x700, kWrite}});
  EXPECT_EQ(rooms_, 1u);
  EXPECT_EQ(driver_.used(1), std::pair(1u, 0x700u));
}

TEST_F(Console, ASinkWithoutRoomHoldsTheChainBack) {
  sink_room_ = 4;
  driver_.put_text(kData, "abcdefgh");
  offer(1, 0, {{kData, 8}});
  offer(1, 1, {{kData, 2}});
  EXPECT_EQ(sent_, "abcd");
  EXPECT_EQ(driver_.used_index(), 0u);

  sink_room_ = 1;
  console_.output_ready();
  EXPECT_EQ(sent_, "abcde");
  EXPECT_EQ(driver_.used_index(), 0u);

  sink_room_ = SIZE_MAX;
  console_.output_ready();
  EXPECT_EQ(sent_, "abcdefghab");
  EXPECT_EQ(driver_.used_index(), 2u);
}

TEST_F(Console, AResetForgetsWhatWasUnderWay) {
  sink_room_ = 1;
  driver_.put_text(kData, "xyz");
  offer(1, 0, {{kData, 3}});
  write_to(mmio_, 0x070, 0, 4);
  sink_room_ = SIZE_MAX;
  console_.output_ready();
  EXPECT_EQ(sent_, "x");
}

TEST_F(Console, DropsWhatIsBeyondTheLimitOfOneChain) {
  offer(1, 0, {{kData, 1 << 20}, {kData, 1 << 20}});
  EXPECT_EQ(sent_.size(), VirtioConsole::kMostOutput);
}

}  // namespace
}  // namespace ringside::vmm::kvm
