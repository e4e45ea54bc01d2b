#include "providers/context/linux_context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "providers/functions/syscall_table.h"
#include "providers/testing/fake_guest.h"

namespace ringside::providers {
namespace {

using dif::ContextVariable;

class Context : public ::testing::Test {
 protected:
  Context() {
    FakeKernel::write_task(memory_);
    registers_.cr3 = kRoot;
    registers_.rsp = kKernelBase + kStack;
  }
  /// With what the clock of threads looks up when the context is made.
  static FakeKernel& with_run_queues(FakeKernel& kernel) {
    auto& symbols = kernel.symbols_to_fill();
    symbols.add_module({"vmlinux", GuestVirt(kKernelBase), 0x1000, 0},
                       {{GuestVirt(0x100), 8, symbols.intern("runqueues"), 'D', 0}});
    symbols.seal();
    return kernel;
  }
  void begin(const ArgumentPlan& plan) {
    binding_.plan = &plan;
    context_.begin(registers_, kernel_address(kPercpu0));
    context_.select(binding_);
  }
  std::uint64_t value(ContextVariable which) { return context_.variable(which).value_or(0xdead); }

  FakeMemory memory_;
  FakeKernel kernel_;
  RunTimes run_times_;
  LinuxContext context_{memory_.memory(), with_run_queues(kernel_), run_times_};
  Registers registers_;
  Binding binding_;
};

TEST_F(Context, IdentityComesFromCurrent) {
  begin(kFunctionEntryArguments);

  EXPECT_EQ(value(ContextVariable::Curthread), kKernelBase + kTask);
  EXPECT_EQ(value(ContextVariable::Pid), 100u);
  EXPECT_EQ(value(ContextVariable::Tid), 101u);
  EXPECT_EQ(value(ContextVariable::Ppid), 1u);
  EXPECT_EQ(value(ContextVariable::Uid), 1000u);
  EXPECT_EQ(value(ContextVariable::Gid), 1001u);
  EXPECT_EQ(value(ContextVariable::Vtimestamp), 123'456u);
  EXPECT_EQ(kernel_.current_reads, 1u) << "current is read once a firing";
}

TEST_F(Context, ATaskThatTheTrapBroughtIsNotLookedFor) {
  vmm::TrappedTask task{kernel_address(kTask), {}, vmm::TrappedTask::Ids{201, 200}};
  std::ranges::copy(std::string_view("brought"), task.comm.begin());
  context_.begin(registers_, kernel_address(kPercpu0), task);
  char name[16];

  EXPECT_EQ(value(ContextVariable::Curthread), kKernelBase + kTask);
  EXPECT_EQ(value(ContextVariable::Pid), 200u);
  EXPECT_EQ(value(ContextVariable::Tid), 201u);
  EXPECT_EQ(context_.execname(name), 7u);
  EXPECT_EQ(std::string(name, 7), "brought");
  EXPECT_EQ(value(ContextVariable::Uid), 1000u) << "the rest is read";
  EXPECT_EQ(kernel_.current_reads, 0u);

  context_.begin(registers_, kernel_address(kPercpu0));
  EXPECT_EQ(value(ContextVariable::Pid), 100u) << "of another trap";
}

TEST_F(Context, ExecnameIsCutAtTheCallersSpace) {
  begin(kFunctionEntryArguments);
  char four[4];

  EXPECT_EQ(context_.execname(four), 4u);
  EXPECT_EQ(std::string(four, 4), "work");
}

TEST_F(Context, ACommWithoutNulEndsAtItsSixteenBytes) {
  memory_.put(kTask, "0123456789abcdefXYZ", 16);
  begin(kFunctionEntryArguments);
  char wide[64];

  EXPECT_EQ(context_.execname(wide), 16u);
}

TEST_F(Context, AWildCurrentIsAFaultAtItsField) {
  memory_.put64(kPercpu0, 0x1234'5678'0000);
  begin(kFunctionEntryArguments);

  const auto pid = context_.variable(ContextVariable::Pid);

  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(pid.error().address, 0x1234'5678'0014u);
}

TEST_F(Context, AFieldThatTheTypesDoNotKnowIsAFault) {
  kernel_.layout_to_change().task_comm.reset();
  LinuxContext context(memory_.memory(), kernel_, run_times_);
  context.begin(registers_, kernel_address(kPercpu0));
  char name[16];

  const auto length = context.execname(name);

  ASSERT_FALSE(length);
  EXPECT_EQ(length.error().kind, FaultKind::IllegalOperation);
}

TEST_F(Context, EntryArgumentsAreInRegistersThenOnTheStack) {
  registers_.rdi = 10, registers_.rsi = 11, registers_.rdx = 12;
  registers_.rcx = 13, registers_.r8 = 14, registers_.r9 = 15;
  memory_.put64(kStack, 0xc0de);  // the return address
  memory_.put64(kStack + 8, 16);
  memory_.put64(kStack + 32, 19);
  begin(kFunctionEntryArguments);

  for (unsigned n = 0; n < 7; ++n) EXPECT_EQ(context_.argument(n), 10 + n) << n;
  EXPECT_EQ(context_.argument(9), 19u);
  EXPECT_EQ(value(ContextVariable::Caller), 0xc0deu);
}

TEST_F(Context, ReturnHasItsOffsetAndValue) {
  registers_.rax = 77;
  binding_.site = 0x1f;
  begin(kFunctionReturnArguments);

  EXPECT_EQ(context_.argument(0), 0x1fu);
  EXPECT_EQ(context_.argument(1), 77u);
  EXPECT_EQ(context_.argument(2), 0u);
  EXPECT_EQ(value(ContextVariable::Errno), 0u) << "only system calls have one";
}

TEST_F(Context, SystemCallArgumentsComeFromPtRegs) {
  registers_.rdi = kKernelBase + kRegs;
  const std::uint64_t offsets[] = {112, 104, 96, 56, 72, 64};
  for (unsigned n = 0; n < 6; ++n) memory_.put64(kRegs + offsets[n], 100 + n);
  const ArgumentPlan plan = system_call_entry_plan(find_pt_regs(kernel_.types()));
  begin(plan);

  for (unsigned n = 0; n < 6; ++n) EXPECT_EQ(context_.argument(n), 100 + n) << n;
  EXPECT_EQ(context_.argument(6), 0u);
}

TEST_F(Context, SystemCallReturnHasItsValueTwiceAndErrno) {
  registers_.rax = static_cast<std::uint64_t>(-2);
  begin(kSystemCallReturnArguments);

  EXPECT_EQ(context_.argument(0), registers_.rax);
  EXPECT_EQ(context_.argument(1), registers_.rax);
  EXPECT_EQ(value(ContextVariable::Errno), 2u);
}

TEST_F(Context, ErrnoIsZeroForSuccessAndForWhatIsNoError) {
  registers_.rax = 0;
  begin(kSystemCallReturnArguments);
  EXPECT_EQ(value(ContextVariable::Errno), 0u);

  registers_.rax = static_cast<std::uint64_t>(-4096);  // an address from mmap may look like this
  begin(kSystemCallReturnArguments);
  EXPECT_EQ(value(ContextVariable::Errno), 0u);
}

TEST_F(Context, AtNoProbesPlaceThereAreNoArgumentsAndNoErrno) {
  registers_.rdi = 7;
  registers_.rax = static_cast<std::uint64_t>(-2);
  begin(kSystemCallReturnArguments);
  context_.select_anywhere();

  EXPECT_EQ(context_.argument(0), 0u);
  EXPECT_EQ(value(ContextVariable::Errno), 0u);
  EXPECT_EQ(value(ContextVariable::Pid), 100u);
}

TEST_F(Context, UserMemoryIsReadThroughTheTrapsOwnTableWhateverThePcid) {
  memory_.put64(kStack, 4711);
  registers_.cr3 = kRoot | 0x8000'0000'0000'0005;  // no-flush bit and a PCID
  begin(kNoArguments);

  const auto word = load<std::uint64_t>(context_.user(), GuestVirt(kUserBase + kStack));

  ASSERT_TRUE(word);
  EXPECT_EQ(*word, 4711u);
}

TEST_F(Context, KernelAddressesAreNotUserMemoryThoughTheProcessMapsThem) {
  begin(kNoArguments);
  ASSERT_TRUE(load<std::uint64_t>(context_.kernel(), kernel_address(kStack)));

  const auto word = load<std::uint64_t>(context_.user(), kernel_address(kStack));

  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(word.error().address, kKernelBase + kStack);
}

}  // namespace
}  // namespace ringside::providers
