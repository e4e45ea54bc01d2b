// vCPUs that fire beside each other, and a consumer that takes meanwhile: counts stay exact, and
// what a take leaves out had not happened yet. Threads yield at random places, so that on a
// machine with few CPUs they meet in the middle of firings, too.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "dif/engine/engine.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr ProbeId kWorkProbe{1}, kReport{2};
constexpr unsigned kVcpus = 4;
constexpr std::uint64_t kFirings = 3000;
constexpr std::uint16_t kNumber = 0x500, kElement = 0x501, kText = 0x502;

Variable variable(std::uint16_t id, VariableScope scope, VariableKind kind,
                  ValueType type = kLong) {
  return {id, scope, kind, type, "v"};
}

/// `v += by`, of a scalar.
Difo adding(VariableScope scope, std::uint16_t id, std::uint64_t by) {
  const bool global = scope == VariableScope::Global;
  Difo made = difo({encode_indexed(global ? Opcode::Ldgs : Opcode::Ldts, id, 1),
                    encode_indexed(Opcode::Setx, 0, 2), encode(Opcode::Add, 1, 2, 1),
                    encode_indexed(global ? Opcode::Stgs : Opcode::Stts, id, 1), encode_return(1)});
  made.integers = {by};
  made.variables = {variable(id, scope, VariableKind::Scalar)};
  return made;
}

/// `a[arg0] += 1`.
Difo counting_element() {
  Difo made = difo({encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Arg0), 3),
                    encode_push(Opcode::Pushtv, TupleType::Value, 0, 3),
                    encode_indexed(Opcode::Ldgaa, kElement, 1), encode_indexed(Opcode::Setx, 0, 2),
                    encode(Opcode::Add, 1, 2, 1), encode(Opcode::Flushts),
                    encode_push(Opcode::Pushtv, TupleType::Value, 0, 3),
                    encode_indexed(Opcode::Stgaa, kElement, 1), encode_return(1)});
  made.integers = {1};
  made.variables = {variable(kElement, VariableScope::Global, VariableKind::Associative)};
  return made;
}

Difo element() {
  Difo made = difo({encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Arg0), 3),
                    encode_push(Opcode::Pushtv, TupleType::Value, 0, 3),
                    encode_indexed(Opcode::Ldgaa, kElement, 1), encode_return(1)});
  made.variables = {variable(kElement, VariableScope::Global, VariableKind::Associative)};
  return made;
}

Difo loading(VariableScope scope, std::uint16_t id) {
  Difo made =
      difo({encode_indexed(scope == VariableScope::Global ? Opcode::Ldgs : Opcode::Ldts, id, 1),
            encode_return(1)});
  made.variables = {variable(id, scope, VariableKind::Scalar)};
  return made;
}

Clause evaluating(std::vector<Difo> objects) {
  std::vector<Action> actions;
  for (Difo& object : objects) actions.push_back(action(ActionKind::Evaluate, {std::move(object)}));
  return clause(std::move(actions));
}

/// Gives the CPU away in the middle of firings.
class YieldingGuest final : public FakeGuest {
 public:
  explicit YieldingGuest(unsigned seed) : random_(seed) {}
  Result<std::uint64_t, Fault> variable(ContextVariable which) const override {
    yield();
    return FakeGuest::variable(which);
  }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    yield();
    return FakeGuest::execname(out);
  }
  Result<std::uint64_t, Fault> argument(unsigned n) const override {
    yield();
    return FakeGuest::argument(n);
  }
  void yield() const {
    if (random_() % 16 == 0) std::this_thread::yield();
  }

 private:
  mutable std::minstd_rand random_;
};

