#include "vmm/kvm/devices/virtio_mmio.h"

#include <gtest/gtest.h>

#include <thread>

#include "vmm/kvm/devices/testing/fake_driver.h"
#include "vmm/kvm/devices/virtio_device.h"
#include "vmm/kvm/devices/virtio_rng.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kVersion1 = std::uint64_t{1} << 32, kEvents = std::uint64_t{1} << 29;

/// Answers with how many bytes the chain had to read, and counts.
class Counter final : public VirtioDevice {
 public:
  std::uint32_t id() const override { return 42; }
  std::uint64_t features() const override { return 0x11; }
  std::span<const std::uint16_t> queue_sizes() const override { return kSizes; }
  std::span<const std::byte> config() const override { return bytes_of("0123456789"); }
  std::optional<std::uint32_t> answer(unsigned queue, const DescriptorChain& chain) override {
    ++answered[queue];
    if (meanwhile) meanwhile();
    return static_cast<std::uint32_t>(chain.readable_size);
  }
  std::array<std::atomic<unsigned>, 2> answered{};
  std::function<void()> meanwhile;  // what the driver does while a chain is being answered

 private:
  static constexpr std::array<std::uint16_t, 2> kSizes{8, 16};
};

class Transport : public testing::Test {
 protected:
  std::uint64_t in(std::uint64_t offset) { return read_from(mmio_, offset, 4); }
  void out(std::uint64_t offset, std::uint64_t value) { write_to(mmio_, offset, value, 4); }

  FakeLine line_;
  FakeDriver driver_;
  Counter device_;
  VirtioMmio mmio_{line_, driver_.memory(), device_};
};

