// The whole way of a trap on the host: dispatcher, Linux context, engine. The binary's operator new
// aborts when it is used during a firing, so every test here is also a test that it allocates
// nothing.
#include <gtest/gtest.h>

#include "dif/engine/engine.h"
#include "dif/engine/fire_context.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/dispatch/dispatch.h"
#include "providers/dispatch/engine_sink.h"
#include "providers/testing/fake_guest.h"
#include "providers/vm/vm_provider.h"
#include "vmm/fake_vcpu_exits_for_tests.h"
#include "vmm/linux/processes/user_unwind_fakes_for_tests.h"

namespace ringside::providers {
namespace {

using namespace dif::testing;

constexpr dif::ProbeId kProbe{7}, kReturn{8};
constexpr GuestVirt kPlace{0xffff'ffff'8100'0000}, kShared{0xffff'ffff'8100'1000};
constexpr ArgumentPlan kSharedReturn{kSystemCallReturnArguments.arguments,
                                     kSystemCallReturnArguments.system_call_result,
                                     ArgumentSource::word(&Registers::rbx, 120)};

class WatchingSink final : public EngineSink {
 public:
  using EngineSink::EngineSink;
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    in_fire_context = dif::in_fire_context();
    EngineSink::fire(probe, record, guest);
  }

  bool in_fire_context = false;
};

dif::Program everything_of_a_trap() {
  using dif::Builtin;
  auto program = count_by_execname();
  for (const Builtin which : {Builtin::Pid, Builtin::Ppid, Builtin::Uid, Builtin::Arg0,
                              Builtin::Arg9, Builtin::Caller, Builtin::Timestamp}) {
    program.clauses[0].actions.push_back(action(dif::ActionKind::Trace, {builtin(which)}));
  }
  program.clauses.push_back(
      clause({action(dif::ActionKind::Trace, {load_from(kKernelBase + kGuestBytes)})}));
  return program;
}

class FirePath : public ::testing::Test {
 protected:
  FirePath() : engine_(*dif::verify_program(everything_of_a_trap()), {}, 2), sink_(engine_, 2) {
    FakeKernel::write_task(memory_);
    for (const dif::ProbeId probe : {kProbe, kReturn}) {
      engine_.enable(0, probe, {"fbt", "vmlinux", "vfs_read", "entry"});
    }
    engine_.enable(1, kProbe, {"fbt", "vmlinux", "vfs_read", "entry"});
    Binding entry{kProbe};
    entry.plan = &kFunctionEntryArguments;
    Binding shared{kReturn};
    shared.plan = &kSharedReturn;
    shared.number = 1;
    dispatcher_.publish({.added = {{kPlace, entry}, {kShared, shared}}});
    dispatcher_.open();
    trap_.address = kPlace;
    trap_.percpu_base = kernel_address(kPercpu1);
    trap_.registers.cr3 = kRoot;
    trap_.registers.rsp = kKernelBase + kStack;
    trap_.registers.rbx = kKernelBase + kRegs;
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  dif::Engine engine_;
  WatchingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  LinuxContexts contexts_{2, memory_.memory(), kernel_};
  TrapDispatcher dispatcher_{kernel_, contexts_, sink_, clock_};
  vmm::Trap trap_;
};

TEST_F(FirePath, IsFireContextFromTheTrapOn) {
  dispatcher_.on_trap(trap_);

  EXPECT_TRUE(sink_.in_fire_context);
  EXPECT_FALSE(dif::in_fire_context());
}

TEST_F(FirePath, RecordsAggregatesAndFaultsWithoutAllocating) {
  memory_.put64(kRegs + 120, 1);

  dispatcher_.on_trap(trap_);
  trap_.address = kShared;
  dispatcher_.on_trap(trap_);

  const dif::TraceData trace_data = engine_.take_quiescent();
  ASSERT_EQ(trace_data.records.size(), 2u);
  EXPECT_EQ(trace_data.records[0].vcpu, 1u);
  ASSERT_EQ(trace_data.aggregates.size(), 1u);
  EXPECT_EQ(trace_data.aggregates[0].words[0], 2);
  ASSERT_EQ(trace_data.faults.size(), 1u) << "the clause that reads past the end of memory";
}

TEST_F(FirePath, FiringsAreCountedAndTheLastOnesRemembered) {
  EngineSink remembering(engine_, 2, EngineSink::Remember::LastFirings);
  EXPECT_EQ(remembering.firings(), 0u);
  EXPECT_TRUE(remembering.last_firings().empty());
  const dif::GuestContext& guest = dif::no_guest_context();
  std::uint64_t time = 0;
  const auto fire = [&](std::uint32_t probe, std::uint32_t vcpu) {
    remembering.fire({probe}, {vcpu, ++time, 0}, guest);
  };
  fire(1, 0);
  fire(2, 1);
  fire(3, 0);
  EXPECT_EQ(remembering.firings(), 3u);
  EXPECT_EQ(remembering.last_firings(), (std::vector<dif::ProbeId>{{3}, {2}, {1}}));

  for (std::uint32_t probe = 4; probe < 13; ++probe) fire(probe, probe % 2);
  EXPECT_EQ(remembering.firings(), 12u);
  EXPECT_EQ(remembering.last_firings(),
            (std::vector<dif::ProbeId>{{12}, {11}, {10}, {9}, {8}, {7}, {6}, {5}}))
      << "eight, of all vCPUs";
  for (std::uint32_t probe = 20; probe < 30; ++probe) fire(probe, 0);
  EXPECT_EQ(remembering.last_firings().back(), dif::ProbeId{22});
  fire(30, engine_.host_vcpu());
  EXPECT_EQ(remembering.firings(), 23u) << "what happens on no vCPU, too";
  EXPECT_EQ(remembering.last_firings().front(), dif::ProbeId{30});
  EXPECT_TRUE(sink_.last_firings().empty()) << "it was not told to";
}

TEST_F(FirePath, AVcpuIsKeptWhereTheMachineCanBePaused) {
  FakeMachine machine(memory_);
  FiringPause firing_pause(machine, 2, nullptr);
  EngineSink keeping(engine_, 2);
  keeping.keep(1, {});
  keeping.settle(1);
  EXPECT_FALSE(machine.paused) << "nobody can";

  keeping.set_firing_pause(firing_pause);
  keeping.keep(1, {});
  keeping.settle(0);
  EXPECT_FALSE(machine.paused) << "another CPU";
  keeping.settle(1);

  EXPECT_TRUE(machine.paused);
  firing_pause.release(firing_pause.take_asked());
}

TEST_F(FirePath, AnEventOfAVcpuAllocatesNothingEither) {
  LinuxContexts linux_contexts(2, memory_.memory(), kernel_);
  VcpuContexts event_contexts(memory_.memory(), 2, LinuxGuest{kernel_, linux_contexts});
  EventTable table;
  table.by_kind[static_cast<std::size_t>(vmm::VcpuEvent::Kind::PortOut)] = kProbe;
  VmDispatcher events(event_contexts, sink_, clock_, VmProvider::plans(), table);
  events.open();
  vmm::FakeStoppedVcpu vcpu(1);
  vcpu.state.cr3 = kRoot;
  vcpu.state.gs_base = kKernelBase + kPercpu1;

  events.on_event(vcpu, {vmm::VcpuEvent::Kind::PortOut, 0, {0x3f8, 1, 1, 'x'}});

  EXPECT_TRUE(sink_.in_fire_context);
  const dif::TraceData trace_data = engine_.take_quiescent();
  ASSERT_EQ(trace_data.aggregates.size(), 1u);
  EXPECT_EQ(std::memcmp(trace_data.aggregates[0].key.data(), "workload", 9), 0);
  EXPECT_EQ(vcpu.fetched, 1u);
}

TEST_F(FirePath, SurvivesATrapWhoseEveryWordIsALie) {
  for (const std::uint64_t lie : {std::uint64_t{0}, UINT64_MAX, std::uint64_t{1} << 63,
                                  std::uint64_t{0x4d00'0000'0000'0000}, kKernelBase - 1}) {
    for (const GuestVirt place : {kPlace, kShared}) {
      vmm::Trap hostile = trap_;
      hostile.address = place;
      hostile.tsc = lie;
      Registers& r = hostile.registers;
      r.rsp = r.rbx = r.rdi = r.cr3 = r.rflags = r.rax = lie;
      memory_.put64(kPercpu1, lie);  // current
      dispatcher_.on_trap(hostile);
    }
  }

  EXPECT_FALSE(engine_.take_quiescent().faults.empty());
}

TEST(FirePathOfUserStacks, TablesAreReadAndRememberedWithoutAllocating) {
  constexpr std::uint64_t kBase = 0x7f00'0000'0000;
  guest_linux::fakes::UnwindImage image;
  image.functions = {{0x1000, 0x40, {}}, {0x1100, 0x40, {}}};
  guest_linux::fakes::UnwindGuest guest;
  guest.map(image, kBase);
  const GuestVirt mm = guest.finish();
  guest.stand_at(kBase + 0x1010, {kBase + 0x1120, 0});
  guest_linux::UserUnwinder unwinder(guest.files.memory(),
                                     guest_linux::fakes::user_unwind_layout());
  std::array<std::uint64_t, 8> frames{};

  std::size_t first = 0, second = 0;
  {
    const dif::FireScope firing;
    first = unwinder.walk({guest.kernel, guest.memory, mm}, guest.registers, frames);
    second = unwinder.walk({guest.kernel, guest.memory, mm}, guest.registers, frames);
  }

  EXPECT_EQ(first, 2u);
  EXPECT_EQ(second, 2u);
  EXPECT_EQ(frames[1], kBase + 0x1120);
  EXPECT_EQ(unwinder.counts().cached, 2u);
}

}  // namespace
}  // namespace ringside::providers
