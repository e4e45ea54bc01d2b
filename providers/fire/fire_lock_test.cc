#include "providers/fire/fire_lock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace ringside::providers {
namespace {

TEST(FireLockTurns, AreOneAtATimeWhoeverAsks) {
  constexpr unsigned kThreads = 4, kEach = 20'000;
  FireLock lock;
  std::uint64_t counted = 0;  // not atomic: the lock must order it
  std::vector<std::thread> vcpus;
  for (unsigned i = 0; i < kThreads; ++i) {
    vcpus.emplace_back([&] {
      for (unsigned n = 0; n < kEach; ++n) {
        const std::lock_guard turn(lock);
        ++counted;
      }
    });
  }
  for (unsigned n = 0; n < kEach; ++n) {
    const FireTurn turn(lock);
    ++counted;
  }
  for (std::thread& vcpu : vcpus) vcpu.join();

  EXPECT_EQ(counted, std::uint64_t{kThreads + 1} * kEach);
}

TEST(FireLockTurns, TheFireThreadsIsNextHoweverManyVcpusWant) {
  FireLock lock;
  std::atomic<bool> stop = false;
  std::vector<std::thread> vcpus;
  for (int i = 0; i < 3; ++i) {
    vcpus.emplace_back([&] {
      while (!stop) const std::lock_guard turn(lock);
    });
  }
  const auto begun = std::chrono::steady_clock::now();
  for (int n = 0; n < 200; ++n) const FireTurn turn(lock);
  const auto took = std::chrono::steady_clock::now() - begun;
  stop = true;
  for (std::thread& vcpu : vcpus) vcpu.join();

  EXPECT_LT(took, std::chrono::seconds(4)) << "the shim's patience with a silent host is short";
}

TEST(FireLockTurns, AVcpuGetsOneFromAFireThreadThatNeverRests) {
  FireLock lock;
  std::atomic<bool> stop = false;
  std::thread fire([&] {
    while (!stop) const FireTurn turn(lock);
  });
  for (int n = 0; n < 1000; ++n) const std::lock_guard turn(lock);
  stop = true;
  fire.join();
}

TEST(FireLockTurns, ASleeperWakes) {
  FireLock lock;
  for (const bool fire_thread : {false, true}) {
    lock.lock();
    std::atomic<bool> got = false;
    std::thread waiter([&] {
      fire_thread ? lock.lock_next() : lock.lock();
      got = true;
      lock.unlock();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // beyond its spinning
    EXPECT_FALSE(got);
    lock.unlock();
    waiter.join();
    EXPECT_TRUE(got);
  }
}

}  // namespace
}  // namespace ringside::providers
