// The tracer over a machine of our own of which no kernel is known: the test plays its vCPUs.
#include "providers/tracer/tracer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/testing/fake_guest.h"
#include "vmm/fake_vcpu_exits_for_tests.h"

namespace ringside::providers {
namespace {

using namespace dif::testing;
using Kind = vmm::VcpuEvent::Kind;

constexpr std::uint64_t kPc = 0x10'2030;

class OwnMachine final : public vmm::InertMachine {
 public:
  unsigned count() const override { return 2; }
  vmm::GuestMemory& memory() override { return memory_.memory(); }
  vmm::VcpuExits* exits() override { return &fake; }

  vmm::FakeVcpuExits fake;
  unsigned pauses = 0;

 protected:
  Result<void> pause() override {
    ++pauses;
    return {};
  }

 private:
  FakeMemory memory_;
};

class OwnGuest : public ::testing::Test {
 protected:
  OwnGuest()
      : tracer_(std::move(*Tracer::attach(&machine_, nullptr, {.channel = Channel::Exit}))) {}

  /// An engine in which every probe that matches runs `probe { @[execname] = count(); trace(arg0)
  /// }`.
  void enable(const dif::ProbeDescription& pattern, const dif::EngineOptions& options = {}) {
    for (const Probe& probe : know(pattern, options)) EXPECT_TRUE(tracer_->enable(probe));
  }
  /// The same, but for the enabling.
  std::vector<Probe> know(const dif::ProbeDescription& pattern,
                          const dif::EngineOptions& options = {}) {
    if (!engine_) {
      dif::Program program = count_by_execname();
      program.clauses[0].actions.push_back(
          action(dif::ActionKind::Trace, {builtin(dif::Builtin::Arg0)}));
      engine_.emplace(*dif::verify_program(std::move(program)), options, tracer_->vcpu_count());
    }
    std::vector<Probe> probes;
    EXPECT_TRUE(tracer_->for_each_probe(pattern, [&](const Probe& probe) {
      engine_->enable(0, probe.id, probe.name);
      probes.push_back(probe);
    }));
    return probes;
  }
  /// Records of these probes, of all that was recorded since the last call.
  std::size_t records_of(const std::vector<Probe>& probes) {
    const dif::TraceData trace_data = engine_->take();
    return static_cast<std::size_t>(
        std::ranges::count_if(trace_data.records, [&](const dif::Record& record) {
          return std::ranges::find(probes, engine_->ecb(record.ecb).probe, &Probe::id) !=
                 probes.end();
        }));
  }
  void write_port(std::uint64_t port) {
    machine_.fake.sink->on_event(vcpu_, {Kind::PortOut, 0, {port, 1, 1, 0}});
  }
  std::uint64_t value_of(const dif::Record& record) const {
    std::uint64_t value = 0;
    const std::size_t offset = engine_->ecb(record.ecb).fields.at(0).offset;
    std::memcpy(&value, record.data.subspan(offset).data(), sizeof value);
    return value;
  }

