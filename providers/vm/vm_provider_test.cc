#include "providers/vm/vm_provider.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "providers/testing/fake_guest.h"
#include "vmm/fake_vcpu_exits_for_tests.h"

namespace ringside::providers {
namespace {

using Kind = vmm::VcpuEvent::Kind;

/// "provider:module:function:name", of which the first ones may be left out, as in D.
dif::ProbeDescription description(std::string text) {
  dif::ProbeDescription made;
  for (std::string* field : {&made.name, &made.function, &made.module, &made.provider}) {
    const std::size_t colon = text.rfind(':');
    *field = colon == std::string::npos ? text : text.substr(colon + 1);
    text = colon == std::string::npos ? "" : text.substr(0, colon);
  }
  return made;
}

class Vm : public ::testing::Test {
 protected:
  Vm() { provider_.set_first_id(1000); }

  /// The probes that the provider publishes for a description as users write it.
  std::vector<Probe> found(const std::string& text) { return found(provider_, text); }
  static std::vector<Probe> found(VmProvider& provider, const std::string& text) {
    std::vector<Probe> probes;
    EXPECT_TRUE(
        provider.provide(description(text), [&](const Probe& probe) { probes.push_back(probe); }));
    return probes;
  }
  static std::vector<Refusal> refused(VmProvider& provider, const std::string& text) {
    std::vector<Refusal> refusals;
    EXPECT_TRUE(provider.refusals(description(text),
                                  [&](const Refusal& refusal) { refusals.push_back(refusal); }));
    return refusals;
  }
  void enable(const std::string& text) {
    const auto probes = found(text);
    ASSERT_FALSE(probes.empty()) << text;
    for (const Probe& probe : probes) EXPECT_TRUE(provider_.enable(probe));
  }
  std::string signature(const std::string& text) {
    const auto probes = found(text);
    if (probes.size() != 1) return "";
    const ProbeArguments arguments = provider_.arguments(probes[0]);
    std::string all;
    for (std::size_t n = 0; n < arguments.types.size(); ++n) {
      all += (n == 0 ? "" : ", ") + types_.to_string(arguments.types[n]) + " " + arguments.names[n];
    }
    return all;
  }
  void tell(const vmm::VcpuEvent& event) { dispatcher_.on_event(vcpu_, event); }
  /// The probes that are enabled by now fire.
  void set_events() { dispatcher_.set_events(provider_.enabled()); }
  void run() {
    set_events();
    dispatcher_.open();
  }