class ParallelTest : public ::testing::Test {
 protected:
  /// Clauses from `reporting` on are on kReport, those before on kWorkProbe.
  void start(Program source, std::size_t reporting, EngineOptions options = {}) {
    auto verified = verify_program(std::move(source));
    ASSERT_TRUE(verified) << verified.error().message;
    const std::size_t clauses = verified->program().clauses.size();
    engine_.emplace(std::move(*verified), options, kVcpus);
    for (std::uint32_t i = 0; i < clauses; ++i) {
      engine_->enable(i, i < reporting ? kWorkProbe : kReport, {"fbt", "vmlinux", "f", "entry"});
    }
  }
  void fire(std::uint32_t vcpu, std::uint64_t timestamp, const FakeGuest& guest,
            ProbeId probe = kWorkProbe) {
    const std::lock_guard lock(engine_->firing_lock(vcpu));
    engine_->fire(probe, FireRecord{vcpu, timestamp, 0}, guest);
  }
  /// Calls `body(vcpu, guest, i)` for i from 1 to `firings` on a thread for each vCPU, and
  /// `meanwhile` again and again until they have ended.
  template <class Body, class Meanwhile>
  void on_all(Body body, Meanwhile meanwhile, std::uint64_t firings = kFirings) {
    std::atomic<unsigned> running = kVcpus;
    std::latch all_there(kVcpus);
    std::vector<std::thread> threads;
    for (std::uint32_t vcpu = 0; vcpu < kVcpus; ++vcpu) {
      threads.emplace_back([&, vcpu] {
        YieldingGuest guest(vcpu);
        all_there.arrive_and_wait();
        for (std::uint64_t i = 1; i <= firings; ++i) {
          body(vcpu, guest, i);
          guest.yield();
        }
        --running;
      });
    }
    while (running != 0) meanwhile();
    for (std::thread& thread : threads) thread.join();
  }
  void take() { add(engine_->take()); }
  void add(const TraceData& trace_data) {
    for (const Record& record : trace_data.records) {
      const std::uint64_t before = std::exchange(last_[record.vcpu], record.timestamp);
      EXPECT_LE(before, record.timestamp) << "of vCPU " << record.vcpu;
      ++records_[record.vcpu];
    }
    for (const AggregateEntry& entry : trace_data.aggregates) {
      counted_ += static_cast<std::uint64_t>(entry.words[0]);
    }
    for (const auto& drops : trace_data.drops) {
      drops_ += std::accumulate(drops.begin(), drops.end(), std::uint64_t{0});
    }
    faults_ += trace_data.faults.size() + trace_data.fault_reports_lost;
  }
  /// The values that kReport's clauses trace.
  std::vector<std::int64_t> report(const FakeGuest& guest) {
    take();
    fire(0, last_[0] + 1, guest, kReport);
    const TraceData trace_data = engine_->take();
    std::vector<std::int64_t> values;
    for (const Record& record : trace_data.records) {
      std::int64_t value = 0;
      std::memcpy(&value, record.data.data() + engine_->ecb(record.ecb).fields[0].offset, 8);
      values.push_back(value);
    }
    return values;
  }
  std::uint64_t all_records() const {
    return std::accumulate(records_.begin(), records_.end(), std::uint64_t{0});
  }

  std::optional<Engine> engine_;
  std::array<std::uint64_t, kVcpus> last_{}, records_{};
  std::uint64_t counted_ = 0, drops_ = 0, faults_ = 0;
};

TEST_F(ParallelTest, NothingIsLostOrSeenTwiceWhileAllFireAndOneTakes) {
  Program source = count_by_execname();
  source.clauses.push_back(clause({action(ActionKind::Trace, {builtin(Builtin::Timestamp)})}));
  start(std::move(source), 2);

  on_all([&](std::uint32_t vcpu, const FakeGuest& guest, std::uint64_t i) { fire(vcpu, i, guest); },
         [&] { take(); });
  take();

  for (const std::uint64_t records : records_) EXPECT_EQ(records, kFirings);
  EXPECT_EQ(counted_, kVcpus * kFirings);
  EXPECT_EQ(drops_, 0u);
}

TEST_F(ParallelTest, GlobalsAndArraysCountExactly) {
  start(program({evaluating({adding(VariableScope::Global, kNumber, 1), counting_element()}),
                 clause({action(ActionKind::Trace, {loading(VariableScope::Global, kNumber)})}),
                 clause({action(ActionKind::Trace, {element()})})}),
        1);

  on_all(
      [&](std::uint32_t vcpu, FakeGuest& guest, std::uint64_t i) {
        guest.arguments[0] = i % 3;
        fire(vcpu, i, guest);
      },
      [] { std::this_thread::yield(); });

  FakeGuest guest;
  guest.arguments[0] = 1;
  EXPECT_EQ(report(guest), (std::vector<std::int64_t>{kVcpus * kFirings, kVcpus * (kFirings / 3)}));
  EXPECT_EQ(drops_ + faults_, 0u);
}

