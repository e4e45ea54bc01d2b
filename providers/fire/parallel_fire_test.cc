// The way from mailboxes to the engine on several threads at once: vCPUs that ring, threads that
// poll, a consumer that takes, timers of the host, and a clock that all of them ask.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "dif/engine/engine.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/dispatch/engine_sink.h"
#include "providers/fire/poller.h"
#include "providers/testing/ringing_guest_for_tests.h"

namespace ringside::providers {
namespace {

using namespace dif::testing;

constexpr dif::ProbeId kTrap{1};
constexpr unsigned kVcpus = RingingGuest::kVcpus;
constexpr std::uint64_t kTraps = 1000;

/// `@[execname] = count(); trace(timestamp)`.
dif::Program counting() {
  dif::Program source = count_by_execname();
  source.clauses.push_back(
      clause({action(dif::ActionKind::Trace, {builtin(dif::Builtin::Timestamp)})}));
  return source;
}

class ParallelFire : public ::testing::Test {
 protected:
  ParallelFire() {
    engine_.enable(0, kTrap, {"fbt", "vmlinux", "f", "entry"});
    engine_.enable(1, kTrap, {"fbt", "vmlinux", "f", "entry"});
  }
  void add(const dif::TraceData& trace_data) {
    records_ += trace_data.records.size();
    for (const dif::AggregateEntry& entry : trace_data.aggregates) {
      counted_ += static_cast<std::uint64_t>(entry.words[0]);
    }
    for (const auto& drops : trace_data.drops) {
      for (const std::uint64_t drop : drops) EXPECT_EQ(drop, 0u);
    }
    EXPECT_TRUE(trace_data.faults.empty());
  }
  /// Each vCPU traps kTraps times and waits for the answer, as `answer` has it, while the consumer
  /// takes and the clock is told of pauses.
  template <class Answer>
  void run(Answer answer) {
    std::atomic<unsigned> running = kVcpus;
    std::latch all_there(kVcpus);
    std::vector<std::thread> vcpus;
    for (unsigned index = 0; index < kVcpus; ++index) {
      vcpus.emplace_back([&, index] {
        std::minstd_rand random(index + 1);
        vmm::FakeStoppedVcpu self(index);
        all_there.arrive_and_wait();
        for (std::uint64_t n = 1; n <= kTraps; ++n) {
          guest_.raise(index);
          answer(self);
          while (!guest_.region.is_answered(index)) std::this_thread::yield();
          if (random() % 16 == 0) std::this_thread::yield();
        }
        --running;
      });
    }
    for (std::uint64_t n = 1; running != 0; ++n) {
      add(engine_.take());
      guest_.clock.set_wall(n, static_cast<std::int64_t>(n));
      guest_.stop_times.begin(n);
      guest_.stop_times.end(n + 1);
      guest_.shim.heartbeat();
    }
    for (std::thread& vcpu : vcpus) vcpu.join();
    add(engine_.take());
  }

  dif::Engine engine_{*dif::verify_program(counting()), {}, kVcpus};
  EngineSink sink_{engine_, kVcpus};
  RingingGuest guest_{sink_, kTrap};
  std::uint64_t records_ = 0, counted_ = 0;
};

TEST_F(ParallelFire, EveryRingFiresOnceOnItsVcpusThread) {
  run([&](vmm::FakeStoppedVcpu& self) { guest_.channel.on_doorbell(self, self.index()); });

  EXPECT_EQ(counted_, kVcpus * kTraps);
  EXPECT_EQ(records_, kVcpus * kTraps);
}

TEST_F(ParallelFire, EveryTrapFiresOnceHoweverManyThreadsPoll) {
  {
    const Poller first({guest_.shim, guest_.handlers}, {0, 2}),
        second({guest_.shim, guest_.handlers}, {1, 2});
    // Somebody else looks at everything, as where a bell was not heard.
    const Poller both({guest_.shim, guest_.handlers}, {});
    run([](vmm::FakeStoppedVcpu&) {});
  }

  EXPECT_EQ(counted_, kVcpus * kTraps);
  EXPECT_EQ(records_, kVcpus * kTraps);
}

TEST_F(ParallelFire, NothingFiresOnceTheGateIsClosedAndTurnsAreOver) {
  std::atomic<bool> closed = false;
  std::thread closing([&] {
    while (guest_.dispatcher.counters().closed == 0 && guest_.shim.counters().firings < kTraps) {
      std::this_thread::yield();
    }
    guest_.dispatcher.close();
    sink_.wait_for_firings();
    add(engine_.take());
    closed = true;
  });
  {
    const Poller poller({guest_.shim, guest_.handlers}, {});
    std::uint64_t after = 0;
    for (std::uint64_t n = 0; n < kTraps * 2; ++n) {
      if (closed) ++after;
      guest_.raise(n % kVcpus);
      while (!guest_.region.is_answered(n % kVcpus)) std::this_thread::yield();
    }
    closing.join();
    EXPECT_GE(guest_.dispatcher.counters().closed, after);
  }
  const std::uint64_t fired = counted_;
  add(engine_.take());

  EXPECT_EQ(counted_, fired);
  EXPECT_EQ(fired + guest_.dispatcher.counters().closed, kTraps * 2);
}

/// A torn line would give times that no firing can have.
TEST(GuestClockThreads, ATimeIsNeverMadeOfTwoLines) {
  constexpr std::uint64_t kOffset = 1'000'000'000;
  vmm::StopTimes stop_times;
  GuestClock clock{TickRate(1'000'000'000), {&stop_times, 0, 0}};
  std::atomic<std::uint64_t> now = 1'000'000;
  (void)clock.trap_time(now + kOffset, now);
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        const std::uint64_t host = now;
        const std::uint64_t time = clock.trap_time(host + kOffset, host + 100);
        EXPECT_GE(time, host);
        EXPECT_LE(time, host + 100) << "when the host has looked";
        EXPECT_GE(clock.wall_of_host(host + (std::uint64_t{1} << 40)), 1 << 20);
      }
    });
  }
  for (int n = 0; n < 5'000; ++n) {
    now.fetch_add(10);
    stop_times.begin(now);
    stop_times.end(now + 5);
    (void)clock.host_time(now);
    clock.set_wall(now, 1 << 20);
    if (n % 64 == 0) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace ringside::providers
