#include "vmm/kvm/devices/uart16550.h"

#include <gtest/gtest.h>

#include <string>

#include "vmm/kvm/devices/testing/fakes.h"

namespace ringside::vmm::kvm {
namespace {

enum Offset { kUartData, kIer, kIir, kLcr, kMcr, kLsr, kMsr, kScratch };
constexpr std::uint64_t kFcr = 2;

class Uart : public testing::Test {
 protected:
  std::uint64_t in(std::uint64_t offset) { return read_from(uart_, offset); }
  void out(std::uint64_t offset, std::uint64_t value) { write_to(uart_, offset, value); }

  FakeLine line_;
  std::string sent_;
  std::size_t sink_room_ = SIZE_MAX;
  unsigned rooms_ = 0;
  Uart16550 uart_{line_,
                  [this](std::span<const std::byte> bytes) {
                    const std::size_t taken = std::min(bytes.size(), sink_room_);
                    for (const std::byte byte : bytes.first(taken)) sent_ += char(byte);
                    sink_room_ -= taken;
                    return taken;
                  },
                  [this] { ++rooms_; }};
};

TEST_F(Uart, SendsWhatIsWrittenAndIsIdleAgain) {
  out(kUartData, 'h');
  out(kUartData, 'i');

  EXPECT_EQ(sent_, "hi");
  EXPECT_EQ(in(kLsr), 0x60u);
  EXPECT_FALSE(line_.level()) << "no interrupt is enabled";
}

TEST_F(Uart, TellsThatTheTransmitterIsEmptyOnceForEachTime) {
  out(kIer, 2);
  EXPECT_TRUE(line_.level()) << "enabling it while empty raises it";
  EXPECT_EQ(in(kIir), 0x02u);
  EXPECT_FALSE(line_.level()) << "reading IIR was the acknowledgement";
  EXPECT_EQ(in(kIir), 0x01u);

  out(kUartData, 'x');
  EXPECT_TRUE(line_.level());
  EXPECT_EQ(in(kIir), 0x02u);

  out(kIer, 0);
  out(kIer, 2);
  EXPECT_EQ(in(kIir), 0x02u) << "Linux tests for this";
}

TEST_F(Uart, AByteSentWhileTheInterruptIsUnseenMakesANewEdge) {
  out(kIer, 2);
  out(kUartData, 'x');
  EXPECT_EQ(line_.rises(), 2u);
}

TEST_F(Uart, KeepsInterruptsInTheirOrder) {
  out(kMcr, 0x10);  // loopback: modem lines change, and the next bytes overrun
  out(kUartData, 'a');
  out(kUartData, 'b');
  out(kIer, 0x0f);

  EXPECT_EQ(in(kIir), 0x06u);
  EXPECT_EQ(in(kLsr), 0x63u) << "data, overrun, empty";
  EXPECT_EQ(in(kIir), 0x04u);
  EXPECT_EQ(in(kUartData), std::uint64_t{'a'});
  EXPECT_EQ(in(kIir), 0x02u);
  EXPECT_EQ(in(kIir), 0x00u);
  EXPECT_EQ(in(kMsr)&0x0f, 0x0bu);
  EXPECT_EQ(in(kIir), 0x01u);
  EXPECT_FALSE(line_.level());
}

TEST_F(Uart, LoopbackConnectsTheModemLinesAndTheDataPath) {
  EXPECT_EQ(in(kMsr), 0xb0u);
  out(kMcr, 0x1a);  // Linux's own test for a UART
  EXPECT_EQ(in(kMsr)&0xf0, 0x90u);
  out(kMcr, 0x14);
  EXPECT_EQ(in(kMsr)&0xf0, 0x40u);
  out(kMcr, 0x10);
  EXPECT_EQ(in(kMsr), 0x04u) << "the ring ended";
  EXPECT_EQ(uart_.receive(bytes_of("later")), 5u);
  out(kUartData, 'q');

  EXPECT_EQ(in(kUartData), std::uint64_t{'q'});
  EXPECT_EQ(in(kLsr)&1, 0u) << "input waits until loopback ends";
  EXPECT_EQ(sent_, "");
  out(kMcr, 0);
  EXPECT_EQ(in(kUartData), std::uint64_t{'l'});
}

TEST_F(Uart, InterruptsForInputFollowTheTriggerLevel) {
  out(kFcr, 0xc1);  // FIFOs, trigger level 14
  out(kIer, 1);
  uart_.receive(bytes_of("0123456789abc"));
  EXPECT_EQ(in(kIir), 0xccu) << "below the level: time-out";
  uart_.receive(bytes_of("d"));
  EXPECT_EQ(in(kIir), 0xc4u);

  std::string got;
  while ((in(kLsr)&1) != 0) got += char(in(kUartData));

  EXPECT_EQ(got, "0123456789abcd");
  EXPECT_EQ(in(kIir), 0xc1u);
  EXPECT_FALSE(line_.level());
}

TEST_F(Uart, InputBeyondTheFifoWaitsAndItsFeederLearnsOfRoom) {
  const std::string much(Uart16550::kQueue + 100, 'm');
  out(kFcr, 0x01);
  EXPECT_EQ(uart_.receive(bytes_of("f")), 1u);
  EXPECT_EQ(uart_.receive(bytes_of(much)), Uart16550::kQueue);

  std::size_t got = 0;
  while ((in(kLsr)&1) != 0) {
    in(kUartData);
    ++got;
  }

  EXPECT_EQ(got, 1 + Uart16550::kQueue);
  EXPECT_EQ(rooms_, 1u);
  EXPECT_EQ(uart_.receive(bytes_of("z")), 1u);
  EXPECT_EQ(in(kUartData), std::uint64_t{'z'});
}

TEST_F(Uart, ClearingTheFifoDropsItsSixteenBytesOnly) {
  out(kFcr, 0x01);
  uart_.receive(bytes_of("0123456789abcdefg"));
  out(kFcr, 0x03);
  EXPECT_EQ(in(kUartData), std::uint64_t{'g'});
  EXPECT_EQ(in(kLsr)&1, 0u);
}

TEST_F(Uart, ASinkWithoutRoomHoldsTheTransmitterBack) {
  sink_room_ = 3;
  out(kFcr, 0x01);
  out(kIer, 2);
  in(kIir);
  for (const char c : std::string("abcdef")) out(kUartData, std::uint64_t(c));

  EXPECT_EQ(sent_, "abc");
  EXPECT_EQ(in(kLsr), 0u) << "not empty, not idle";
  EXPECT_EQ(in(kIir), 0xc1u);
  EXPECT_FALSE(line_.level());

  sink_room_ = 100;
  uart_.output_ready();
  EXPECT_EQ(sent_, "abcdef");
  EXPECT_EQ(in(kIir), 0xc2u);

  sink_room_ = 0;
  for (int i = 0; i < 100; ++i) out(kUartData, 'o');
  sink_room_ = 100;
  uart_.output_ready();
  EXPECT_EQ(sent_, "abcdef" + std::string(16, 'o')) << "a full FIFO takes no more";
}

TEST_F(Uart, HasADivisorLatchAndAScratchRegister) {
  out(kLcr, 0x83);
  out(kUartData, 1);
  out(kIer, 2);
  EXPECT_EQ(in(kUartData), 1u);
  EXPECT_EQ(in(kIer), 2u);
  out(kLcr, 0x03);
  EXPECT_EQ(in(kIer), 0u);
  EXPECT_EQ(in(kLcr), 3u);
  EXPECT_EQ(sent_, "");
  out(kScratch, 0xa5);
  EXPECT_EQ(in(kScratch), 0xa5u);
  out(kIer, 0xff);
  EXPECT_EQ(in(kIer), 0x0fu);
}

TEST_F(Uart, AWideAccessIsOneForEachPort) {
  write_to(uart_, kScratch - 1, 0x5a00, 2);
  EXPECT_EQ(read_from(uart_, kMsr, 2), 0x5ab0u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
