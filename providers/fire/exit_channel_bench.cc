// The costs on the host of the exit channel, from the ring to the answer, with `@ = count()`; of a
// vm event with the same program; and of a firing lock alone.
#include <benchmark/benchmark.h>

#include <memory>
#include <mutex>

#include "dif/engine/engine.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/dispatch/engine_sink.h"
#include "providers/testing/ringing_guest_for_tests.h"
#include "providers/vm/vm_provider.h"

namespace ringside::providers {
namespace {

using namespace dif::testing;

constexpr dif::ProbeId kTrap{7}, kPort{8};

dif::Program just_count() {
  return program({clause({aggregate(0, {})})},
                 {dif::Aggregation{"", dif::AggregateFunction::Count, {}, 0}});
}

EventTable just_ports() {
  EventTable table;
  table.by_kind[static_cast<std::size_t>(vmm::VcpuEvent::Kind::PortOut)] = kPort;
  return table;
}

dif::Engine& with_probes(dif::Engine& engine) {
  for (const dif::ProbeId probe : {kTrap, kPort}) engine.enable(0, probe, {"p", "", "", "n"});
  return engine;
}

struct Setup {
  Setup() { events.open(); }

  dif::Engine engine{*dif::verify_program(just_count()), {}, RingingGuest::kVcpus};
  EngineSink sink{with_probes(engine), RingingGuest::kVcpus};
  FakeMemory bare_memory;
  GuestClock clock{TickRate(1'000'000'000)};
  VcpuContexts event_contexts{bare_memory.memory(), RingingGuest::kVcpus, std::nullopt};
  VmDispatcher events{event_contexts, sink, clock, VmProvider::plans(), just_ports()};
  RingingGuest guest{sink, kTrap, &events};
  vmm::FakeStoppedVcpu vcpu;
};

void doorbell_to_answer(benchmark::State& state) {
  Setup setup;
  for (auto _ : state) {
    setup.guest.raise(0);
    setup.guest.channel.on_doorbell(setup.vcpu, 0);
  }
  if (!setup.guest.region.is_answered(0)) state.SkipWithError("not answered");
}
BENCHMARK(doorbell_to_answer);

/// Each vCPU rings on a thread of its own; with `one_lock`, as if one lock were for all.
void doorbells(benchmark::State& state, bool one_lock) {
  static std::unique_ptr<Setup> setup;
  static BriefLock lock;
  const auto index = static_cast<unsigned>(state.thread_index());
  if (index == 0) setup = std::make_unique<Setup>();
  vmm::FakeStoppedVcpu self(index);
  for (auto _ : state) {
    setup->guest.raise(index);
    std::unique_lock<BriefLock> held;
    if (one_lock) held = std::unique_lock(lock);
    setup->guest.channel.on_doorbell(self, index);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(doorbells, beside, false)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK_CAPTURE(doorbells, in_turns, true)->Threads(1)->Threads(2)->UseRealTime();

void event_counted(benchmark::State& state) {
  Setup setup;
  for (auto _ : state) {
    setup.guest.channel.on_event(setup.vcpu,
                                 {vmm::VcpuEvent::Kind::PortOut, 0, {0x3f8, 1, 1, 'x'}});
  }
  if (setup.vcpu.fetched != 0) state.SkipWithError("registers were fetched for nothing");
}
BENCHMARK(event_counted);

void uncontended_lock(benchmark::State& state) {
  BriefLock lock;
  for (auto _ : state) const std::lock_guard lock(lock);
}
BENCHMARK(uncontended_lock);

}  // namespace
}  // namespace ringside::providers

BENCHMARK_MAIN();
