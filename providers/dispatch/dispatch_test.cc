#include "providers/dispatch/dispatch.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "providers/testing/fake_guest.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kFirst{0x1000}, kSecond{0x2000};

/// The path that all system calls share, where rbx points at pt_regs.
constexpr ArgumentPlan kSharedReturn{kSystemCallReturnArguments.arguments,
                                     kSystemCallReturnArguments.system_call_result,
                                     ArgumentSource::word(&Registers::rbx, 120)};

class Dispatch : public ::testing::Test {
 protected:
  Dispatch() { FakeKernel::write_task(memory_); }
  /// From the next epoch on.
  void add(GuestVirt at, const Binding& binding) { next_.added.push_back({at, binding}); }
  void publish() { dispatcher_.publish(std::exchange(next_, {})); }
  void open() {
    publish();
    dispatcher_.open();
  }
  vmm::Trap trap(std::uint64_t address, std::uint64_t percpu = kPercpu0) {
    vmm::Trap trap;
    trap.address = GuestVirt(address);
    trap.percpu_base = kernel_address(percpu);
    trap.tsc = ++tsc_;
    trap.registers.cr3 = kRoot;
    trap.registers.rdi = 7;
    trap.registers.rsi = 8;
    trap.registers.rax = 55;
    return trap;
  }
  static Binding entry(std::uint32_t probe) {
    Binding binding;
    binding.probe = {probe};
    binding.plan = &kFunctionEntryArguments;
    return binding;
  }
  /// The return of this system call, on the path that all of them share.
  static Binding shared_return(std::uint32_t probe, std::uint32_t number) {
    Binding binding = entry(probe);
    binding.plan = &kSharedReturn;
    binding.number = number;
    return binding;
  }
  /// A vCPU comes to that path's end, at kFirst, after a system call of this number.
  void returns(std::uint64_t number) {
    vmm::Trap at_store = trap(0x1000);
    at_store.registers.rbx = kKernelBase + kRegs;
    memory_.put64(kRegs + 120, number);
    dispatcher_.on_trap(at_store);
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  RecordingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  LinuxContexts contexts_{2, memory_.memory(), kernel_};
  TrapDispatcher dispatcher_{kernel_, contexts_, sink_, clock_};
  DispatchTable::Change next_;
  std::uint64_t tsc_ = 0;
};

TEST_F(Dispatch, ProbesAtOnePlaceFireInTheOrderOfEnabling) {
  add(kFirst, entry(20));
  add(kSecond, entry(30));
  add(kFirst, entry(10));
  open();

  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.on_trap(trap(0x2000));

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{20, 10, 30}));
  EXPECT_EQ(sink_.firings[0].arg0, 7u);
  EXPECT_EQ(sink_.firings[0].execname, "workload");
}

TEST_F(Dispatch, CountsHitsOfPlacesAndHowLongTrapsWaited) {
  add(kFirst, entry(10));
  add(kFirst, entry(20));
  add(kSecond, entry(30));
  open();

  for (int n = 0; n < 3; ++n) dispatcher_.on_trap(trap(0x1000));
  dispatcher_.on_trap(trap(0x1000, kPercpu1));
  dispatcher_.on_trap(trap(0x2000));
  dispatcher_.on_trap(trap(0x3000));

  const auto hits = dispatcher_.table().hits_since({});
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].at, kFirst);
  EXPECT_EQ(hits[0].count, 4u);
  EXPECT_EQ(hits[0].probes, (std::vector<dif::ProbeId>{{10}, {20}}));
  EXPECT_EQ(hits[1].count, 1u);
  const auto cpus = dispatcher_.tally().by_cpu();
  ASSERT_EQ(cpus.size(), 2u);
  EXPECT_EQ(cpus[0].traps, 5u) << "one that fires nothing waits, too";
  EXPECT_EQ(cpus[1].traps, 1u);
  const auto before = dispatcher_.table().counts();
  EXPECT_TRUE(dispatcher_.table().hits_since(before).empty());
  dispatcher_.on_trap(trap(0x2000));
  const auto later = dispatcher_.table().hits_since(before);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].at, kSecond);
  EXPECT_EQ(later[0].count, 1u);
  publish();
  EXPECT_EQ(dispatcher_.table().counts().hits, (std::vector<std::uint64_t>{0, 0}))
      << "another epoch";
  dispatcher_.on_trap(trap(0x1000));
  EXPECT_EQ(dispatcher_.table().hits_since(before)[0].count, 1u) << "since this one began";
}

