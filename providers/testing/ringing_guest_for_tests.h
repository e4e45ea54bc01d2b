// A guest of two vCPUs with one probe, whose traps ring: the real shim's host end over plain
// memory. The test plays the vCPUs. Used by this folder's tests and benchmarks; not linked into the
// product.
#pragma once

#include "providers/dispatch/dispatch.h"
#include "providers/fire/exit_channel.h"
#include "providers/testing/fake_guest.h"
#include "vmm/fake_vcpu_exits_for_tests.h"
#include "vmm/shim/plain_region_for_tests.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

struct RingingGuest {
  static constexpr unsigned kVcpus = 2;
  static constexpr GuestVirt kPlace{0xffff'ffff'8100'0000};  // of the probe

  /// The dispatcher is open; the channel, which also leads to `events`, is not.
  RingingGuest(ProbeSink& sink, dif::ProbeId probe, VmDispatcher* events = nullptr)
      : dispatcher(kernel, contexts, sink, clock, {.added = {{kPlace, {probe}}}}),
        channel(exits, {.traps = ShimTraps{shim, handlers}, .events = events}) {
    FakeKernel::write_task(memory);
    (void)shim.add_entry(kPlace, *shim.allocate_slot(8));
    for (unsigned vcpu = 0; vcpu < kVcpus; ++vcpu) {
      region.head(vcpu).percpu = kKernelBase + (vcpu == 0 ? kPercpu0 : kPercpu1);
      region.head(vcpu).cr3 = kRoot;
    }
    dispatcher.open();
  }
  RingingGuest(const RingingGuest&) = delete;
  RingingGuest& operator=(const RingingGuest&) = delete;

  /// A vCPU comes to the probe and waits.
  void raise(unsigned vcpu) { region.raise(vcpu, kPlace); }

  vmm::PlainRegion region;
  vmm::Shim shim{region.memory(), region.layout(), GuestVirt(0xffff'ffff'9f00'0000), kVcpus,
                 vmm::PlainRegion::gate()};
  FakeMemory memory;
  FakeKernel kernel;
  vmm::StopTimes stop_times;
  GuestClock clock{TickRate(1'000'000'000), {&stop_times, kVcpus, 1}};
  LinuxContexts contexts{kVcpus, memory.memory(), kernel};
  TrapDispatcher dispatcher;
  vmm::TrapHandlers handlers{dispatcher};
  vmm::FakeVcpuExits exits;
  ExitChannel channel;
};

}  // namespace ringside::providers