  OwnMachine machine_;
  vmm::FakeStoppedVcpu vcpu_{1};
  std::optional<dif::Engine> engine_;
  std::unique_ptr<Tracer> tracer_;
};

TEST_F(OwnGuest, WithoutAKernelHasTheProvidersThatNeedNone) {
  for (const char* provider : {"dtrace", "profile", "vm"}) {
    EXPECT_TRUE(tracer_->has_provider(provider)) << provider;
  }
  EXPECT_FALSE(tracer_->has_provider("fbt"));
  EXPECT_EQ(tracer_->vcpu_count(), 2u);
  EXPECT_EQ(tracer_->channel(), Channel::Exit);
  EXPECT_TRUE(tracer_->cannot(dif::ActionKind::Panic));
}

TEST_F(OwnGuest, IsToldOfEventsFromStartToStopAndOfNoOthers) {
  enable({"vm", "", "pio", "out"});
  ASSERT_TRUE(tracer_->start(*engine_));
  ASSERT_NE(machine_.fake.sink, nullptr);
  EXPECT_TRUE(machine_.fake.wants(Kind::PortOut));
  EXPECT_FALSE(machine_.fake.wants(Kind::PortIn));

  write_port(0x3f8);
  write_port(0x80);
  vmm::ExitSink* const late = machine_.fake.sink;
  tracer_->stop();
  late->on_event(vcpu_, {Kind::PortOut, 0, {}});

  EXPECT_EQ(machine_.fake.sink, nullptr);
  EXPECT_FALSE(machine_.fake.wants(Kind::PortOut));
  const dif::TraceData trace_data = engine_->take_quiescent();
  ASSERT_EQ(trace_data.records.size(), 2u);
  EXPECT_EQ(trace_data.records[0].vcpu, 1u);
  EXPECT_EQ(value_of(trace_data.records[0]), 0x3f8u);
  EXPECT_EQ(value_of(trace_data.records[1]), 0x80u);
  ASSERT_EQ(trace_data.aggregates.size(), 1u);
  EXPECT_EQ(trace_data.aggregates[0].words[0], 2);
}

TEST_F(OwnGuest, DoesNotStartWhereTheHostTellsNothing) {
  machine_.fake.refuses_all = true;
  enable({"vm", "", "pio", "out"});

  const auto started = tracer_->start(*engine_);

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(machine_.fake.sink, nullptr);
}

TEST_F(OwnGuest, IsNotTracedForRecordsThatNoBufferHolds) {
  enable({"vm", "", "pio", "out"}, {.buffer_size = 16, .buffer_policy = dif::BufferPolicy::Fill});

  const auto started = tracer_->start(*engine_);

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "Enabling exceeds size of buffer");
  EXPECT_EQ(machine_.fake.sink, nullptr);
}

TEST_F(OwnGuest, IsLeftAloneByAProgramThatWantsNothingOfIt) {
  enable({"dtrace", "", "", "BEGIN"});

  ASSERT_TRUE(tracer_->start(*engine_));
  tracer_->stop();

  EXPECT_EQ(machine_.pauses, 0u);
  EXPECT_EQ(machine_.fake.asked, 0u);
  EXPECT_EQ(engine_->take_quiescent().records.size(), 1u);
}

TEST_F(OwnGuest, EventsComeAndGoWhileOthersFire) {
  enable({"vm", "", "pio", "out"});
  const std::vector<Probe> reads = know({"vm", "", "pio", "in"});
  ASSERT_TRUE(tracer_->start(*engine_));
  const auto read_port = [&] {
    machine_.fake.sink->on_event(vcpu_, {Kind::PortIn, 0, {0x60, 1, 1, 0}});
  };

  read_port();
  write_port(1);
  EXPECT_EQ(records_of(reads), 0u);
  ASSERT_TRUE(tracer_->add_probes(reads));
  EXPECT_TRUE(machine_.fake.wants(Kind::PortIn) && machine_.fake.wants(Kind::PortOut));
  read_port();
  write_port(2);
  EXPECT_EQ(records_of(reads), 1u);
  ASSERT_TRUE(tracer_->remove_probes(reads));

  EXPECT_FALSE(machine_.fake.wants(Kind::PortIn));
  EXPECT_TRUE(machine_.fake.wants(Kind::PortOut));
  read_port();
  write_port(3);
  tracer_->stop();
  const dif::TraceData trace_data = engine_->take_quiescent();
  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(value_of(trace_data.records[0]), 3u);
}

TEST_F(OwnGuest, OfWhichNothingWasWantedTellsWhatIsAdded) {
  const std::vector<Probe> writes = know({"vm", "", "pio", "out"});
  ASSERT_TRUE(tracer_->start(*engine_));
  ASSERT_EQ(machine_.fake.sink, nullptr);

  ASSERT_TRUE(tracer_->add_probes(writes));

  ASSERT_NE(machine_.fake.sink, nullptr);
  write_port(1);
  EXPECT_EQ(records_of(writes), 1u);
  tracer_->stop();
  EXPECT_EQ(machine_.fake.sink, nullptr);
}

TEST_F(OwnGuest, WhatTheHostCannotTellIsNotAddedAndNothingElseIs) {
  std::vector<Probe> added = know({"vm", "", "pio", "out"});
  const std::vector<Probe> ticks = know({"profile", "", "", "tick-5000"});
  added.insert(added.end(), ticks.begin(), ticks.end());
  ASSERT_TRUE(tracer_->start(*engine_));
  machine_.fake.refuses_all = true;

  const auto done = tracer_->add_probes(added);

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::Unsupported);
  write_port(1);
  machine_.fake.refuses_all = false;
  ASSERT_TRUE(tracer_->add_probes(std::span(added).first(1)));
  write_port(2);
  tracer_->stop();
  EXPECT_EQ(records_of(added), 1u) << "no tick, and one write";
}

