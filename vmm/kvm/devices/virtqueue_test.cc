#include "vmm/kvm/devices/virtqueue.h"

#include <gtest/gtest.h>

#include <thread>

#include "vmm/kvm/devices/testing/fake_driver.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint16_t kNext = FakeDriver::kNext, kIndirect = FakeDriver::kIndirect;

class Queue : public testing::Test {
 protected:
  bool pop() { return queue_.pop(chain_); }

  FakeDriver driver_;
  Virtqueue queue_ = *Virtqueue::create(driver_.memory(), driver_.rings(), false);
  DescriptorChain chain_;
};

TEST_F(Queue, GivesAChainsPiecesInOrder) {
  driver_.put_text(kData, "hello, world");
  driver_.offer(2, {{kData, 5}, {kData + 5, 7}, {kData + 0x100, 4, kWrite}, {kData, 0, kWrite}});

  ASSERT_TRUE(pop());

  EXPECT_EQ(chain_.head, 2u);
  EXPECT_EQ(chain_.readable.size(), 2u);
  EXPECT_EQ(chain_.writable.size(), 1u) << "an empty piece is no piece";
  EXPECT_EQ(chain_.readable_size, 12u);
  EXPECT_EQ(chain_.writable_size, 4u);
  std::array<std::byte, 6> middle{};
  EXPECT_EQ(copy_from(chain_.readable, 3, middle), 6u);
  EXPECT_EQ(std::memcmp(middle.data(), "lo, wo", 6), 0);
  EXPECT_EQ(copy_from(chain_.readable, 10, middle), 2u);
  EXPECT_EQ(copy_to(chain_.writable, 2, bytes_of("xyz")), 2u);
  EXPECT_EQ(driver_.text(kData + 0x102, 2), "xy");
  EXPECT_EQ(slice(chain_.readable, 4, 3).size(), 2u);
  EXPECT_FALSE(pop());
  EXPECT_FALSE(queue_.broken());
}

TEST_F(Queue, GivesBackWithTheLengthAndWrapsAround) {
  for (std::uint16_t i = 0; i < 100; ++i) {
    driver_.offer(i % 8, {{kData, 1, kWrite}});
    ASSERT_TRUE(pop());
    queue_.push(chain_.head, i);
    ASSERT_EQ(driver_.used_index(), i + 1);
    ASSERT_EQ(driver_.used(i), std::pair(std::uint32_t{i} % 8, std::uint32_t{i}));
  }
}

TEST_F(Queue, FollowsATableOfItsOwn) {
  driver_.descriptor_at(kData + 0x1000, kData, 3, kNext, 2);
  driver_.descriptor_at(kData + 0x1020, kData + 8, 4, kWrite, 0);
  driver_.offer(5, {{kData + 0x1000, 3 * 16, kIndirect}});

  ASSERT_TRUE(pop());

  EXPECT_EQ(chain_.head, 5u);
  EXPECT_EQ(chain_.readable_size, 3u);
  EXPECT_EQ(chain_.writable_size, 4u);
}

// Linux's requests of as many pieces as a disk takes fill the table, and the descriptor that leads
// to it comes on top.
TEST_F(Queue, TakesATableAsLongAsTheQueue) {
  const auto fill = [this](std::uint16_t last_flags) {
    for (std::uint16_t i = 0; i < 8; ++i) {
      driver_.descriptor_at(kData + i * std::uint64_t{16}, kData + 0x1000, 1,
                            i < 7 ? kNext : last_flags, (i + 1) % 8);
    }
  };
  fill(0);
  driver_.offer(5, {{kData, 8 * 16, kIndirect}});
  ASSERT_TRUE(pop());
  EXPECT_EQ(chain_.readable_size, 8u);
  fill(kNext);
  driver_.offer(6, {{kData, 8 * 16, kIndirect}});
  EXPECT_FALSE(pop()) << "a cycle";
  EXPECT_TRUE(queue_.broken());
}

// Hostile or broken drivers: each breaks the queue, which then gives nothing more.
struct Wrong {
  const char* what;
  const char* rule;  // what broken_rule() begins with
  void (*offer)(FakeDriver& driver);
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name.
void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.what;
}

class BrokenQueue : public testing::TestWithParam<Wrong> {};

TEST_P(BrokenQueue, GivesNothingMore) {
  FakeDriver driver;
  auto queue = *Virtqueue::create(driver.memory(), driver.rings(), false);
  DescriptorChain chain;
  GetParam().offer(driver);

  EXPECT_FALSE(queue.pop(chain));
  EXPECT_TRUE(queue.broken());
  EXPECT_TRUE(queue.broken_rule().starts_with(GetParam().rule)) << queue.broken_rule();
  EXPECT_FALSE(queue.enable_notifications());
  driver.offer(0, {{kData, 1}});
  EXPECT_FALSE(queue.pop(chain));
}

