#include "vmm/kvm/vcpu/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace ringside::vmm::kvm {
namespace {

/// vCPUs whose guest is a loop that ends when they are kicked.
class FakeVcpus {
 public:
  explicit FakeVcpus(unsigned count)
      : kicked_(count), gate_(count, [this](unsigned vcpu) { kicked_[vcpu] = true; }) {
    for (unsigned vcpu = 0; vcpu < count; ++vcpu) {
      threads_.emplace_back([this, vcpu] { run(vcpu); });
    }
  }
  ~FakeVcpus() {
    gate_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  Gate& gate() { return gate_; }
  int inside() const { return inside_; }
  std::uint64_t entries() const { return entries_; }
  void await_entries(std::uint64_t more) {
    const std::uint64_t goal = entries_ + more;
    while (entries_ < goal) std::this_thread::yield();
  }
  /// Each vCPU that comes out wants to be alone then.
  std::atomic<bool> want_alone{false};
  std::atomic<int> most_together{0};

 private:
  void run(unsigned vcpu) {
    while (gate_.enter(vcpu, [&] { kicked_[vcpu] = false; })) {
      ++inside_;
      ++entries_;
      for (int spin = 0; spin < 1000 && !kicked_[vcpu]; ++spin) std::this_thread::yield();
      --inside_;
      gate_.leave(vcpu);
      if (want_alone && gate_.begin_alone(vcpu)) {
        const int together = ++inside_;
        if (together > most_together) most_together = together;
        std::this_thread::yield();
        --inside_;
        gate_.end_alone();
      }
    }
  }

  std::vector<std::atomic<bool>> kicked_;
  std::atomic<int> inside_{0};
  std::atomic<std::uint64_t> entries_{0};
  Gate gate_;
  std::vector<std::thread> threads_;
};

TEST(Gate, NoVcpuIsInsideWhileSomebodyPauses) {
  FakeVcpus vcpus(3);
  vcpus.await_entries(3);

  for (int round = 0; round < 200; ++round) {
    vcpus.gate().pause();
    EXPECT_EQ(vcpus.inside(), 0);
    const std::uint64_t entries = vcpus.entries();
    std::this_thread::yield();
    EXPECT_EQ(vcpus.entries(), entries);
    vcpus.gate().resume();
  }
}

TEST(Gate, PausesNest) {
  FakeVcpus vcpus(2);
  vcpus.await_entries(1);
  vcpus.gate().pause();
  vcpus.gate().pause();

  vcpus.gate().resume();

  const std::uint64_t entries = vcpus.entries();
  std::this_thread::yield();
  EXPECT_EQ(vcpus.entries(), entries);
  vcpus.gate().resume();
  vcpus.await_entries(2);
}

TEST(Gate, AVcpuThatAsksIsAloneInside) {
  FakeVcpus vcpus(4);
  vcpus.want_alone = true;

  vcpus.await_entries(400);

  EXPECT_EQ(vcpus.most_together, 1);
}

TEST(Gate, PausesAndLonelyVcpusGetOnTogether) {
  FakeVcpus vcpus(3);
  vcpus.want_alone = true;

  for (int round = 0; round < 100; ++round) {
    vcpus.gate().pause();
    EXPECT_EQ(vcpus.inside(), 0);
    vcpus.gate().resume();
    vcpus.await_entries(1);
  }
}

TEST(Gate, StopEndsVcpusThatWaitAndVcpusThatRun) {
  FakeVcpus running(2);
  FakeVcpus waiting(2);
  waiting.gate().pause();

  running.gate().stop();
  waiting.gate().stop();  // the destructors join

  EXPECT_FALSE(running.gate().begin_alone(0));
  EXPECT_FALSE(waiting.gate().enter(1, [] {}));
}

}  // namespace
}  // namespace ringside::vmm::kvm
