// The hand-over between the fire thread and the consumer.
#include "dif/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "dif/engine/fire_context.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr ProbeId kProbe{1};

Program count_and_trace() {
  Program source = count_by_execname();
  source.clauses.push_back(clause({}));
  return source;
}

TEST(EngineHandover, NothingIsLostOrSeenTwiceWhileFiring) {
  Engine engine(*verify_program(count_and_trace()), {}, 1);
  engine.enable(0, kProbe, {});
  engine.enable(1, kProbe, {});
  constexpr std::uint64_t kFirings = 20000;
  std::thread firing([&] {
    const FakeGuest guest;
    for (std::uint64_t i = 0; i < kFirings; ++i) {
      engine.fire(kProbe, FireRecord{0, i, 0}, guest);
      engine.serve_requests();
    }
    engine.stop_serving();
  });

  std::uint64_t records = 0, counted = 0, next = 0;
  const auto add = [&](const Harvest& harvest) {
    for (const Record& record : harvest.records) EXPECT_EQ(record.timestamp, next++);
    records += harvest.records.size();
    for (const AggregateEntry& entry : harvest.aggregates) {
      counted += static_cast<std::uint64_t>(entry.words[0]);
    }
    for (const auto& drops : harvest.drops) {
      for (const std::uint64_t drop : drops) EXPECT_EQ(drop, 0u);
    }
  };
  for (int i = 0; i < 50; ++i) add(engine.take());
  firing.join();
  add(engine.take());

  EXPECT_EQ(records, kFirings);
  EXPECT_EQ(counted, kFirings);
}

TEST(EngineHandover, TakeEndsWhenTheFireThreadStopsInsteadOfServing) {
  Engine engine(*verify_program(count_and_trace()), {}, 1);
  engine.enable(1, kProbe, {});
  std::atomic<bool> asked = false;
  std::thread firing([&] {
    engine.fire(kProbe, FireRecord{0, 1, 0}, FakeGuest());
    asked.wait(false);
    engine.stop_serving();
  });

  asked = true;
  asked.notify_one();
  std::size_t records = engine.take().records.size();
  firing.join();
  records += engine.take().records.size();

  EXPECT_EQ(records, 1u);
}

TEST(FireContext, IsMarkedOnItsThreadOnly) {
  std::atomic<bool> look = false, elsewhere = true;
  std::thread other([&] {
    look.wait(false);
    elsewhere = in_fire_context();
  });
  EXPECT_FALSE(in_fire_context());
  bool here = false;
  {
    const FireScope scope;
    here = in_fire_context();
    look = true;
    look.notify_one();
    other.join();
  }

  EXPECT_TRUE(here);
  EXPECT_FALSE(elsewhere);
  EXPECT_FALSE(in_fire_context());
}

TEST(FireContextDeathTest, AnAllocationDuringAFiringAborts) {
  EXPECT_DEATH(
      {
        const FireScope scope;
        ::operator delete(::operator new(100));  // not a string's, which clang leaves out
      },
      "in_fire_context");
}

}  // namespace
}  // namespace ringside::dif