INSTANTIATE_TEST_SUITE_P(
    Every, BrokenQueue,
    testing::Values(
        Wrong{"a head outside the table", "a descriptor's number that",
              [](FakeDriver& d) { d.offer(8); }},
        Wrong{"an index far ahead", "more chains at once than",
              [](FakeDriver& d) { d.put(d.rings().driver.raw() + 2, std::uint16_t{9}); }},
        Wrong{"a chain that bites its tail", "a chain longer than the queue, or",
              [](FakeDriver& d) {
                d.descriptor(0, kData, 1, kNext, 1);
                d.descriptor(1, kData, 1, kNext, 0);
                d.offer(0);
              }},
        Wrong{"a next outside the table", "a descriptor's number that",
              [](FakeDriver& d) {
                d.descriptor(0, kData, 1, kNext, 8);
                d.offer(0);
              }},
        Wrong{"an address outside RAM", "a buffer outside",
              [](FakeDriver& d) {
                d.offer(0, {{0x1000, 16}});
              }},
        Wrong{"a piece that leaves RAM", "a buffer outside",
              [](FakeDriver& d) {
                d.offer(0, {{FakeDriver::kRam + FakeDriver::kRamSize - 1, 2}});
              }},
        Wrong{"an address that wraps", "a buffer outside",
              [](FakeDriver& d) {
                d.offer(0, {{UINT64_MAX - 1, 16}});
              }},
        Wrong{"the longest length", "a buffer outside",
              [](FakeDriver& d) {
                d.offer(0, {{kData, UINT32_MAX}});
              }},
        Wrong{"reading after writing", "a buffer to be read after",
              [](FakeDriver& d) {
                d.offer(0, {{kData, 1, kWrite}, {kData, 1}});
              }},
        Wrong{"a table and a next", "a chain that goes on after",
              [](FakeDriver& d) {
                d.offer(0, {{kData, 16, kIndirect}, {kData, 1}});
              }},
        Wrong{"a table of no size", "an indirect table of a wrong size",
              [](FakeDriver& d) {
                d.offer(0, {{kData, 0, kIndirect}});
              }},
        Wrong{"half a descriptor", "an indirect table of a wrong size",
              [](FakeDriver& d) {
                d.offer(0, {{kData, 24, kIndirect}});
              }},
        Wrong{"a table larger than the queue", "an indirect table of a wrong size",
              [](FakeDriver& d) {
                d.offer(0, {{kData, 9 * 16, kIndirect}});
              }},
        Wrong{"a table outside RAM", "an indirect table outside",
              [](FakeDriver& d) {
                d.offer(0, {{0, 16, kIndirect}});
              }},
        Wrong{"a table in a table", "an indirect table within another",
              [](FakeDriver& d) {
                d.descriptor_at(kData, kData, 16, kIndirect, 0);
                d.offer(0, {{kData, 16, kIndirect}});
              }},
        Wrong{"a table that is the queue's own", "an indirect table within another",
              [](FakeDriver& d) {
                d.offer(0, {{d.rings().descriptors.raw(), 16, kIndirect}});
              }},
        Wrong{"a cycle in a table", "a chain longer than the queue, or", [](FakeDriver& d) {
                d.descriptor_at(kData, kData, 16, kNext, 0);
                d.offer(0, {{kData, 16, kIndirect}});
              }}));

TEST(VirtqueueCreate, RefusesRingsOutsideRamMisalignedOrOfAnOddSize) {
  FakeDriver driver;
  const auto create = [&](auto change) {
    Virtqueue::Rings rings = driver.rings();
    change(rings);
    return Virtqueue::create(driver.memory(), rings, true).has_value();
  };
  EXPECT_TRUE(create([](auto&) {}));
  EXPECT_FALSE(create([](auto& p) { p.size = 0; }));
  EXPECT_FALSE(create([](auto& p) { p.size = 7; }));
  EXPECT_FALSE(create([](auto& p) { p.descriptors = GuestPhys(FakeDriver::kRam + 8); }));
  EXPECT_FALSE(create([](auto& p) { p.driver = GuestPhys(FakeDriver::kRam + 1); }));
  EXPECT_FALSE(create([](auto& p) { p.device = GuestPhys(FakeDriver::kRam + 2); }));
  EXPECT_FALSE(create([](auto& p) { p.device = GuestPhys(0); }));
  EXPECT_FALSE(create([](auto& p) { p.descriptors = GuestPhys(UINT64_MAX - 15); }));
  const std::uint64_t end = FakeDriver::kRam + FakeDriver::kRamSize;
  EXPECT_TRUE(create([&](auto& p) { p.descriptors = GuestPhys(end - 8 * 16); }));
  EXPECT_FALSE(create([&](auto& p) { p.descriptors = GuestPhys(end - 7 * 16); }));
}

