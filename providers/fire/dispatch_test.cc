#include "providers/fire/dispatch.h"

#include <gtest/gtest.h>

#include <map>

#include "providers/fake_guest.h"

namespace ringside::providers {
namespace {

class FakeFinder final : public TracepointFinder {
 public:
  std::optional<TracepointId> armed_at(GuestVirt address) const override {
    const auto found = points.find(address.raw());
    return found == points.end() ? std::nullopt : std::optional(found->second);
  }
  std::map<std::uint64_t, TracepointId> points;
};

class Dispatch : public ::testing::Test {
 protected:
  Dispatch() {
    FakeKernel::write_task(memory_);
    finder_.points = {{0x1000, {0}}, {0x2000, {1}}};
  }
  void open() {
    dispatcher_.seal(sink_, clock_);
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
    return binding;
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  FakeFinder finder_;
  RecordingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  LinuxContext context_{memory_.memory(), kernel_, find_pt_regs(kernel_.types())};
  TrapDispatcher dispatcher_{finder_, kernel_, context_, 2};
  std::uint64_t tsc_ = 0;
};

TEST_F(Dispatch, ProbesAtOnePlaceFireInTheOrderOfEnabling) {
  dispatcher_.add({0}, entry(20));
  dispatcher_.add({1}, entry(30));
  dispatcher_.add({0}, entry(10));
  open();

  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.on_trap(trap(0x2000));

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{20, 10, 30}));
  EXPECT_EQ(sink_.firings[0].arg0, 7u);
  EXPECT_EQ(sink_.firings[0].execname, "workload");
}

TEST_F(Dispatch, NothingFiresBeforeOpenOrAfterClose) {
  dispatcher_.add({0}, entry(10));
  dispatcher_.seal(sink_, clock_);

  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.open();
  dispatcher_.on_trap(trap(0x1000));
  dispatcher_.close();
  dispatcher_.on_trap(trap(0x1000));

  EXPECT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(dispatcher_.counters().closed, 2u);
}

TEST_F(Dispatch, ATrapAtARetiredPlaceOnlyCounts) {
  dispatcher_.add({0}, entry(10));
  open();

  dispatcher_.on_trap(trap(0x3000));

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_EQ(dispatcher_.counters().no_point, 1u);
}

TEST_F(Dispatch, APlaceWithoutBindingsFiresNothing) {
  dispatcher_.add({0}, entry(10));
  open();

  dispatcher_.on_trap(trap(0x2000));

  EXPECT_TRUE(sink_.firings.empty());
}

TEST_F(Dispatch, AnUnknownPerCpuBaseFiresNothing) {
  dispatcher_.add({0}, entry(10));
  open();

  dispatcher_.on_trap(trap(0x1000, 0x77000));

  EXPECT_TRUE(sink_.firings.empty());
  EXPECT_EQ(dispatcher_.counters().unknown_cpu, 1u);
}

TEST_F(Dispatch, TheCpuIsTheOneWhosePerCpuBaseTheGuestHas) {
  dispatcher_.add({0}, entry(10));
  open();

  dispatcher_.on_trap(trap(0x1000, kPercpu1));

  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u);
}

TEST_F(Dispatch, AConditionalJumpFiresOnlyWhenItIsTaken) {
  constexpr std::uint8_t kEqual = 4;
  constexpr std::uint64_t kZeroFlag = 1 << 6;
  Binding leave = entry(10);
  leave.kind = BindingKind::FunctionReturn;
  leave.condition = kEqual;
  leave.offset = 0x42;
  dispatcher_.add({0}, leave);
  open();

  vmm::Trap taken = trap(0x1000), passed = trap(0x1000);
  taken.registers.rflags = kZeroFlag;
  dispatcher_.on_trap(passed);
  dispatcher_.on_trap(taken);

  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].arg0, 0x42u);
  EXPECT_EQ(sink_.firings[0].arg1, 0u) << "a jump has no return value";
}

TEST_F(Dispatch, ASharedReturnFiresForTheNumberInPtRegs) {
  constexpr std::uint8_t kRbx = 3;
  Binding read = entry(50);
  read.kind = BindingKind::SyscallReturn;
  read.number = 0;
  read.regs_register = kRbx;
  Binding write = read;
  write.probe = {51};
  write.number = 1;
  dispatcher_.add({0}, read);
  dispatcher_.add({0}, write);
  open();
  const auto returns = [&](std::uint64_t number) {
    vmm::Trap at_store = trap(0x1000);
    at_store.registers.rbx = kKernelBase + kRegs;
    memory_.put64(kRegs + 120, number);
    dispatcher_.on_trap(at_store);
  };

  returns(1);
  returns(2);
  returns(0x4000'0000);  // x32's read
  returns(UINT64_MAX);   // what sigreturn leaves

  EXPECT_EQ(sink_.ids(), (std::vector<std::uint32_t>{51, 50}));
  EXPECT_EQ(sink_.firings[0].arg1, 55u);
}

TEST_F(Dispatch, ASharedReturnWithAWildPointerFiresNothing) {
  Binding read = entry(50);
  read.kind = BindingKind::SyscallReturn;
  read.number = 0;
  read.regs_register = 3;
  dispatcher_.add({0}, read);
  open();
  vmm::Trap wild = trap(0x1000);
  wild.registers.rbx = UINT64_MAX - 4;

  dispatcher_.on_trap(wild);

  EXPECT_TRUE(sink_.firings.empty());
}

}  // namespace
}  // namespace ringside::providers
