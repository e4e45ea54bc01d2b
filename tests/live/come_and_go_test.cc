// Probes that come and go while others fire, in live guests: nothing fires outside its enabling,
// nothing is lost in it, and what fires all the time loses nothing meanwhile.
// In the guest, one loop of programs calls what is traced steadily and what is switched; other
// programs call, in lock step with the switching, what nobody else calls.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/tracer/tracer.h"
#include "tests/live/live_guest.h"

namespace ringside::live {
namespace {

using namespace dif::testing;
using providers::Probe;

constexpr unsigned kCycles = 1000;
/// Every so often, the guest's programs run in lock step, too: inside an enabling, and outside.
constexpr unsigned kStepEvery = 40;
constexpr unsigned kCallsAStep = 3;
constexpr unsigned kCallsARound = 2000;
/// Clauses, each with an aggregation of its own.
constexpr std::uint32_t kSteady = 0, kHot = 1, kStepped = 2, kClauses = 3;

/// `@[execname] = count()`, once for each.
dif::Program counters() {
  std::vector<dif::Clause> clauses;
  std::vector<dif::Aggregation> aggregations;
  for (std::uint32_t n = 0; n < kClauses; ++n) {
    clauses.push_back(clause({aggregate(n, {builtin(dif::Builtin::Execname, kString)})}));
    aggregations.push_back({"", dif::AggregateFunction::Count, {kString}, 0});
  }
  return program(std::move(clauses), std::move(aggregations));
}

struct Guest {
  const char* image;
  unsigned vcpus;
};

class ComeAndGo : public testing::TestWithParam<Guest> {
 protected:
  void SetUp() override {
    const auto image = find_live_image(GetParam().image);
    if (!image) GTEST_SKIP() << image.error().message;
    auto guest = LiveGuest::boot(*image, GetParam().vcpus);
    ASSERT_TRUE(guest) << guest.error().message;
    guest_ = std::move(*guest);
    auto tracer = providers::Tracer::attach(&guest_->machine(), &guest_->kernel());
    ASSERT_TRUE(tracer) << tracer.error().message;
    tracer_ = std::move(*tracer);
    engine_.emplace(*dif::verify_program(counters()), dif::EngineOptions{}, tracer_->vcpu_count());
  }
  void TearDown() override {
    if (tracer_) tracer_->stop();
  }

  /// Those that match, all of which the engine knows from now on.
  std::vector<Probe> find(std::uint32_t clause, const dif::ProbeDescription& pattern) {
    std::vector<Probe> probes;
    EXPECT_TRUE(tracer_->for_each_probe(pattern, [&](const Probe& probe) {
      engine_->enable(clause, probe.id, probe.name);
      probes.push_back(probe);
    }));
    EXPECT_FALSE(probes.empty()) << pattern.function;
    return probes;
  }
  std::string ask(const std::string& command) {
    auto said = guest_->run(command);
    EXPECT_TRUE(said) << command << ": " << said.error().message;
    return said.value_or("");
  }
  void merge(const dif::TraceData& trace_data) {
    EXPECT_TRUE(trace_data.faults.empty());
    for (const dif::AggregateEntry& entry : trace_data.aggregates) {
      // SAFETY: the key is text, which the engine ends with a NUL or the key's end.
      const char* const text = reinterpret_cast<const char*>(entry.key.data());
      const std::string name(text, strnlen(text, entry.key.size()));
      counts_[entry.aggregation][name] += static_cast<std::uint64_t>(entry.words[0]);
    }
  }
  /// How often a clause has fired so far, for this program or for all.
  std::uint64_t count(std::uint32_t clause, const std::string& program = "") {
    merge(engine_->take());
    std::uint64_t sum = 0;
    for (const auto& [name, count] : counts_[clause]) {
      if (program.empty() || name == program) sum += count;
    }
    return sum;
  }
  void step() { ask("mkdir /tmp/a /tmp/b /tmp/c && rmdir /tmp/a /tmp/b /tmp/c"); }

