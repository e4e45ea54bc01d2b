// A guest for unit tests that records traps: real rings, over memory in which the test plays the
// guest, a real dispatcher, and a sink that remembers what fired.
// Used by the tests of replays; not linked into the product.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "providers/dispatch/dispatch.h"
#include "providers/fire/replay.h"
#include "providers/testing/fake_guest.h"
#include "providers/testing/loop_for_tests.h"
#include "vmm/base/host_cpu.h"
#include "vmm/shim/plain_region_for_tests.h"

namespace ringside::providers {

inline constexpr dif::ProbeId kRecordedProbe{70};
inline constexpr std::uint64_t kGigahertz = 1'000'000'000;

/// Remembers firings by their first argument.
class WatchingSink final : public ProbeSink {
 public:
  struct Seen {
    dif::ProbeId probe;
    std::uint64_t id;
    dif::FireRecord record;
  };

  BriefLock& firing_lock(std::uint32_t vcpu) override { return firing_locks_.at(vcpu); }
  void wait_for_firings() override {}
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    seen.push_back({probe, guest.argument(0).value_or(0), record});
    if (during) during(guest);
  }
  bool finished() const override { return false; }

  std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> ids;
    for (const Seen& one : seen) ids.push_back(one.id);
    return ids;
  }

  std::vector<Seen> seen;
  std::function<void(const dif::GuestContext&)> during;

 private:
  std::array<BriefLock, 2> firing_locks_;
};

/// Of the guest's clock, when tracing begins.
enum class Knows : std::uint8_t { Nothing, ItsTsc };

/// A guest with two CPUs, whose TSC is the host's, and all that replays what it records.
class RecordingGuest {
 public:
  /// By a clock with fewer Hertz than the TSC has, time goes by faster. `list`: what its trap point
  /// copies. `other`: fires in the place of `sink`.
  explicit RecordingGuest(std::uint64_t hertz = kGigahertz, vmm::Reach reach = vmm::Reach::Mapped,
                          vmm::FetchList list = {}, ProbeSink* other = nullptr,
                          Knows knows = Knows::ItsTsc)
      : region(reach, {GuestPhys(0x21000), 160 << 10}, 2),
        clock(TickRate(hertz), {nullptr, 2, 0}),
        copies_(add_trap_point(std::move(list))),
        used_sink_(other != nullptr ? *other : sink) {
    FakeKernel::write_task(memory);
    dispatcher.keep_one_order();
    dispatcher.open();
    const std::uint64_t now = host_tsc();
    if (knows == Knows::ItsTsc) (void)clock.trap_time(now, now);  // both TSCs are one
  }

  static constexpr GuestVirt kRecordedAt{kKernelBase + 0x1000};

  /// A trap of the ring's CPU (2 * cpu, or 2 * cpu + 1 inside of a trap), whose first argument is
  /// `id`.
  std::uint64_t record(std::size_t ring, std::uint64_t id, std::uint64_t tsc = host_tsc(),
                       std::span<const std::byte> runs = {}) {
    shim_record record = record_of(id);
    record.tsc = tsc;
    record.percpu = percpu_of(ring).raw();
    region.record(ring, record, runs);
    return tsc;
  }
  /// The same for one that waits.
  static vmm::Trap trap(std::size_t ring, std::uint64_t id, std::uint64_t tsc = host_tsc()) {
    vmm::Trap trap;
    trap.address = kRecordedAt;
    trap.tsc = tsc;
    trap.percpu_base = percpu_of(ring);
    trap.registers.cr3 = kRoot;
    trap.registers.rsp = kKernelBase + kStack;
    trap.registers.rdi = id;
    return trap;
  }
  static GuestVirt percpu_of(std::size_t ring) {
    return kernel_address(ring / 2 == 0 ? kPercpu0 : kPercpu1);
  }
  /// Passes until so many have fired. Broken code fails the test instead of hanging it.
  testing::AssertionResult pass_until_fired(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (sink.seen.size() < count) {
      (void)replay.pass();
      if (std::chrono::steady_clock::now() > deadline) {
        return testing::AssertionFailure() << sink.seen.size() << " of " << count << " fired";
      }
    }
    return testing::AssertionSuccess();
  }
  /// Passes until nothing earlier than `tsc` can still be on its way out of a store buffer.
  void pass_beyond(std::uint64_t tsc) {
    const std::uint64_t time = clock.rate().nanoseconds(tsc) + kBeyondStoreBuffers;
    while (clock.host_time(host_tsc()) < time) (void)replay.pass();
    (void)replay.pass();
  }
  std::uint64_t capacity() const { return rings.capacity(); }

  FakeMemory memory;
  FakeKernel kernel;
  WatchingSink sink;
  vmm::PlainRegion region;

 private:
  static constexpr std::uint64_t kBeyondStoreBuffers = 40'000;  // ns, twice what the replay waits
  static constexpr GuestVirt kHome{0xffffffff9f000000};
  /// With what the clock of threads looks up when contexts are made.
  static FakeKernel& with_run_queues(FakeKernel& kernel) {
    auto& symbols = kernel.symbols_to_fill();
    symbols.add_module({"vmlinux", GuestVirt(kKernelBase), 0x1000, 0},
                       {{GuestVirt(0x100), 8, symbols.intern("runqueues"), 'D', 0}});
    symbols.seal();
    return kernel;
  }
  static shim_record record_of(std::uint64_t id) {
    shim_record record{};
    record.address = kRecordedAt.raw();
    record.cr3 = kRoot;
    record.regs[SHIM_RDI] = id;
    record.regs[SHIM_RSP] = kKernelBase + kStack;
    record.task = kKernelBase + kTask;
    std::memcpy(record.comm, "recorded", 9);
    record.pid = 201;
    record.tgid = 200;
    record.start_time = 77'000;
    return record;
  }

  vmm::ShimRegion shared_{region.memory(), region.layout().place, region.layout().bytes,
                          region.layout().data};
  vmm::ShimPresence presence_{shared_, region.layout(), kHome, vmm::PlainRegion::gate()};
  vmm::ShimSlots slots_{shared_, presence_, region.layout(), kHome, {}};
  vmm::ShimTable table_{shared_, presence_, slots_, region.layout()};
  /// Before the replay is made. Whether it has a list.
  bool add_trap_point(vmm::FetchList list) {
    EXPECT_TRUE(table_.insert(kRecordedAt, region.layout().slots));
    const bool has_list = !list.is_default();
    EXPECT_TRUE(table_.set_recording(std::array{kRecordedAt}, has_list ? 1 : 0));
    if (!has_list) return false;
    EXPECT_TRUE(rings.set_lists({std::move(list)}));
    region.record_shift = static_cast<unsigned>(std::countr_zero(region.ring(0).record_bytes));
    return true;
  }
  LinuxContexts contexts_{2, memory.memory(), with_run_queues(kernel)};

 public:
  GuestClock clock;
  vmm::RecordRings rings{shared_, presence_, table_, region.layout(), kHome};

 private:
  const bool copies_;
  ProbeSink& used_sink_;

 public:
  TrapDispatcher dispatcher{
      kernel,
      contexts_,
      used_sink_,
      clock,
      {.added = {{kRecordedAt, {.probe = kRecordedProbe, .plan = &kFunctionEntryArguments}}}}};
  FakeShim shim;
  Replay replay{shim, rings, dispatcher, clock};
};

inline std::vector<std::uint64_t> up_to(std::uint64_t count) {
  std::vector<std::uint64_t> ids(count);
  for (std::uint64_t n = 0; n < count; ++n) ids[n] = n;
  return ids;
}

}  // namespace ringside::providers