  FakeMemory memory_;
  TypeGraph types_;
  vmm::FakeVcpuExits exits_;
  VcpuContexts contexts_{memory_.memory(), 2, std::nullopt};
  VmProvider provider_{&exits_, types_};
  RecordingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  VmDispatcher dispatcher_{contexts_, sink_, clock_, VmProvider::plans(), {}};
  vmm::FakeStoppedVcpu vcpu_{1};
};

TEST_F(Vm, HasTheNamesThatPeopleWrite) {
  for (const char* text :
       {"vm::exit:io", "vm::exit:internal-error", "vm::exit:rdmsr", "vm::pio:in", "vm::pio:out",
        "vm::mmio:read", "vm::mmio:write", "vm::msr:rd", "vm::msr:wr", "vm::cpuid", "vm::hlt",
        "vm::inject", "vm::dirty", "vm:::hlt"}) {
    const auto probes = found(text);
    ASSERT_GE(probes.size(), 1u) << text;
    EXPECT_EQ(probes[0].name.provider, "vm");
  }
  EXPECT_EQ(found("vm::pio:").size(), 2u);
  EXPECT_GT(found("vm::exit:").size(), 20u);
  EXPECT_TRUE(found("vm::exit:nonsense").empty());
}

TEST_F(Vm, IdsAreThoseOfThePublishedProbes) {
  const auto all = found("vm:::");
  ASSERT_EQ(all.size(), provider_.id_count());
  for (const Probe& probe : all) {
    const auto again = provider_.by_id(probe.id);
    ASSERT_TRUE(again && *again);
    EXPECT_EQ((*again)->name.to_string(), probe.name.to_string());
  }
  EXPECT_FALSE(*provider_.by_id({999}));
  EXPECT_FALSE(*provider_.by_id({1000 + provider_.id_count()}));
  EXPECT_FALSE(provider_.enable(Probe{{999}, {}}));
}

TEST_F(Vm, ArgumentsHaveTypesAndNames) {
  EXPECT_EQ(signature("vm::exit:io"), "uint64_t guest_ns, uint64_t host_ns, uint32_t reason");
  EXPECT_EQ(signature("vm::pio:out"),
            "uint16_t port, uint8_t size, uint32_t count, uint32_t value");
  EXPECT_EQ(signature("vm::mmio:read"), "uint64_t address, uint8_t size, uint64_t value");
  EXPECT_EQ(signature("vm::msr:wr"), "uint32_t index, uint64_t value");
  EXPECT_EQ(signature("vm:vm:hlt:hlt"), "uint64_t halted_ns");
  EXPECT_EQ(signature("vm::inject"), "uint32_t gsi, uint32_t level");
  EXPECT_EQ(signature("vm::dirty"), "uint64_t address");
}

TEST_F(Vm, TypesHaveTheSameIdsInEveryGraphThatIsOfUse) {
  TypeGraph other;
  for (const char* name : {"uint8_t", "uint16_t", "uint32_t", "uint64_t"}) {
    EXPECT_EQ(types_.find(name), other.find(name)) << "compilers without a kernel have their own";
  }
}

TEST_F(Vm, RefusesWhatTheHostCannotTell) {
  exits_.reasons[Kind::Cpuid] = "needs the host's tracepoints";

  EXPECT_TRUE(found("vm::cpuid").empty());
  const auto refusals = refused(provider_, "vm:::");
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].name.to_string(), "vm:vm:cpuid:cpuid");
  EXPECT_EQ(refusals[0].reason, "needs the host's tracepoints");
}

TEST_F(Vm, OfAMachineInAnotherProcessRefusesAll) {
  VmProvider none(nullptr, types_);
  none.set_first_id(1);

  EXPECT_TRUE(found(none, "vm:::").empty());
  const auto refusals = refused(none, "vm:::");
  ASSERT_EQ(refusals.size(), none.id_count());
  EXPECT_NE(refusals[0].reason.find("--machine kvm"), std::string::npos);
  EXPECT_FALSE(none.enable({{1}, {}}));
}

TEST_F(Vm, WantsOnlyTheKindsThatAreEnabled) {
  EXPECT_EQ(provider_.enabled(), EventTable());

  enable("vm::exit:io");
  enable("vm::msr:");

  unsigned wanted = 0;
  const auto kinds = provider_.enabled().wanted().kinds;
  for (const bool kind : kinds) wanted += kind ? 1 : 0;
  EXPECT_EQ(wanted, 3u);
  EXPECT_TRUE(kinds[static_cast<std::size_t>(Kind::MsrWrite)]);
}

TEST_F(Vm, AnEventFiresItsProbeWithItsValuesOnItsVcpu) {
  enable("vm::pio:out");
  run();
  vcpu_.tsc = 5000;

  tell({Kind::PortOut, 0, {0x3f8, 1, 1, 'x'}});
  tell({Kind::PortIn, 0, {0x3f8, 1, 1, 'x'}});
  vcpu_.tsc = 5700;
  tell({Kind::PortOut, 0, {0x3f9, 1, 1, 'y'}});

  ASSERT_EQ(sink_.firings.size(), 2u);
  EXPECT_EQ(sink_.firings[0].probe, found("vm::pio:out")[0].id);
  EXPECT_EQ(sink_.firings[0].arg0, 0x3f8u);
  EXPECT_EQ(sink_.firings[0].arg1, 1u);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u);
  EXPECT_EQ(sink_.firings[1].record.timestamp - sink_.firings[0].record.timestamp, 700u)
      << "the guest's TSC says when";
}

