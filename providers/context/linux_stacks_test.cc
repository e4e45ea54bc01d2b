#include <gtest/gtest.h>

#include "providers/context/linux_context.h"
#include "providers/testing/fake_guest.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

using dif::ContextVariable;

constexpr std::uint64_t kTaskMm = 48, kTaskStack = 56;  // as FakeKernel has them
constexpr std::uint64_t kStackBottom = 0x40000, kStackBytes = 16 << 10;
constexpr std::uint64_t kSaved = kStackBottom + kStackBytes - 168;  // struct pt_regs
constexpr std::uint64_t kStackText = kKernelBase + 0x100'000;
constexpr std::uint64_t kUserStack = 0x200'000;  // the second 2 MiB page

class Stacks : public ::testing::Test {
 protected:
  Stacks() {
    FakeKernel::write_task(memory_);
    memory_.put64(kTask + kTaskMm, 1);
    memory_.put64(kTask + kTaskStack, kKernelBase + kStackBottom);
    tables_.add({GuestVirt(kStackText), GuestVirt(kStackText + 0x1000)}, {}, {});
    registers_.cr3 = kRoot;
    registers_.rsp = kKernelBase + kStack;
  }
  void begin(const ArgumentPlan& plan) {
    Binding binding;
    binding.plan = &plan;
    begin(binding);
  }
  void begin(const Binding& binding) {
    context_.begin(registers_, kernel_address(kPercpu0));
    context_.select(binding);
  }
  void enter_from(std::uint64_t rip, std::uint64_t cs, std::uint64_t rsp, std::uint64_t rbp) {
    memory_.put64(kSaved + 16 * 8, rip);
    memory_.put64(kSaved + 17 * 8, cs);
    memory_.put64(kSaved + 19 * 8, rsp);
    memory_.put64(kSaved + 4 * 8, rbp);
  }
  std::vector<std::uint64_t> stack(bool of_user) {
    std::vector<std::uint64_t> frames(8);
    const auto found = of_user ? context_.user_stack(frames) : context_.kernel_stack(frames);
    frames.resize(found.value_or(0));
    return frames;
  }
  std::uint64_t value(ContextVariable which) { return context_.variable(which).value_or(0xdead); }
  /// Makes both pages of user space writable data that was written before.
  void allow_writing(bool second_page = true) {
    constexpr std::uint64_t kRights = 0x67, kNoExecute = std::uint64_t{1} << 63;
    memory_.put64(kRoot, 0x4000 | kRights);
    memory_.put64(0x4000 + 256 * 8, 0x3000 | kRights);
    memory_.put64(0x3000, 0x80 | kRights | kNoExecute);
    if (second_page) memory_.put64(0x3008, 1 << 21 | 0x80 | kRights | kNoExecute);
  }
  Result<void, Fault> write(std::uint64_t at, std::string_view text) {
    return context_.write_user(GuestVirt(at), std::as_bytes(std::span(text)));
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  guest_linux::StackTables tables_;
  RunTimes run_times_;
  LinuxContext context_{memory_.memory(), kernel_, run_times_, {.stack_tables = &tables_}};
  Registers registers_;
};

TEST_F(Stacks, AProbeAtAFunctionsEndsBeginsWithItsCaller) {
  registers_.rip = kStackText + 0x10;
  registers_.rbp = kKernelBase + kStack + 0x40;
  memory_.put64(kStack, kStackText + 0x100);
  memory_.put64(kStack + 0x40, 0);
  memory_.put64(kStack + 0x48, kStackText + 0x200);
  for (const ArgumentPlan* plan : {&kFunctionEntryArguments, &kFunctionExitArguments,
                                   &kFunctionReturnArguments, &kSystemCallReturnArguments}) {
    begin(*plan);
    EXPECT_EQ(stack(false), (std::vector<std::uint64_t>{kStackText + 0x100, kStackText + 0x200}));
    EXPECT_EQ(value(ContextVariable::Caller), kStackText + 0x100);
    EXPECT_EQ(value(ContextVariable::Stackdepth), 2u);
  }
}

TEST_F(Stacks, ASampleBeginsWhereTheKernelStandsAndIsEmptyInUserMode) {
  registers_.rip = kStackText + 0x10;
  registers_.cs = 0x10;
  registers_.rbp = 0;
  context_.begin(registers_, kernel_address(kPercpu0));
  context_.select_anywhere();
  EXPECT_EQ(stack(false), (std::vector<std::uint64_t>{kStackText + 0x10}));
  EXPECT_EQ(value(ContextVariable::Caller), 0u);

  registers_.cs = 0x33;
  context_.begin(registers_, kernel_address(kPercpu0));
  context_.select_anywhere();
  EXPECT_TRUE(stack(false).empty());
  EXPECT_EQ(stack(true), (std::vector<std::uint64_t>{kStackText + 0x10}));
}

TEST_F(Stacks, OnTheSharedReturnPathTheFrameIsTheKernelsOwn) {
  registers_.rip = kStackText + 0x30;
  Binding binding;
  binding.number = 0;
  binding.at_function_edge = false;
  begin(binding);

  EXPECT_EQ(stack(false), (std::vector<std::uint64_t>{kStackText + 0x30}));
  EXPECT_EQ(value(ContextVariable::Caller), kStackText + 0x30);
}

TEST_F(Stacks, UserRegistersAreThoseThatTheKernelSavedAtItsEntry) {
  enter_from(0x401000, 0x33, kUserBase + kUserStack, 7);
  memory_.put64(kSaved + 14 * 8, 42);  // rdi
  begin(kFunctionEntryArguments);

  const auto user = context_.user_registers();

  ASSERT_TRUE(user);
  EXPECT_EQ(user->rip, 0x401000u);
  EXPECT_EQ(user->rdi, 42u);
  EXPECT_EQ(user->rsp, kUserBase + kUserStack);
}

TEST_F(Stacks, AKernelThreadHasNoUserRegistersAndNoUserStack) {
  enter_from(0x401000, 0x33, 0, 0);
  memory_.put64(kTask + kTaskMm, 0);
  begin(kFunctionEntryArguments);
  EXPECT_EQ(context_.user_registers().error().kind, FaultKind::IllegalOperation);
  EXPECT_TRUE(stack(true).empty());
  EXPECT_EQ(value(ContextVariable::Ustackdepth), 0u);

  memory_.put64(kTask + kTaskMm, 1);
  enter_from(kStackText, 0x10, 0, 0);  // what is saved there is no user's
  begin(kFunctionEntryArguments);
  EXPECT_EQ(context_.user_registers().error().kind, FaultKind::BadStack);
}

TEST_F(Stacks, TheUsersFramePointersAreFollowedUpwardsOnly) {
  const std::uint64_t at = kUserBase + kUserStack;
  enter_from(0x401000, 0x33, at, at + 0x20);
  memory_.put64(kUserStack + 0x20, at + 0x60);
  memory_.put64(kUserStack + 0x28, 0x402000);
  memory_.put64(kUserStack + 0x60, at + 0x20);  // back down: a loop
  memory_.put64(kUserStack + 0x68, 0x403000);
  begin(kNoArguments);

  EXPECT_EQ(stack(true), (std::vector<std::uint64_t>{0x401000, 0x402000, 0x403000}));
  EXPECT_EQ(value(ContextVariable::Ucaller), 0x402000u);
  EXPECT_EQ(value(ContextVariable::Ustackdepth), 3u);
}

TEST_F(Stacks, AProcessIsItsOwnProgenyAndItsParents) {
  memory_.put64(kParent + 24, kKernelBase + kParent);
  begin(kFunctionEntryArguments);

  EXPECT_EQ(context_.progeny_of(100), true);
  EXPECT_EQ(context_.progeny_of(1), true);
  EXPECT_EQ(context_.progeny_of(2), false);
}

TEST_F(Stacks, WritesWhereTheProcessMayWriteItself) {
  allow_writing();
  begin(kFunctionEntryArguments);

  ASSERT_TRUE(write(kUserBase + kUserStack - 2, "text"));  // across two pages

  EXPECT_EQ(load<std::uint32_t>(context_.user(), GuestVirt(kUserBase + kUserStack - 2)),
            0x74786574u);
}

TEST_F(Stacks, WritesAllOrNothing) {
  allow_writing(false);
  begin(kFunctionEntryArguments);

  const auto done = write(kUserBase + kUserStack - 2, "text");

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().address, kUserBase + kUserStack);
  EXPECT_EQ(load<std::uint16_t>(context_.user(), GuestVirt(kUserBase + kUserStack - 2)), 0u);
}