TEST_F(ParallelTest, AFiringsClausesAreOneStepToOthers) {
  start(program({evaluating({adding(VariableScope::Global, kNumber, 5)}),
                 evaluating({adding(VariableScope::Global, kNumber, std::uint64_t(-5))}),
                 clause({aggregate(0, {loading(VariableScope::Global, kNumber)})})},
                {Aggregation{"", AggregateFunction::Sum, {}, 0}}),
        3);

  on_all([&](std::uint32_t vcpu, const FakeGuest& guest, std::uint64_t i) { fire(vcpu, i, guest); },
         [&] { take(); });
  take();

  EXPECT_EQ(counted_, 0u) << "a sum of what others left half done";
}

/// A guest thread fires on any vCPU, on one at a time.
TEST_F(ParallelTest, AThreadsVariablesFollowItFromVcpuToVcpu) {
  constexpr std::uint64_t kThreads = 9;
  start(program({evaluating({adding(VariableScope::Thread, kNumber, 1)}),
                 clause({action(ActionKind::Trace, {loading(VariableScope::Thread, kNumber)})})}),
        1, {.dynamic_size = 4096});
  std::array<std::mutex, kThreads> runs;
  std::array<std::int64_t, kThreads> fired{};

  on_all(
      [&](std::uint32_t vcpu, FakeGuest& guest, std::uint64_t i) {
        const std::uint64_t thread = (i * (vcpu + 1)) % kThreads;
        const std::lock_guard on_cpu(runs[thread]);
        guest.set(ContextVariable::Tid, 100 + thread);
        fire(vcpu, i, guest);
        ++fired[thread];
      },
      [&] { take(); });

  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    FakeGuest guest;
    guest.set(ContextVariable::Tid, 100 + thread);
    EXPECT_EQ(report(guest), std::vector<std::int64_t>{fired[thread]});
  }
  EXPECT_EQ(drops_ + faults_, 0u);
}

/// `self->text = execname; @[self->text] = count(); self->text = 0`, on vCPUs that all claim to run
/// the same few threads, in a table that is full most of the time.
TEST_F(ParallelTest, AGuestThatLiesAboutItsThreadsHarmsNobody) {
  Difo store = difo({encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Execname), 1),
                     encode_indexed(Opcode::Stts, kText, 1), encode_return(0)});
  Difo load = difo({encode_indexed(Opcode::Ldts, kText, 1), encode_return(1)}, kString);
  Difo erase = difo({encode_indexed(Opcode::Stts, kText, 0), encode_return(0)});
  for (Difo* object : {&store, &load, &erase}) {
    object->variables = {variable(kText, VariableScope::Thread, VariableKind::Scalar, kString),
                         variable(kNumber, VariableScope::Global, VariableKind::Scalar)};
  }
  start(program({evaluating({store}), clause({aggregate(0, {load})}), evaluating({erase})},
                {Aggregation{"", AggregateFunction::Count, {kString}, 0}}),
        3, {.dynamic_size = 2048, .clean_interval = 2});

  on_all(
      [&](std::uint32_t vcpu, FakeGuest& guest, std::uint64_t i) {
        guest.set(ContextVariable::Tid, 100 + i % 5);
        guest.command = i % 2 == 0 ? "a" : "another command";
        fire(vcpu, i, guest);
      },
      [&] { take(); });
  take();

  // The null pointer of an element that another vCPU erased, or that found no room, faults.
  EXPECT_EQ(counted_ + faults_, kVcpus * kFirings);
}