  std::unique_ptr<LiveGuest> guest_;
  std::unique_ptr<providers::Tracer> tracer_;
  std::optional<dif::Engine> engine_;
  std::map<std::uint32_t, std::map<std::string, std::uint64_t>> counts_;  // by aggregation
};

TEST_P(ComeAndGo, FiresExactlyInsideItsEnabling) {
  for (const Probe& probe : find(kSteady, {"syscall", "", "getppid", "entry"})) {
    ASSERT_TRUE(tracer_->enable(probe));
  }
  std::vector<Probe> switched = find(kHot, {"fbt", "vmlinux", "vfs_read", ""});
  ASSERT_EQ(switched.size(), 2u) << "entry and return";
  for (const Probe& probe : find(kStepped, {"syscall", "", "mkdir", "entry"})) {
    switched.push_back(probe);
  }
  ASSERT_TRUE(tracer_->start(*engine_));
  ask("dmesg -c >/dev/null; touch /tmp/go; (while [ -e /tmp/go ]; do"
      " workload --getppid " +
      std::to_string(kCallsARound) + " --reads " + std::to_string(kCallsARound) +
      " --read-size 64; echo round >>/tmp/rounds; done;"
      " touch /tmp/over) </dev/null >/dev/null 2>&1 &");

  std::uint64_t steps = 0, fired = 0;
  for (unsigned n = 0; n < kCycles && !HasFailure(); ++n) {
    const bool stepped = n % kStepEvery == 0;
    const auto added = tracer_->add_probes(switched);
    ASSERT_TRUE(added) << added.error().message;
    if (stepped) {
      step();
      steps += kCallsAStep;
    }
    const auto removed = tracer_->remove_probes(switched);
    ASSERT_TRUE(removed) << removed.error().message;

    const std::uint64_t hot = count(kHot);
    if (stepped) step();
    EXPECT_EQ(count(kHot), hot) << "in cycle " << n << ": it was disabled";
    EXPECT_EQ(count(kStepped), steps) << "in cycle " << n;
    fired = hot;
  }
  ask("rm /tmp/go; until [ -e /tmp/over ]; do usleep 10000; done");
  const std::uint64_t rounds = std::stoull(ask("wc -l </tmp/rounds"));
  tracer_->stop();
  merge(engine_->take_quiescent());

  std::cout << fmt::format("{} rounds, {} firings of what came and went\n", rounds, fired);
  EXPECT_EQ(counts_[kSteady]["workload"], rounds * kCallsARound);
  EXPECT_GT(fired, 0u);
  EXPECT_EQ(tracer_->lost_firings(), 0u);
  for (const std::string& notice : tracer_->take_notices()) ADD_FAILURE() << notice;
  EXPECT_EQ(ask("dmesg | grep -iE 'bug|warn|oops|stall|int3|unable|fault|traps:'; true"), "");
}

/// Timers switch a thousand times beside a probe of the kernel's code that counts all the time:
/// `tick` on the fire thread, `profile` by samples that pause the guest, which are fewer.
TEST_P(ComeAndGo, TimersFireInsideTheirEnablingOnly) {
  constexpr unsigned kSampledEvery = 20;
  for (const Probe& probe : find(kSteady, {"syscall", "", "getppid", "entry"})) {
    ASSERT_TRUE(tracer_->enable(probe));
  }
  const std::vector<Probe> ticks = find(kHot, {"profile", "", "", "tick-5000"});
  const std::vector<Probe> samples = find(kStepped, {"profile", "", "", "profile-499"});
  const std::vector<Probe> begin = find(kHot, {"dtrace", "", "", "BEGIN"});
  ASSERT_TRUE(tracer_->start(*engine_));
  const auto late = tracer_->add_probes(begin);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::Unsupported);
  ask("touch /tmp/go; (while [ -e /tmp/go ]; do"
      " workload --getppid " +
      std::to_string(kCallsARound) +
      "; echo round >>/tmp/rounds; done; touch /tmp/over) </dev/null >/dev/null 2>&1 &");