TEST_F(Transport, SaysWhatItIs) {
  EXPECT_EQ(in(0x000), 0x7472'6976u);
  EXPECT_EQ(in(0x004), 2u);
  EXPECT_EQ(in(0x008), 42u);
  EXPECT_EQ(in(0x0fc), 0u);
  EXPECT_EQ(in(0x0b0), UINT32_MAX) << "no shared memory";
  EXPECT_EQ(in(0x0b4), UINT32_MAX);
  EXPECT_EQ(in(0x0c0), UINT32_MAX);
  EXPECT_EQ(read_from(mmio_, 0x000, 1), 0xffu) << "registers are 32 bits wide";
  EXPECT_EQ(read_from(mmio_, 0x002, 4), UINT32_MAX);
  out(0x030, 0);
  EXPECT_EQ(in(0x034), 8u);
  out(0x030, 1);
  EXPECT_EQ(in(0x034), 16u);
  out(0x030, 2);
  EXPECT_EQ(in(0x034), 0u) << "no such queue";
}

TEST_F(Transport, ShowsTheConfigurationAtAnyWidth) {
  EXPECT_EQ(read_from(mmio_, 0x100, 1), std::uint64_t{'0'});
  EXPECT_EQ(read_from(mmio_, 0x101, 2), 0x3231u);
  EXPECT_EQ(read_from(mmio_, 0x102, 8), 0x3938'3736'3534'3332u);
  EXPECT_EQ(read_from(mmio_, 0x108, 4), 0xffff'3938u);
  EXPECT_EQ(read_from(mmio_, 0x1f8, 8), UINT64_MAX);
}

TEST_F(Transport, NegotiatesOnlyWhatItOffered) {
  out(0x014, 0);
  EXPECT_EQ(in(0x010), 0x3000'0011u);
  out(0x014, 1);
  EXPECT_EQ(in(0x010), 1u);
  out(0x014, 2);
  EXPECT_EQ(in(0x010), 0u);

  EXPECT_EQ(driver_.bring_up(mmio_, 2, kVersion1 | 0x10), 15u);
  EXPECT_EQ(driver_.bring_up(mmio_, 2, 0x10), 3u) << "a driver from before version 1";
  EXPECT_EQ(driver_.bring_up(mmio_, 2, kVersion1 | 2), 3u) << "a feature that is not there";
}

TEST_F(Transport, ServesAQueueAndInterruptsUntilAcknowledged) {
  ASSERT_EQ(driver_.bring_up(mmio_, 2), 15u);
  driver_.select(1);
  driver_.offer(0, {{kData, 5}});
  out(0x050, 1);

  EXPECT_EQ(device_.answered[1], 1u);
  EXPECT_EQ(driver_.used(0), std::pair(0u, 5u));
  EXPECT_TRUE(line_.level());
  EXPECT_EQ(in(0x060), 1u);
  out(0x064, 1);
  EXPECT_FALSE(line_.level());
  EXPECT_EQ(in(0x060), 0u);
  out(0x050, 2);
  out(0x050, UINT32_MAX);
  EXPECT_FALSE(line_.level()) << "queues that do not exist";
}

TEST_F(Transport, TouchesNoQueueBeforeTheDriverIsReadyNorAfterAReset) {
  driver_.offer(0, {{kData, 5}});
  out(0x050, 0);
  EXPECT_EQ(device_.answered[0], 0u);
  ASSERT_EQ(driver_.bring_up(mmio_), 15u);
  out(0x050, 0);
  ASSERT_EQ(device_.answered[0], 1u);

  out(0x070, 0);
  driver_.offer(1, {{kData, 5}});
  out(0x050, 0);

  EXPECT_EQ(device_.answered[0], 1u);
  EXPECT_EQ(in(0x070), 0u);
  EXPECT_EQ(in(0x044), 0u) << "the queue is not ready any more";
  EXPECT_FALSE(line_.level());
}

TEST_F(Transport, ADriverThatBreaksTheRulesIsAskedToReset) {
  ASSERT_EQ(driver_.bring_up(mmio_), 15u);
  driver_.offer(0, {{kData, 1}});
  driver_.offer(8);
  out(0x050, 0);

  EXPECT_EQ(in(0x070), 15u | 64);
  EXPECT_EQ(in(0x060), 3u) << "the good chain is used; the configuration interrupt tells the rest";
  EXPECT_EQ(device_.answered[0], 1u);
}

TEST(VirtioComplaint, TellsTheFirstBrokenRuleOnceInTheDevicesLife) {
  FakeLine line;
  FakeDriver driver;
  Counter device;
  std::vector<std::string> complaints;
  VirtioMmio mmio(line, driver.memory(), device, {},
                  [&](std::string_view rule) { complaints.emplace_back(rule); });
  for (int life = 0; life < 2; ++life) {
    ASSERT_EQ(driver.bring_up(mmio), 15u) << "a reset makes the device good again";
    driver.put(driver.rings().driver.raw() + 2, std::uint16_t{0});
    driver.offer(0, {{0x1000, 16}});
    driver.offer(8);
    write_to(mmio, 0x050, 0, 4);
    EXPECT_EQ(read_from(mmio, 0x070, 4), 15u | 64);
  }

  EXPECT_EQ(complaints, std::vector<std::string>{"a buffer outside the guest's memory"});
}

TEST_F(Transport, AQueueWithBadRingsAsksForAReset) {
  driver_.bring_up(mmio_);
  out(0x070, 0);
  out(0x024, 1);
  out(0x020, 1);
  out(0x070, 11);
  out(0x038, 8);
  out(0x080, 8);
  out(0x044, 1);
  EXPECT_EQ(in(0x044), 1u);
  out(0x070, 15);
  EXPECT_EQ(in(0x070), 15u | 64);
  out(0x050, 0);
  EXPECT_EQ(device_.answered[0], 0u);
}

TEST_F(Transport, ASizeThatIsTooLargeIsNotTaken) {
  FakeDriver large(16);
  VirtioMmio mmio(line_, large.memory(), device_);
  EXPECT_EQ(large.bring_up(mmio), 15u | 64) << "the first queue has 8 entries at most";
}

TEST_F(Transport, FixesAQueueOnceItIsReady) {
  ASSERT_EQ(driver_.bring_up(mmio_), 15u);
  out(0x080, 0xdead'0000);
  out(0x044, 0);
  EXPECT_EQ(in(0x044), 1u);
  driver_.offer(0, {{kData, 1}});
  out(0x050, 0);
  EXPECT_EQ(device_.answered[0], 1u);
}

TEST_F(Transport, WithEventIndexesInterruptsOnlyAtTheMark) {
  ASSERT_EQ(driver_.bring_up(mmio_, 1, kVersion1 | kEvents), 15u);
  driver_.set_used_event(1);
  driver_.offer(0, {{kData, 1}});
  out(0x050, 0);
  EXPECT_FALSE(line_.level());
  EXPECT_EQ(driver_.avail_event(), 1u);
  driver_.offer(1, {{kData, 1}});
  out(0x050, 0);
  EXPECT_TRUE(line_.level());
}

TEST(VirtioPortions, ADriverThatNeverStopsIsServedInPortions) {
  FakeLine line;
  FakeDriver driver;
  Counter device;
  unsigned kicks = 0;
  VirtioMmio mmio(line, driver.memory(), device, [&](unsigned) { ++kicks; });
  ASSERT_EQ(driver.bring_up(mmio), 15u);
  device.meanwhile = [&] { driver.offer(0); };
  driver.offer(0, {{kData, 1}});
  write_to(mmio, 0x050, 0, 4);
  ASSERT_EQ(kicks, 1u);

  device.notify(0);
  EXPECT_EQ(device.answered[0], 16u) << "twice the queue's size";
  EXPECT_EQ(kicks, 2u) << "its worker comes back to it";

  device.meanwhile = {};
  device.notify(0);
  EXPECT_EQ(device.answered[0], 17u);
  EXPECT_EQ(kicks, 2u);
  EXPECT_FALSE(driver.notifications_suppressed());
}

TEST(VirtioWorker, ServesOnItsThreadAndEndsWithItsOwner) {
  FakeLine line;
  FakeDriver driver(16);
  VirtioRng rng;
  auto worker = VirtioWorker::create(rng);
  ASSERT_TRUE(worker);
  VirtioMmio mmio(line, driver.memory(), rng, [&](unsigned) { (*worker)->kick(); });
  ASSERT_EQ(driver.bring_up(mmio), 15u);
  driver.offer(0, {{kData, 64, FakeDriver::kWrite}});
  write_to(mmio, 0x050, 0, 4);

  while (!line.level()) std::this_thread::yield();
  EXPECT_EQ(driver.used(0), std::pair(0u, 64u));
  EXPECT_NE(driver.text(kData, 64), std::string(64, '\0'));
  EXPECT_EQ(read_from(mmio, 0x060, 4), 1u);
}

TEST(VirtioRng, GivesOnePieceOfItsLimitAndNothingToAReader) {
  FakeLine line;
  FakeDriver driver;
  VirtioRng rng;
  VirtioMmio mmio(line, driver.memory(), rng);
  ASSERT_EQ(driver.bring_up(mmio), 15u);
  driver.offer(0, {{kData, 1 << 20, FakeDriver::kWrite}});
  driver.offer(1, {{kData, 16}});
  write_to(mmio, 0x050, 0, 4);

  EXPECT_EQ(driver.used(0), std::pair(0u, 4096u));
  EXPECT_EQ(driver.text(kData + 4096, 64), std::string(64, '\0'));
  EXPECT_EQ(driver.used(1), std::pair(1u, 0u));
}

}  // namespace
}  // namespace ringside::vmm::kvm