/// The consumer's cut: a firing that it has was not caused by one that it has not.
TEST_F(ParallelTest, WhatAHarvestLeavesOutIsLaterThanWhatItHas) {
  start(program({clause({action(ActionKind::Trace, {builtin(Builtin::Timestamp)})})}), 1);
  std::atomic<std::uint64_t> happened = 0;

  on_all(
      [&](std::uint32_t vcpu, const FakeGuest& guest, std::uint64_t i) {
        // Each firing of a vCPU follows one of the vCPU before it.
        while (happened.load(std::memory_order_acquire) != (i - 1) * kVcpus + vcpu) {
          std::this_thread::yield();
        }
        fire(vcpu, (i - 1) * kVcpus + vcpu, guest);
        happened.fetch_add(1, std::memory_order_release);
      },
      [&] {
        const std::uint64_t before = all_records();
        const TraceData trace_data = engine_->take();
        for (std::size_t n = 0; n < trace_data.records.size(); ++n) {
          EXPECT_EQ(trace_data.records[n].timestamp, before + n);
        }
        add(trace_data);
      },
      kFirings / 10);
  take();

  EXPECT_EQ(all_records(), kVcpus * kFirings / 10);
}

TEST_F(ParallelTest, SpeculationsAreCommittedOnceOrDroppedAndCounted) {
  const auto speculation = [] {
    return difo({encode_indexed(Opcode::Call, static_cast<unsigned>(Subroutine::Speculation), 1),
                 encode_indexed(Opcode::Stgs, kNumber, 1), encode_return(1)});
  };
  Difo allocate = speculation();
  allocate.variables = {variable(kNumber, VariableScope::Global, VariableKind::Scalar)};
  const Difo id = loading(VariableScope::Global, kNumber);
  start(program({evaluating({allocate}),
                 clause({action(ActionKind::Speculate, {id}),
                         action(ActionKind::Trace, {builtin(Builtin::Timestamp)})}),
                 clause({action(ActionKind::Commit, {id})})}),
        3, {.speculations = 2, .clean_interval = 50});

  on_all([&](std::uint32_t vcpu, const FakeGuest& guest, std::uint64_t i) { fire(vcpu, i, guest); },
         [&] { take(); });
  take();

  EXPECT_EQ(all_records() + drops_, kVcpus * kFirings);
  EXPECT_EQ(faults_, 0u);
}

/// One vCPU speculates, another one commits.
TEST_F(ParallelTest, ASpeculationIsCommittedFromAnotherVcpu) {
  constexpr ProbeId kCommit = kReport;
  const auto one = [] { return constant(1); };
  Difo allocate =
      difo({encode_indexed(Opcode::Call, static_cast<unsigned>(Subroutine::Speculation), 1),
            encode_return(1)});
  start(program({evaluating({allocate}),
                 clause({action(ActionKind::Speculate, {one()}),
                         action(ActionKind::Trace, {builtin(Builtin::Timestamp)})}),
                 clause({action(ActionKind::Commit, {one()})})}),
        2, {.clean_interval = 20});
  std::atomic<std::uint64_t> next = 0;

  on_all(
      [&](std::uint32_t vcpu, const FakeGuest& guest, std::uint64_t i) {
        if (vcpu < 2) {
          while (next.load(std::memory_order_acquire) % 2 != vcpu) std::this_thread::yield();
          fire(vcpu, i * 10, guest, vcpu == 0 ? kWorkProbe : kCommit);
          next.fetch_add(1, std::memory_order_release);
        } else {
          fire(vcpu, i * 10, guest, ProbeId{77});  // nothing is enabled there, but it may clean
        }
      },
      [&] { take(); }, kFirings / 10);
  take();

  EXPECT_EQ(records_[0], kFirings / 10);
  EXPECT_EQ(drops_, 0u);
}