TEST_F(Dispatch, TheFirstEpochHasItsHitsToo) {
  TrapDispatcher fresh(kernel_, contexts_, sink_, clock_, {.added = {{kFirst, entry(10)}}});
  EXPECT_TRUE(fresh.table().hits_since({}).empty());
  fresh.open();
  fresh.on_trap(trap(0x1000));

  const auto hits = fresh.table().hits_since({});

  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].count, 1u);
}

TEST_F(Dispatch, NothingFiresBeforeOpenOrAfterClose) {
  add(kFirst, entry(10));
  publish();

  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.open();
  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.close();
  dispatcher_.on_trap(trap(0x1000));

  EXPECT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(dispatcher_.counters().closed, 2u);
}

TEST_F(Dispatch, ATrapWhereNoProbeStandsOnlyCounts) {
  add(kFirst, entry(10));
  open();

  dispatcher_.on_trap(trap(0x3000));

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_EQ(dispatcher_.counters().no_point, 1u);
}

TEST_F(Dispatch, WhatIsAddedFiresFromTheNextEpochOnAfterTheOthers) {
  add(kFirst, entry(10));
  open();
  add(kFirst, entry(5));
  add(kSecond, entry(20));
  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.on_trap(trap(0x2000));
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10})) << "not before";

  publish();
  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.on_trap(trap(0x2000));

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10, 10, 5, 20}));
}

TEST_F(Dispatch, WhatIsRemovedFiresNoMoreAndTheOthersDo) {
  add(kFirst, entry(10));
  add(kFirst, entry(20));
  add(kSecond, entry(20));
  open();
  const std::vector removed{dif::ProbeId{20}};

  EXPECT_EQ(dispatcher_.places_of(removed), (std::vector{kFirst, kSecond}));
  next_.removed = removed;
  publish();
  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.on_trap(trap(0x2000));

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(dispatcher_.counters().no_point, 1u);
  EXPECT_TRUE(dispatcher_.places_of(removed).empty());
}

TEST_F(Dispatch, APlaceThatIsForgottenFiresOnlyWhatIsAddedThen) {
  add(kFirst, entry(10));
  open();

  next_.lost.push_back(kFirst);
  add(kFirst, entry(20));
  publish();
  dispatcher_.on_trap(trap(0x1000));

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{20}));
}

TEST_F(Dispatch, AnUnknownPerCpuBaseFiresNothing) {
  add(kFirst, entry(10));
  open();

  dispatcher_.on_trap(trap(0x1000, 0x77000));

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_EQ(dispatcher_.counters().unknown_cpu, 1u);
}

TEST_F(Dispatch, TheCpuIsTheOneWhosePerCpuBaseTheGuestHas) {
  add(kFirst, entry(10));
  open();

  dispatcher_.on_trap(trap(0x1000, kPercpu1));

  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u);
}

TEST_F(Dispatch, AConditionalJumpFiresOnlyWhenItIsTaken) {
  constexpr std::uint8_t kEqual = 4;
  constexpr std::uint64_t kZeroFlag = 1 << 6;
  Binding leave = entry(10);
  leave.plan = &kFunctionExitArguments;
  leave.condition = kEqual;
  leave.site = 0x42;
  add(kFirst, leave);
  open();

  vmm::Trap taken = trap(0x1000), passed = trap(0x1000);
  taken.registers.rflags = kZeroFlag;
  dispatcher_.on_trap(passed);
  dispatcher_.on_trap(taken);

  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].arg0, 0x42u);
  EXPECT_EQ(sink_.firings[0].arg1, ~0ULL) << "a fault: a jump has no return value";
}

TEST_F(Dispatch, ASharedReturnFiresForTheNumberInPtRegs) {
  add(kFirst, shared_return(50, 0));
  add(kFirst, shared_return(51, 1));
  add(kFirst, shared_return(1, 3));
  add(kFirst, shared_return(52, kSyscallNumbers - 1));
  open();
  returns(3);
  returns(kSyscallNumbers - 1);
  returns(kSyscallNumbers);
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{1, 52})) << "any probe, the last number";
  sink_.firings.clear();

  returns(1);
  returns(2);
  returns(0x4000'0000);  // x32's read
  returns(UINT64_MAX);   // what sigreturn leaves

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{51, 50}));
  EXPECT_EQ(sink_.firings[0].arg1, 55u);
}