TEST_F(OwnGuest, TimersComeAndGo) {
  enable({"dtrace", "", "", "BEGIN"});
  const std::vector<Probe> ticks = know({"profile", "", "", "tick-5000"});
  ASSERT_TRUE(tracer_->start(*engine_));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int n = 0; n < 5; ++n) {
    ASSERT_TRUE(tracer_->add_probes(ticks));
    ASSERT_TRUE(tracer_->add_probes(ticks)) << "it is enabled already";
    while (records_of(ticks) == 0) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    ASSERT_TRUE(tracer_->remove_probes(ticks));
    records_of(ticks);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(records_of(ticks), 0u);
  }
  EXPECT_EQ(machine_.pauses, 0u) << "a timer is none of the machine's business";
}

TEST_F(OwnGuest, BeginDoesNotComeAndEndDoes) {
  const std::vector<Probe> begin = know({"dtrace", "", "", "BEGIN"});
  const std::vector<Probe> end = know({"dtrace", "", "", "END"});
  ASSERT_TRUE(tracer_->start(*engine_));

  const auto late = tracer_->add_probes(begin);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::Unsupported);
  EXPECT_NE(late.error().message.find("when tracing begins"), std::string::npos);
  ASSERT_TRUE(tracer_->add_probes(end));
  tracer_->stop();

  EXPECT_EQ(records_of(end), 1u);
  EXPECT_EQ(tracer_->add_probes(end).error().code, ErrorCode::Invalid) << "it is over";
}

TEST_F(OwnGuest, ErrorComesAndGoes) {
  dif::Program program = count_by_execname();
  program.aggregations.clear();
  program.clauses = {clause({action(dif::ActionKind::Trace, {load_from(kGuestBytes)})}),
                     clause({action(dif::ActionKind::Trace, {builtin(dif::Builtin::Arg2)})})};
  engine_.emplace(*dif::verify_program(std::move(program)), dif::EngineOptions(), 2);
  std::vector<Probe> writes, errors;
  EXPECT_TRUE(tracer_->for_each_probe({"vm", "", "pio", "out"}, [&](const Probe& probe) {
    engine_->enable(0, probe.id, probe.name);
    EXPECT_TRUE(tracer_->enable(probe));
  }));
  EXPECT_TRUE(tracer_->for_each_probe({"dtrace", "", "", "ERROR"}, [&](const Probe& probe) {
    engine_->enable(1, probe.id, probe.name);
    errors.push_back(probe);
  }));
  ASSERT_TRUE(tracer_->start(*engine_));

  write_port(1);
  EXPECT_EQ(records_of(errors), 0u);
  ASSERT_TRUE(tracer_->add_probes(errors));
  write_port(1);
  EXPECT_EQ(records_of(errors), 1u);
  ASSERT_TRUE(tracer_->remove_probes(errors));
  write_port(1);
  EXPECT_EQ(records_of(errors), 0u);
}

TEST_F(OwnGuest, IsSampledByPcAndVcpuOnTheVcpusThreads) {
  enable({"profile", "", "", "profile-4999"});
  ASSERT_TRUE(tracer_->start(*engine_));
  vmm::ExitSink* const sink = machine_.fake.sink;
  ASSERT_NE(sink, nullptr);
  vmm::FakeStoppedVcpu vcpus[] = {vmm::FakeStoppedVcpu(0), vmm::FakeStoppedVcpu(1)};
  vcpus[0].state.rip = kPc;
  vcpus[1].state.rip = kPc + 1;
  std::uint64_t answered = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  for (unsigned rounds = 0; rounds < 4 && std::chrono::steady_clock::now() < deadline;) {
    const std::uint64_t tag = machine_.fake.sampled;
    if (tag == answered) continue;
    for (vmm::FakeStoppedVcpu& vcpu : vcpus) sink->on_sample(vcpu, tag);
    answered = tag;
    ++rounds;
  }
  const unsigned pauses = machine_.pauses;
  tracer_->stop();
  sink->on_sample(vcpus[0], machine_.fake.sampled);

  EXPECT_EQ(pauses, 1u) << "to begin to listen; none for the samples";
  const dif::TraceData trace_data = engine_->take_quiescent();
  ASSERT_EQ(trace_data.records.size(), 8u);
  for (const dif::Record& record : trace_data.records) {
    EXPECT_EQ(value_of(record), kPc + record.vcpu);
  }
}

}  // namespace
}  // namespace ringside::providers