TEST_F(Stacks, WritesNeitherKernelMemoryNorCodeNorPagesThatNobodyWrote) {
  allow_writing();
  begin(kFunctionEntryArguments);
  EXPECT_FALSE(write(kKernelBase + kUserStack, "text"));

  memory_.put64(0x3000, 0x80 | 0x67);  // executable
  EXPECT_FALSE(write(kUserBase + 0x10, "text"));
  memory_.put64(0x3000, 0x80 | 0x27 | std::uint64_t{1} << 63);  // clean
  EXPECT_FALSE(write(kUserBase + 0x10, "text"));
  memory_.put64(0x3000, 0x80 | 0x65 | std::uint64_t{1} << 63);  // read-only
  EXPECT_FALSE(write(kUserBase + 0x10, "text"));
}

TEST(SavedRegisters, LieBelowTheTopOfTheStackThatThisKernelHas) {
  const auto with = [](std::initializer_list<std::pair<const char*, std::uint64_t>> names) {
    guest_linux::SymbolTable table;
    std::vector<guest_linux::Symbol> symbols;
    for (const auto& [name, address] : names) {
      symbols.push_back({GuestVirt(kKernelBase + address), 0, name, 'D', 0});
    }
    table.add_module({"vmlinux", GuestVirt(kKernelBase), 0x1000, 0}, std::move(symbols));
    table.seal();
    return guest_linux::find_saved_registers(table);
  };

  EXPECT_EQ(with({}), 16384u - 168);
  EXPECT_EQ(with({{"__start_init_task", 0}, {"__end_init_task", 0x8000}}), 32768u - 168);
  EXPECT_EQ(with({{"__start_init_stack", 0},
                  {"__end_init_stack", 0x4000},
                  {"asm_fred_entrypoint_user", 0x100}}),
            16384u - 16 - 168);
  EXPECT_EQ(with({{"__start_init_task", 0}, {"__end_init_task", 0x123}}), 16384u - 168);
}

}  // namespace
}  // namespace ringside::providers
