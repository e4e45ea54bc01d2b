#include <gtest/gtest.h>

#include <cstring>

#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/vcpu/exit_handlers.h"
#include "vmm/kvm/vcpu/fakes_for_tests.h"

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;
using Values = std::array<std::uint64_t, 6>;

/// Answers with the number of the access, and keeps what is written.
class CountingDevice final : public Device {
 public:
  void read(std::uint64_t, std::span<std::byte> data) override {
    put_value(data, ++reads);
    sizes.push_back(data.size());
  }
  void write(std::uint64_t offset, std::span<const std::byte> data) override {
    written.emplace_back(offset, value_of(data));
  }

  std::uint64_t reads = 0;
  std::vector<std::size_t> sizes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> written;
};

class IoExitsTest : public ::testing::Test {
 protected:
  IoExitsTest() {
    EXPECT_TRUE(ports_.add(0x80, 4, device_));
    EXPECT_TRUE(mmio_.add(0xd000'0000, 0x100, device_));
  }
  void port(std::uint8_t direction, std::uint8_t size, std::uint32_t count) {
    auto& io = fakes_.kvm.area.io;
    io.direction = direction;
    io.port = 0x80;
    io.size = size;
    io.count = count;
    exits_.on_port(std::span(data_).first(std::size_t{size} * count));
  }
  void mmio(std::uint64_t at, std::uint32_t length, bool write) {
    auto& mmio = fakes_.kvm.area.mmio;
    mmio.phys_addr = at;
    mmio.len = length;
    mmio.is_write = write ? 1 : 0;
    exits_.on_mmio();
  }

  VcpuFakes fakes_;
  CountingDevice device_;
  Bus ports_, mmio_;
  IoExits exits_{fakes_.exit, fakes_.kvm, ports_, mmio_, fakes_.subscription};
  std::array<std::byte, 16> data_{};
};

TEST_F(IoExitsTest, AStringInstructionMakesEachOfItsAccesses) {
  fakes_.want(Kind::PortIn);
  data_.fill(std::byte{0xff});

  port(KVM_EXIT_IO_IN, 2, 3);

  EXPECT_EQ(device_.reads, 3u);
  EXPECT_EQ(value_of(std::span(data_).first(6)), 0x0003'0002'0001u);
  ASSERT_EQ(fakes_.sink.events.size(), 1u);
  EXPECT_EQ(fakes_.sink.events[0].kind, Kind::PortIn);
  EXPECT_EQ(fakes_.sink.events[0].values, (Values{0x80, 2, 3, 1}));
}

TEST_F(IoExitsTest, AWriteReachesTheDeviceAlsoWhenNobodyWantsEvents) {
  data_[0] = std::byte{0x42};

  port(KVM_EXIT_IO_OUT, 1, 1);

  EXPECT_EQ(device_.written, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 0x42}}));
  EXPECT_TRUE(fakes_.sink.events.empty());
}

TEST_F(IoExitsTest, NumbersWithoutBytesDoNothing) {
  fakes_.want(Kind::PortOut);
  auto& io = fakes_.kvm.area.io;
  io.direction = KVM_EXIT_IO_OUT;
  io.port = 0x80;
  io.size = 4;
  io.count = 1'000'000;

  exits_.on_port({});

  EXPECT_TRUE(device_.written.empty());
  EXPECT_TRUE(fakes_.sink.events.empty());
}

TEST_F(IoExitsTest, AnAccessToMemoryThatIsNoWordGoesByteByByte) {
  fakes_.want(Kind::MmioRead);
  std::memset(fakes_.kvm.area.mmio.data, 0xff, 8);

  mmio(0xd000'0010, 3, false);

  EXPECT_EQ(device_.sizes, (std::vector<std::size_t>{1, 1, 1}));
  ASSERT_EQ(fakes_.sink.events.size(), 1u);
  EXPECT_EQ(fakes_.sink.events[0].values, (Values{0xd000'0010, 3, 0x03'02'01}));
}

TEST_F(IoExitsTest, ALengthBeyondTheAreaIsCut) {
  mmio(0xd000'0000, 0xffff, true);

  ASSERT_EQ(device_.written.size(), 1u);
}

TEST_F(IoExitsTest, AnMsrThatKvmDoesNotTakeIsAFault) {
  fakes_.want(Kind::MsrRead);
  fakes_.kvm.msrs[0x10] = 77;
  auto& msr = fakes_.kvm.area.msr;

  msr.index = 0x10;
  exits_.on_msr_read();
  EXPECT_EQ(msr.error, 0);
  EXPECT_EQ(msr.data, 77u);
  msr.index = 0x4b564d99;
  exits_.on_msr_read();
  EXPECT_EQ(msr.error, 1);
  msr.data = 5;
  exits_.on_msr_write();
  EXPECT_EQ(msr.error, 1);

  ASSERT_EQ(fakes_.sink.events.size(), 2u);
  EXPECT_EQ(fakes_.sink.events[0].values, (Values{0x10, 77}));
  EXPECT_EQ(fakes_.sink.events[1].values, (Values{0x4b564d99, 0}));
}

}  // namespace
}  // namespace ringside::vmm::kvm
