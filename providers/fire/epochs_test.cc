#include "providers/fire/epochs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace ringside::providers {
namespace {

/// Says how many of its kind live, and is a wreck once it does not.
struct Epoch {
  explicit Epoch(std::uint64_t of, std::atomic<int>& count) : number(of), copy(of), live(count) {
    ++live;
  }
  ~Epoch() {
    number = ~std::uint64_t{0};
    --live;
  }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  std::uint64_t number, copy;
  std::atomic<int>& live;
};

TEST(EpochsTest, OneThatIsReadOutlivesItsSuccessor) {
  std::atomic<int> live = 0;
  Epochs<Epoch> epochs(std::make_unique<const Epoch>(1, live));
  std::optional<std::thread> writer;
  {
    const auto pin = epochs.pin();
    writer.emplace([&] { epochs.publish(std::make_unique<const Epoch>(2, live)); });
    while (epochs.pin()->number != 2) std::this_thread::yield();
    EXPECT_EQ(pin->number, 1u);
    EXPECT_EQ(live, 2);
  }
  writer->join();

  EXPECT_EQ(live, 1);
}

TEST(EpochsTest, OnesPinnedInOneThreadAreEachTheirOwn) {
  std::atomic<int> live = 0;
  Epochs<Epoch> epochs(std::make_unique<const Epoch>(1, live));

  const auto outer = epochs.pin();
  { const auto inner = epochs.pin(); }

  EXPECT_EQ(outer->number, 1u);
}

TEST(EpochsTest, ReadersNeverSeeOneThatIsGoneNorOneOlderThanBefore) {
  constexpr unsigned kReaders = 4;
  constexpr std::uint64_t kEpochs = 300;
  std::atomic<int> live = 0;
  std::atomic<bool> ended = false;
  std::atomic<std::uint64_t> wrong = 0, published = 1;
  {
    Epochs<Epoch> epochs(std::make_unique<const Epoch>(1, live));
    std::vector<std::thread> readers;
    for (unsigned reader = 0; reader < kReaders; ++reader) {
      readers.emplace_back([&, reader] {
        std::uint64_t last = 0;
        for (unsigned n = 0; !ended; ++n) {
          const std::uint64_t at_least = published;
          const auto pin = epochs.pin();
          if ((n + reader) % 64 == 0) std::this_thread::yield();  // in the middle of a firing
          const std::uint64_t seen = pin->number;
          if (seen < last || seen < at_least || seen != pin->copy) ++wrong;
          last = seen;
        }
      });
    }
    for (std::uint64_t n = 2; n <= kEpochs; ++n) {
      epochs.publish(std::make_unique<const Epoch>(n, live));
      published = n;
      if (live != 1) ++wrong;
    }
    ended = true;
    for (std::thread& reader : readers) reader.join();
  }

  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(live, 0);
}

}  // namespace
}  // namespace ringside::providers
