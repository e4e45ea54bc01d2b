// What the exit channel costs on the host, from the ring to the answer, with `@ = count()`; a vm
// event with the same program; and the fire lock alone.
#include <benchmark/benchmark.h>

#include <mutex>

#include "dif/engine/engine.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/fake_guest.h"
#include "providers/fire/dispatch.h"
#include "providers/fire/exit_channel.h"
#include "providers/fire/vm_dispatch.h"
#include "vmm/fake_vcpu_exits_for_tests.h"
#include "vmm/shim/plain_region_for_tests.h"
#include "vmm/shim/shim_channel.h"

namespace ringside::providers {
namespace {

using namespace dif::testing;

constexpr GuestVirt kPlace{0xffff'ffff'8100'0000};
constexpr dif::ProbeId kTrap{7}, kPort{8};

class EngineSink final : public ProbeSink {
 public:
  explicit EngineSink(dif::Engine& engine) : engine_(engine) {}
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    engine_.fire(probe, record, guest);
  }
  bool finished() const override { return false; }

 private:
  dif::Engine& engine_;
};

dif::Program just_count() {
  return program({clause({aggregate(0, {})})},
                 {dif::Aggregation{"", dif::AggregateFunction::Count, {}, 0}});
}

struct Setup {
  Setup() {
    FakeKernel::write_task(memory);
    (void)shim.add_entry(kPlace, *shim.allocate_slot(8));
    for (const dif::ProbeId probe : {kTrap, kPort}) engine.enable(0, probe, {"p", "", "", "n"});
    dispatcher.add(kPlace, Binding{kTrap});
    dispatcher.begin(sink, clock);
    dispatcher.open();
    events.lead(vmm::VcpuEvent::Kind::PortOut, std::nullopt, kPort);
    events.seal(sink, clock);
    events.open();
    channel.set_traps(&shim, &dispatcher);
    channel.set_events(&events);
    region.head(0).percpu = kKernelBase + kPercpu0;
    region.head(0).cr3 = kRoot;
  }

  vmm::PlainRegion region;
  vmm::SpinShim shim{region.memory(), region.layout(), GuestVirt(0xffff'ffff'9f00'0000), 1,
                     vmm::PlainRegion::gate()};
  FakeMemory memory;
  FakeKernel kernel;
  dif::Engine engine{*dif::verify_program(just_count()), {}, 2};
  EngineSink sink{engine};
  GuestClock clock{TickRate(1'000'000'000)};
  LinuxContext context{memory.memory(), kernel};
  TrapDispatcher dispatcher{kernel, context, 2};
  VcpuContext event_context{memory.memory(), 2, std::nullopt};
  VmDispatcher events{event_context, 2};
  vmm::FakeVcpuExits exits;
  FireLock lock;
  ExitChannel channel{exits, lock};
  vmm::FakeStoppedVcpu vcpu;
};

void doorbell_to_answer(benchmark::State& state) {
  Setup setup;
  for (auto _ : state) {
    setup.region.raise(0, kPlace);
    setup.channel.on_doorbell(setup.vcpu, 0);
  }
  if (!setup.region.is_answered(0)) state.SkipWithError("not answered");
}
BENCHMARK(doorbell_to_answer);

void event_counted(benchmark::State& state) {
  Setup setup;
  for (auto _ : state) {
    setup.channel.on_event(setup.vcpu, {vmm::VcpuEvent::Kind::PortOut, 0, {0x3f8, 1, 1, 'x'}});
  }
  if (setup.vcpu.fetched != 0) state.SkipWithError("registers were fetched for nothing");
}
BENCHMARK(event_counted);

void uncontended_lock(benchmark::State& state) {
  FireLock lock;
  for (auto _ : state) const std::lock_guard turn(lock);
}
BENCHMARK(uncontended_lock);

}  // namespace
}  // namespace ringside::providers

BENCHMARK_MAIN();