TEST_F(Dispatch, OneOfTheSharedReturnsGoesAndTheOthersStay) {
  add(kFirst, shared_return(50, 0));
  add(kFirst, shared_return(51, 1));
  open();
  const std::vector removed{dif::ProbeId{50}};

  EXPECT_EQ(dispatcher_.places_of(removed), std::vector{kFirst});
  next_.removed = removed;
  publish();
  returns(0);
  returns(1);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{51}));
}

TEST_F(Dispatch, NoProviderGivesANumberThatNoSystemCallHas) {
  add(kFirst, shared_return(50, kSyscallNumbers));
  EXPECT_DEATH(publish(), "internal rule broken");
}

TEST_F(Dispatch, OtherProbesStandWhereSystemCallsReturn) {
  add(kFirst, shared_return(50, 0));
  add(kFirst, entry(10));
  add(kSecond, shared_return(60, 0));
  open();

  returns(0);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10, 50})) << "those come before";
  const auto hits = dispatcher_.table().hits_since({});
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].probes, (std::vector<dif::ProbeId>{{10}, {50}}));
  publish();
  returns(0);
  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10, 50, 10, 50})) << "in the next epoch, too";
  EXPECT_EQ(dispatcher_.places_of(std::vector<dif::ProbeId>{{60}, {10}}),
            (std::vector{kFirst, kSecond}));
}

TEST_F(Dispatch, AVcpuThatStoppedWithoutTheShimFiresAsTheCpuThatItIs) {
  add(kFirst, entry(10));
  dispatcher_.on_stop(trap(0x1000), 0, 1);
  EXPECT_EQ(dispatcher_.counters().closed, 1u);
  open();

  dispatcher_.on_stop(trap(0x1000, 0x77000), 0, 1);

  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u);
}

TEST_F(Dispatch, ASharedReturnWithAWildPointerFiresNothing) {
  add(kFirst, shared_return(50, 0));
  open();
  vmm::Trap wild = trap(0x1000);
  wild.registers.rbx = UINT64_MAX - 4;

  dispatcher_.on_trap(wild);

  EXPECT_TRUE(sink_.firings.empty());
}

/// f, at kF, ends at kJump in a jump to g, whose ret is at kRet.
class DispatchTailCalls : public Dispatch {
 protected:
  static constexpr GuestVirt kJump{0x1010}, kRet{0x2020}, kBlind{0x2030};
  static constexpr std::uint64_t kFault = ~0ULL;  // as the sink shows one
  static constexpr std::uint64_t kStackPointer = kKernelBase + kStack + 0x100;

  void add_return(std::uint32_t probe) {
    Binding binding;
    binding.probe = {probe};
    binding.role = Role::Waits;
    binding.site = 0x10;
    binding.plan = &kFunctionReturnArguments;
    binding.tail_call = &f_;
    add(kJump, binding);
    binding.role = Role::Ends;
    add(kRet, binding);
    binding.role = Role::EndsUnknown;
    add(kBlind, binding);
  }
  void run(GuestVirt at, std::uint64_t value = 0, std::uint64_t stack_pointer = kStackPointer,
           std::uint64_t percpu = kPercpu0) {
    vmm::Trap here = trap(at.raw(), percpu);
    here.registers.rsp = stack_pointer;
    here.registers.rax = value;
    dispatcher_.on_trap(here);
  }
  /// The fired probe's arg0 and arg1.
  struct Arguments {
    std::uint64_t offset, value;
    bool operator==(const Arguments&) const = default;
  };
  Arguments arguments(std::size_t firing) const {
    return {sink_.firings[firing].arg0, sink_.firings[firing].arg1};
  }

  const TailCall f_{GuestVirt(0x1000), {GuestVirt(0x2000)}};
};

TEST_F(DispatchTailCalls, AReturnFiresWhereTheFunctionReturnsThatWasJumpedTo) {
  add_return(10);
  open();

  run(kJump, 1);
  EXPECT_TRUE(sink_.firings.empty());
  run(kRet, 100);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(arguments(0), (Arguments{0x10, 100}));
  run(kRet, 100);
  EXPECT_EQ(sink_.firings.size(), 1u) << "g was called, and f was not in it";
  const auto hits = dispatcher_.table().hits_since({});
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].at, kJump);
  EXPECT_EQ(hits[0].probes, (std::vector<dif::ProbeId>{{10}}));
  EXPECT_EQ(hits[1].probes, (std::vector<dif::ProbeId>{{10}}));
}