/// Each thread speculates on all vCPUs in turn, and commits on another one each time.
TEST_F(ParallelTest, WhatIsCommittedTogetherStaysTogether) {
  constexpr ProbeId kSpeculate{3}, kCommit{4};
  const auto by_thread = [](Difo made) {  // of a[arg0]
    made.variables = {variable(kElement, VariableScope::Global, VariableKind::Associative)};
    return made;
  };
  const Difo allocate = by_thread(
      difo({encode_indexed(Opcode::Call, static_cast<unsigned>(Subroutine::Speculation), 1),
            encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Arg0), 3),
            encode_push(Opcode::Pushtv, TupleType::Value, 0, 3),
            encode_indexed(Opcode::Stgaa, kElement, 1), encode_return(1)}));
  auto verified =
      verify_program(program({evaluating({allocate}),
                              clause({action(ActionKind::Speculate, {element()}),
                                      action(ActionKind::Trace, {builtin(Builtin::Arg1)})}),
                              clause({action(ActionKind::Commit, {element()})})}));
  ASSERT_TRUE(verified) << verified.error().message;
  engine_.emplace(std::move(*verified), EngineOptions{.speculations = kVcpus}, kVcpus);
  for (const ProbeId probe : {kWorkProbe, kSpeculate, kCommit}) {
    const std::uint32_t clause = probe == kWorkProbe ? 0 : probe == kSpeculate ? 1 : 2;
    engine_->enable(clause, probe, {"fbt", "vmlinux", "f", "entry"});
  }
  constexpr std::uint64_t kGroups = kFirings / 10;
  std::atomic<std::uint64_t> clock = 0;
  std::uint64_t groups = 0;
  const auto take_groups = [&] {
    const TraceData trace_data = engine_->take();
    ASSERT_EQ(trace_data.records.size() % kVcpus, 0u);
    std::uint64_t group = 0;
    for (std::size_t n = 0; n < trace_data.records.size(); ++n) {
      const Record& record = trace_data.records[n];
      std::uint64_t value = 0;
      std::memcpy(&value, record.data.data() + engine_->ecb(record.ecb).fields[0].offset, 8);
      if (n % kVcpus == 0) group = value / kVcpus;
      EXPECT_EQ(value, group * kVcpus + n % kVcpus);
    }
    groups += trace_data.records.size() / kVcpus;
    for (const auto& drops : trace_data.drops) {
      drops_ += std::accumulate(drops.begin(), drops.end(), std::uint64_t{0});
    }
  };

  on_all(
      [&](std::uint32_t thread, const FakeGuest&, std::uint64_t i) {
        FakeGuest guest;
        guest.arguments[0] = thread;
        fire(thread, ++clock, guest);
        for (std::uint32_t step = 0; step < kVcpus; ++step) {
          guest.arguments[1] = (i * kVcpus + thread) * kVcpus + step;
          fire((thread + step) % kVcpus, ++clock, guest, kSpeculate);
        }
        fire(static_cast<std::uint32_t>((thread + i) % kVcpus), ++clock, guest, kCommit);
      },
      take_groups, kGroups);
  take_groups();

  EXPECT_EQ(groups, kVcpus * kGroups);
  EXPECT_EQ(drops_, 0u);
}

TEST_F(ParallelTest, ExitEndsAllVcpus) {
  constexpr std::uint64_t kLast = kFirings / 2;
  Clause leaving = clause({action(ActionKind::Exit, {constant(3)})});
  start(program({clause({action(ActionKind::Trace, {builtin(Builtin::Timestamp)})}), leaving}), 1);

  on_all(
      [&](std::uint32_t vcpu, const FakeGuest& guest, std::uint64_t i) {
        fire(vcpu, i, guest, vcpu == 1 && i == kLast ? kReport : kWorkProbe);
      },
      [&] { take(); });
  take();

  EXPECT_EQ(engine_->exit_status(), 3);
  EXPECT_EQ(records_[1], kLast);
  const std::uint64_t before = all_records();
  fire(2, kFirings + 1, FakeGuest());
  take();
  EXPECT_EQ(all_records(), before);
}

/// Engines of two machines that run one program.
class MachinesTest : public ::testing::Test {
 protected:
  static constexpr unsigned kMachines = 2, kVcpusEach = 2;

  void start(const Program& source, std::size_t reporting) {
    std::vector<VerifiedProgram> programs;
    std::vector<const Program*> bound;
    for (unsigned i = 0; i < kMachines; ++i) {
      auto verified = verify_program(source);
      ASSERT_TRUE(verified) << verified.error().message;
      programs.push_back(std::move(*verified));
    }
    for (const VerifiedProgram& program : programs) bound.push_back(&program.program());
    auto globals = share_globals(bound, {}, kMachines * kVcpusEach);
    ASSERT_TRUE(globals) << globals.error().message;
    for (unsigned i = 0; i < kMachines; ++i) {
      EngineOptions options;
      options.machine_number = static_cast<std::int32_t>(i);
      engines_.push_back(std::make_unique<Engine>(std::move(programs[i]), options, kVcpusEach,
                                                  GlobalsShare{*globals, i * kVcpusEach}));
      for (std::uint32_t clause = 0; clause < source.clauses.size(); ++clause) {
        engines_[i]->enable(clause, clause < reporting ? kWorkProbe : kReport,
                            {"fbt", "vmlinux", "f", "entry"});
      }
    }
  }