TEST_F(Vm, AnExitFiresTheProbeOfItsReason) {
  enable("vm::exit:io");
  enable("vm::exit:other");
  run();

  tell({Kind::Exit, 2, {10, 20}});
  tell({Kind::Exit, 6, {10, 20}});  // mmio, which has a probe that nobody enabled
  tell({Kind::Exit, 36, {30, 40}});
  tell({Kind::Exit, UINT32_MAX, {30, 40}});

  const auto id = [this](const char* text) { return found(text)[0].id.value; };
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{id("vm::exit:io"), id("vm::exit:other"),
                                                     id("vm::exit:other")}));
  EXPECT_EQ(contexts_[1].argument(2), UINT32_MAX) << "the reason";
}

TEST_F(Vm, NothingFiresBeforeTheBeginningOrAfterTheEnd) {
  enable("vm::hlt");
  set_events();
  const vmm::VcpuEvent event{Kind::Hlt, 0, {100}};

  tell(event);
  dispatcher_.open();
  tell(event);
  dispatcher_.close();
  tell(event);

  EXPECT_EQ(sink_.firings.size(), 1u);
}

/// A vCPU counts what its event fired while it knows whether the probe was enabled all the time.
TEST_F(Vm, ProbesThatComeAndGoLoseNothingAndFireNowhereElseUnderVcpusThatRun) {
  constexpr unsigned kCycles = 2000, kVcpus = 2;
  enable("vm::pio:in");
  run();
  const Probe switched = found("vm::pio:out")[0];
  const Probe steady = found("vm::pio:in")[0];
  CountingSink counts;
  VmDispatcher dispatcher(contexts_, counts, clock_, VmProvider::plans(), provider_.enabled());
  dispatcher.open();
  // Even: off, 2 more: on; odd: on the way.
  std::atomic<unsigned> phase = 0;
  std::atomic<bool> ended = false;
  std::array<std::atomic<std::uint64_t>, kVcpus> rounds{}, wrong{}, inside{};
  std::vector<std::thread> vcpus;
  for (unsigned index = 0; index < kVcpus; ++index) {
    vcpus.emplace_back([&, index] {
      vmm::FakeStoppedVcpu vcpu(index);
      while (!ended) {
        const unsigned before = phase;
        const std::uint64_t count = counts.of(switched.id, index);
        dispatcher.on_event(vcpu, {Kind::PortOut, 0, {1}});
        dispatcher.on_event(vcpu, {Kind::PortIn, 0, {1}});
        const std::uint64_t more = counts.of(switched.id, index) - count;
        const bool known = before == phase && before % 2 == 0;
        const bool on = before % 4 == 2;
        if (known ? more != (on ? 1 : 0) : more > 1) ++wrong[index];
        if (known && on) ++inside[index];
        ++rounds[index];
      }
    });
  }
  for (unsigned n = 0; n < kCycles; ++n) {
    ++phase;
    ASSERT_TRUE(provider_.enable(switched));
    dispatcher.set_events(provider_.enabled());
    ++phase;
    const std::array begun{rounds[0].load(), rounds[1].load()};
    while (n % 8 == 0 && (rounds[0] < begun[0] + 2 || rounds[1] < begun[1] + 2)) {
      std::this_thread::yield();
    }
    ++phase;
    provider_.note_disabled(switched.id);
    dispatcher.set_events(provider_.enabled());
    ++phase;
  }
  ended = true;
  for (std::thread& vcpu : vcpus) vcpu.join();

  for (unsigned index = 0; index < kVcpus; ++index) {
    EXPECT_EQ(wrong[index], 0u) << "vCPU " << index;
    EXPECT_GT(inside[index], 0u) << "vCPU " << index;
    EXPECT_EQ(counts.of(steady.id, index), rounds[index]) << "vCPU " << index;
  }
}

TEST_F(Vm, EventsThatMakeNoSenseFireNothing) {
  enable("vm:::");
  run();
  vmm::FakeStoppedVcpu beyond(2);

  dispatcher_.on_event(beyond, {Kind::Hlt, 0, {}});
  tell({static_cast<Kind>(200), 0, {}});

  EXPECT_TRUE(sink_.firings.empty());
}

}  // namespace
}  // namespace ringside::providers