TEST_F(DispatchTailCalls, AReturnByAConditionEndsNothingUnlessItIsTaken) {
  constexpr std::uint8_t kEqual = 4;
  Binding binding;
  binding.probe = {10};
  binding.role = Role::Waits;
  binding.plan = &kFunctionReturnArguments;
  binding.tail_call = &f_;
  add(kJump, binding);
  binding.role = Role::Ends;
  binding.condition = kEqual;
  add(kRet, binding);
  open();
  run(kJump);
  run(kRet, 1);
  EXPECT_TRUE(sink_.firings.empty()) << "the zero flag is clear";

  vmm::Trap taken = trap(kRet.raw());
  taken.registers.rsp = kStackPointer;
  taken.registers.rflags = 1 << 6;
  dispatcher_.on_trap(taken);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10}));
}

TEST_F(DispatchTailCalls, TheFunctionThatWasJumpedToFiresFirst) {
  add_return(10);
  Binding own = entry(20);
  own.plan = &kFunctionReturnArguments;
  add(kRet, own);
  open();

  run(kJump);
  run(kRet);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{20, 10}));
}

TEST_F(DispatchTailCalls, ATaskMayGoOnOnAnotherCpu) {
  add_return(10);
  open();

  run(kJump, 0, kStackPointer, kPercpu0);
  run(kRet, 7, kStackPointer - 64, kPercpu1);
  EXPECT_TRUE(sink_.firings.empty()) << "a call of g deeper down";
  run(kRet, 100, kStackPointer, kPercpu1);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(arguments(0).value, 100u);
}

TEST_F(DispatchTailCalls, WhereNobodyKnowsTheValueItIsAFault) {
  add_return(10);
  open();

  run(kJump);
  run(kBlind, 100);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(sink_.firings[0].arg0, 0x10u);
  EXPECT_EQ(arguments(0).value, kFault);
}

TEST_F(DispatchTailCalls, WithoutATaskTheJumpIsTheReturn) {
  add_return(10);
  open();
  memory_.put64(kPercpu0, 0x1000);  // current is a pointer to nowhere

  run(kJump);
  run(kRet, 100);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(arguments(0).value, kFault);
}

TEST_F(DispatchTailCalls, AJumpThatIsNotTakenWaitsForNothing) {
  Binding binding;
  binding.probe = {10};
  binding.role = Role::Waits;
  binding.condition = 4;  // je, with the zero flag clear
  binding.tail_call = &f_;
  add(kJump, binding);
  binding.role = Role::Ends;
  binding.condition = arch::kNoCondition;
  add(kRet, binding);
  open();

  run(kJump);
  run(kRet);

  EXPECT_TRUE(sink_.firings.empty());
}

TEST_F(DispatchTailCalls, AProbeThatIsDisabledMeanwhileDoesNotFire) {
  add_return(10);
  add_return(11);
  open();
  EXPECT_EQ(dispatcher_.places_of(std::vector<dif::ProbeId>{{10}}),
            (std::vector<GuestVirt>{kJump, kRet, kBlind}));

  run(kJump);
  next_.removed = {{10}};
  publish();
  run(kRet, 5);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{11}));
  EXPECT_EQ(dispatcher_.table().hits_since({})[0].probes, (std::vector<dif::ProbeId>{{11}}));
}

TEST_F(DispatchTailCalls, AJumpMayEndAWaitAndBeginAnother) {
  add_return(10);
  // g's own jump is at kBlind, where f's is not followed any further.
  const TailCall g{GuestVirt(0x2000), {GuestVirt(0x3000)}};
  Binding binding;
  binding.probe = {20};
  binding.role = Role::Waits;
  binding.plan = &kFunctionReturnArguments;
  binding.tail_call = &g;
  add(kBlind, binding);
  binding.role = Role::Ends;
  add(GuestVirt(0x3000), binding);
  open();

  run(kJump);
  run(kBlind);
  run(GuestVirt(0x3000), 9);

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{10, 20}));
  EXPECT_EQ(arguments(0).value, kFault);
  EXPECT_EQ(arguments(1).value, 9u);
}

TEST_F(DispatchTailCalls, AnEnabledOneFiresFromItsNextJumpOn) {
  add(kFirst, entry(1));
  open();
  run(kJump);
  add_return(10);
  publish();

  run(kRet, 5);
  EXPECT_TRUE(sink_.firings.empty());
  run(kJump);
  run(kRet, 6);

  EXPECT_EQ(arguments(0), (Arguments{0x10, 6}));
}

}  // namespace
}  // namespace ringside::providers