  /// On a thread for each vCPU of each machine, while the consumer takes.
  void fire_on_all() {
    std::atomic<unsigned> running = kMachines * kVcpusEach;
    std::vector<std::thread> threads;
    for (unsigned machine = 0; machine < kMachines; ++machine) {
      for (std::uint32_t vcpu = 0; vcpu < kVcpusEach; ++vcpu) {
        threads.emplace_back([this, &running, machine, vcpu] {
          fire_often(*engines_[machine], vcpu);
          --running;
        });
      }
    }
    while (running != 0) {
      for (const auto& engine : engines_) EXPECT_TRUE(engine->take().faults.empty());
    }
    for (std::thread& thread : threads) thread.join();
  }

  static void fire_often(Engine& engine, std::uint32_t vcpu) {
    YieldingGuest guest(vcpu);
    guest.set(ContextVariable::Tid, 100 + vcpu);  // each machine has such a thread
    for (std::uint64_t i = 1; i <= kFirings; ++i) {
      guest.arguments[0] = i % 3;
      const std::lock_guard lock(engine.firing_lock(vcpu));
      engine.fire(kWorkProbe, FireRecord{vcpu, i, 0}, guest);
    }
  }

  std::vector<std::int64_t> report(Engine& engine) {
    FakeGuest guest;
    guest.arguments[0] = 1;
    guest.set(ContextVariable::Tid, 100);
    engine.take();
    engine.fire(kReport, FireRecord{0, kFirings + 1, 0}, guest);
    const TraceData trace_data = engine.take();
    std::vector<std::int64_t> values;
    for (const Record& record : trace_data.records) {
      std::int64_t value = 0;
      std::memcpy(&value, record.data.data() + engine.ecb(record.ecb).fields[0].offset, 8);
      values.push_back(value);
    }
    return values;
  }

  std::vector<std::unique_ptr<Engine>> engines_;
};

TEST_F(MachinesTest, GlobalsAreSharedAndThreadsVariablesAreNot) {
  start(program({evaluating({adding(VariableScope::Global, kNumber, 1), counting_element(),
                             adding(VariableScope::Thread, kNumber, 1)}),
                 clause({action(ActionKind::Trace, {loading(VariableScope::Global, kNumber)})}),
                 clause({action(ActionKind::Trace, {element()})}),
                 clause({action(ActionKind::Trace, {loading(VariableScope::Thread, kNumber)})})}),
        1);

  fire_on_all();

  constexpr std::int64_t kAll = kMachines * kVcpusEach * kFirings;
  for (const auto& engine : engines_) {
    EXPECT_EQ(report(*engine), (std::vector<std::int64_t>{kAll, kAll / 3, kFirings}));
  }
}

/// Another machine may fire while the BEGIN of this one stores, so nothing is read without a lock.
TEST_F(MachinesTest, WhatOneMachineStoresTheOthersSee) {
  start(program({evaluating({adding(VariableScope::Global, kNumber, 7)}),
                 clause({action(ActionKind::Trace, {loading(VariableScope::Global, kNumber)})})}),
        1);
  FakeGuest guest;

  engines_[0]->fire(kWorkProbe, FireRecord{0, 1, 0}, guest);

  EXPECT_EQ(report(*engines_[1]), std::vector<std::int64_t>{7});
}

TEST(SharedGlobals, OnesOfDifferentSizesAreRefusedByName) {
  Program here = program({evaluating({loading(VariableScope::Global, kNumber)})});
  Program there = here;
  const auto type_of = [](Program& of) -> ValueType& {
    return of.clauses[0].actions[0].arguments[0].variables[0].type;
  };
  type_of(here) = {ValueKind::Bytes, false, 16};
  type_of(there) = {ValueKind::Bytes, false, 24};

  const auto shared = share_globals(std::array<const Program*, 2>{&here, &there}, {}, 2);

  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().message,
            "the machines share the global variable v, and it is of a type that is not as large in "
            "each one's kernel: use self->v or a pointer");
}

}  // namespace
}  // namespace ringside::dif