TEST_F(Queue, InterruptsOnceForWhatWasPushedUnlessTheDriverDoesNotWantIt) {
  EXPECT_FALSE(queue_.interrupt_wanted()) << "nothing was pushed";
  queue_.push(0, 0);
  queue_.push(1, 0);
  EXPECT_TRUE(queue_.interrupt_wanted());
  EXPECT_FALSE(queue_.interrupt_wanted());
  driver_.suppress_interrupts();
  queue_.push(2, 0);
  EXPECT_FALSE(queue_.interrupt_wanted());
}

TEST_F(Queue, TurnsNotificationsOffAndTellsWhatItMissed) {
  queue_.disable_notifications();
  EXPECT_TRUE(driver_.notifications_suppressed());
  EXPECT_FALSE(queue_.enable_notifications());
  EXPECT_FALSE(driver_.notifications_suppressed());
  driver_.offer(0, {{kData, 1}});
  EXPECT_TRUE(queue_.enable_notifications());
}

TEST(VirtqueueEvents, InterruptsWhenTheUsedIndexPassesTheDriversMark) {
  FakeDriver driver;
  auto queue = *Virtqueue::create(driver.memory(), driver.rings(), true);
  driver.suppress_interrupts();  // means nothing with event indexes
  driver.set_used_event(1);
  queue.push(0, 0);
  EXPECT_FALSE(queue.interrupt_wanted()) << "index 1: the mark is not passed";
  queue.push(0, 0);
  EXPECT_TRUE(queue.interrupt_wanted());
  queue.push(0, 0);
  EXPECT_FALSE(queue.interrupt_wanted()) << "the mark has passed";
}

TEST(VirtqueueEvents, AsksForANotificationAtTheNextChain) {
  FakeDriver driver;
  auto queue = *Virtqueue::create(driver.memory(), driver.rings(), true);
  DescriptorChain chain;
  for (std::uint16_t i = 0; i < 3; ++i) {
    driver.offer(i, {{kData, 1}});
    ASSERT_TRUE(queue.pop(chain));
  }
  EXPECT_FALSE(queue.enable_notifications());
  EXPECT_EQ(driver.avail_event(), 3u);
}

// A vCPU that offers while a worker takes: nothing is lost, nothing is seen half-written. The
// ring's indexes are accessed here as a driver does, with atomic loads and stores.
TEST(VirtqueueThreads, EveryChainArrivesWholeAndInOrder) {
  constexpr std::uint32_t kRounds = 20'000;
  std::vector<std::byte> ram(0x10000);
  GuestMemory memory({{GuestPhys(0), ram}});
  auto queue =
      *Virtqueue::create(memory, {8, GuestPhys(0), GuestPhys(0x1000), GuestPhys(0x2000)}, false);
  const auto index16 = [&](std::size_t at) {
    return std::atomic_ref(*reinterpret_cast<std::uint16_t*>(&ram[at]));
  };
  std::thread driver([&] {
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      while (std::uint16_t(round - index16(0x2002).load()) >= 8) std::this_thread::yield();
      const std::size_t slot = round % 8;
      const std::uint64_t address = 0x3000 + slot * 8;
      const std::uint32_t length = 4;
      std::memcpy(&ram[0x3000 + slot * 8], &round, 4);
      std::memcpy(&ram[slot * 16], &address, 8);
      std::memcpy(&ram[slot * 16 + 8], &length, 4);
      const auto head = static_cast<std::uint16_t>(slot);
      std::memcpy(&ram[0x1004 + slot * 2], &head, 2);
      index16(0x1002).store(static_cast<std::uint16_t>(round + 1), std::memory_order_release);
    }
  });
  DescriptorChain chain;
  std::uint32_t wrong = 0;
  for (std::uint32_t round = 0; round < kRounds;) {
    if (!queue.pop(chain)) {
      ASSERT_FALSE(queue.broken());
      std::this_thread::yield();
      continue;
    }
    std::uint32_t got = 0;
    copy_from(chain.readable, 0, std::as_writable_bytes(std::span(&got, 1)));
    wrong += got == round ? 0 : 1;
    queue.push(chain.head, 0);
    ++round;
  }
  driver.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