  const auto fires_more = [this](std::uint32_t clause, std::uint64_t before) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (count(clause) == before) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  };
  for (unsigned n = 0; n < kCycles && !HasFailure(); ++n) {
    const bool sampled = n % kSampledEvery == 0;
    std::vector<Probe> switched = ticks;
    if (sampled) switched.insert(switched.end(), samples.begin(), samples.end());
    const std::uint64_t ticked = count(kHot), seen = count(kStepped);
    const auto added = tracer_->add_probes(switched);
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_TRUE(!sampled || fires_more(kStepped, seen)) << "in cycle " << n;
    EXPECT_TRUE(n % kStepEvery != 0 || fires_more(kHot, ticked)) << "in cycle " << n;
    const auto removed = tracer_->remove_probes(switched);
    ASSERT_TRUE(removed) << removed.error().message;

    const std::uint64_t hot = count(kHot), sum = count(kStepped);
    if (n % kStepEvery == 0) step();
    EXPECT_EQ(count(kHot), hot) << "in cycle " << n << ": it was disabled";
    EXPECT_EQ(count(kStepped), sum) << "in cycle " << n << ": it was disabled";
  }
  ask("rm /tmp/go; until [ -e /tmp/over ]; do usleep 10000; done");
  const std::uint64_t rounds = std::stoull(ask("wc -l </tmp/rounds"));
  tracer_->stop();
  merge(engine_->take_quiescent());

  std::cout << fmt::format("{} rounds, {} ticks, {} samples\n", rounds, count(kHot),
                           count(kStepped));
  EXPECT_EQ(counts_[kSteady]["workload"], rounds * kCallsARound);
  EXPECT_EQ(tracer_->lost_firings(), 0u);
  for (const std::string& notice : tracer_->take_notices()) ADD_FAILURE() << notice;
}

/// Until a probe stands, an int3 in its place is the guest's.
TEST_P(ComeAndGo, LeavesItsHitsToAKprobeThatComesWhileItIsPlaced) {
  const std::vector<Probe> steady = find(kSteady, {"syscall", "", "getppid", "entry"});
  for (const Probe& probe : find(kHot, {"fbt", "vmlinux", "vfs_read", "entry"})) {
    ASSERT_TRUE(tracer_->enable(probe));
  }
  for (const Probe& probe : steady) ASSERT_TRUE(tracer_->enable(probe));
  // Wherever the kernel lets one stand: its place is among these.
  // Without record-cmd, no event makes the kernel switch the scheduler's static keys, which QEMU's
  // translator does not survive on two CPUs (images/README.md).
  ask("dmesg -c >/dev/null; cd /sys/kernel/tracing; echo 0 >options/record-cmd; for n in 5 6 7 8 9 "
      "10 11 12 13 14; do"
      " echo p:ours/at$n vfs_read+$n 2>/dev/null >>kprobe_events; done; echo 1 "
      ">events/ours/enable");
  // sort reads a file, not awk's output: its reads would be counted while awk reads the counts.
  const auto hits = [this] {
    return ask(
        "workload --reads 100 --read-size 64 --getppid 10 >/dev/null;"
        " awk '{ print $2 }' /sys/kernel/tracing/kprobe_profile >/tmp/hits; sort -u /tmp/hits");
  };
  const std::string before = hits();
  ASSERT_TRUE(tracer_->start(*engine_));
  const std::string after = hits();
  ask("cd /sys/kernel/tracing; echo 0 >events/ours/enable; echo >kprobe_events");
  tracer_->stop();
  merge(engine_->take_quiescent());

  const std::uint64_t each = std::stoull(before);
  EXPECT_GE(each, 100u);
  EXPECT_EQ(before, fmt::format("{}\n", each)) << "the others of the function";
  EXPECT_GE(std::stoull(after), each + 100);
  EXPECT_EQ(after, fmt::format("{}\n", std::stoull(after)));
  EXPECT_EQ(count(kHot), 0u) << "it has made way";
  EXPECT_EQ(count(kSteady, "workload"), 10u);
  // Of its own tracing, the kernel says that the clock is not stable.
  EXPECT_EQ(
      ask("dmesg | grep -v clock | grep -iE 'bug|warn|oops|stall|int3|unable|fault|traps:'; true"),
      "");
}

INSTANTIATE_TEST_SUITE_P(Guests, ComeAndGo,
                         testing::Values(Guest{"debian-6.1", 1}, Guest{"debian-6.1", 2},
                                         Guest{"debian-6.12", 1}, Guest{"debian-6.12", 2}),
                         [](const auto& made) {
                           std::string name = made.param.image;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name + "_on_" + std::to_string(made.param.vcpus);
                         });

}  // namespace
}  // namespace ringside::live
