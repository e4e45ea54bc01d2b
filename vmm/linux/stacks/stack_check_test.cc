#include "vmm/linux/stacks/stack_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;

constexpr std::uint64_t kKernelTextBytes = 0x1000;
constexpr std::uint64_t kOrcAddresses = 0xffff'ffff'8200'0000, kOrcEntries = kOrcAddresses + 0x100;
constexpr std::uint64_t kOnlineMask = 0xffff'ffff'8210'0000;
constexpr std::uint64_t kInit = 0xffff'8880'0000'0000, kStacks = 0xffff'c900'0000'0000;
constexpr std::uint64_t kQueues = 0x1000, kCpu0 = 0xffff'8881'0000'0000;
constexpr std::uint64_t kCode = 0xffff'ffff'a000'0000, kCodeBytes = 0x10000;
constexpr std::uint64_t kStackBytes = 16 << 10;
// Offsets of the types below.
constexpr std::uint64_t kTasks = 0, kSignal = 16, kNode = 24, kTaskStack = 40, kTaskSp = 48,
                        kPid = 56, kComm = 64, kOnCpu = 80, kOnRq = 84, kSignalAt = 0x800;
// A function with a frame of three words and the return address; where threads begin.
constexpr std::uint64_t kFunction = kText + 0x105, kBeginning = kText + 0x305;

class TaskKernel final : public InertKernel {
 public:
  /// `flag`: the type of on_cpu and on_rq.
  explicit TaskKernel(std::string_view flag = "int") {
    const TypeId flag_type = *types_.find(flag);
    const TypeId word = *types_.find("unsigned long");
    const auto add = [&](std::string_view name, std::uint64_t size, std::vector<Member> members) {
      const TypeId id = types_.add_struct(TypeKind::Struct, name, size, members);
      types_.index(id);
      return id;
    };
    const TypeId thread = add("thread_struct", 8, {{"sp", word, 0, 0}});
    add("task_struct", 88,
        {{"tasks", word, 8 * kTasks, 0},
         {"signal", word, 8 * kSignal, 0},
         {"thread_node", word, 8 * kNode, 0},
         {"stack", word, 8 * kTaskStack, 0},
         {"thread", thread, 8 * kTaskSp, 0},
         {"pid", word, 8 * kPid, 0},
         {"comm", word, 8 * kComm, 0},
         {"on_cpu", flag_type, 8 * kOnCpu, 0},
         {"on_rq", flag_type, 8 * kOnRq, 0}});
    add("signal_struct", 16, {{"thread_head", word, 0, 0}});
    add("rq", 24, {{"nr_running", word, 0, 0}, {"curr", word, 64, 0}, {"idle", word, 128, 0}});
    add("inactive_task_frame", 56, {{"bp", word, 320, 0}, {"ret_addr", word, 384, 0}});
    const auto symbol = [](std::uint64_t at, std::string_view name) {
      return Symbol{.address = GuestVirt(at), .size = 8, .name = name, .type = 'D', .module = 0};
    };
    symbols_.accept_low_addresses();
    symbols_.add_module(
        {.name = "vmlinux", .text_base = GuestVirt(kText), .text_size = kKernelTextBytes},
        {symbol(kInit, "init_task"), symbol(kQueues, "runqueues"),
         symbol(kOnlineMask, "__cpu_online_mask"), symbol(kOrcAddresses, "__start_orc_unwind_ip"),
         symbol(kOrcAddresses + 8, "__stop_orc_unwind_ip"),
         symbol(kOrcEntries, "__start_orc_unwind")});
    symbols_.seal();
  }
  std::span<const std::uint64_t> percpu_bases() const override { return bases_; }

 private:
  std::array<std::uint64_t, 1> bases_{kCpu0};
};

class OneVcpu final : public vmm::InertMachine {
 public:
  vmm::GuestMemory& memory() override { return memory_; }
  Registers vcpu;

 protected:
  Result<Registers> registers(unsigned) override { return vcpu; }

 private:
  vmm::GuestMemory memory_;
};

/// One CPU, idle in its task, and tasks that sleep.
class StackCheckTest : public testing::Test {
 protected:
  StackCheckTest() {
    put_orc();
    add_task("swapper/0", 0);
    put(kInit + kOnCpu, 1U);
    put(kOnlineMask, std::uint64_t{1});
    put(kCpu0 + kQueues, std::uint64_t{0});
    put(kCpu0 + kQueues + 8, kInit);
    put(kCpu0 + kQueues + 16, kInit);
    machine_.vcpu.cr0 = 0x8000'0001;
    machine_.vcpu.efer = 0x500;
    machine_.vcpu.cs = 0x10;
    machine_.vcpu.rip = kFunction;
    machine_.vcpu.rsp = stack(0) + 0x3f00;
  }

  template <class T>
  void put(std::uint64_t at, const T& value) {
    guest_.put(at, value);
  }
  void put_orc() {
    put(kOrcAddresses, static_cast<std::int32_t>(kText + 0x100 - kOrcAddresses));
    put(kOrcAddresses + 4, static_cast<std::int32_t>(kText + 0x300 - kOrcAddresses - 4));
    // Of 6.4 and later: a call with 32 bytes of frame; the end.
    put(kOrcEntries, std::array<std::uint16_t, 6>{32, 0, 5 | 2 << 8, 0, 0, 1 << 8});
  }
  static std::uint64_t task(unsigned n) { return kInit + 0x1000 * n; }
  static std::uint64_t stack(unsigned n) { return kStacks + 0x10000 * n; }

  /// With a whole stack: it was switched out in a function that the thread's beginning called.
  unsigned add_task(std::string_view name, std::int32_t pid) {
    const unsigned n = tasks_++;
    const std::uint64_t at = task(n), signal = at + kSignalAt, sp = stack(n) + 0x3e00;
    for (std::uint64_t word = 0; word < kStackBytes; word += 8) {
      put(stack(n) + word, std::uint64_t{0});
    }
    put(at + kSignal, signal);
    put(at + kTaskStack, stack(n));
    put(at + kTaskSp, sp);
    put(at + kPid, pid);
    guest_.put_text(at + kComm, std::string(name) + std::string(15 - name.size(), '\0'));
    put(at + kOnCpu, std::uint64_t{0});
    // Of the first task no list has the threads.
    put(signal, n == 0 ? signal : at + kNode);
    put(at + kNode, signal);
    put(task(n) + kTasks, kInit + kTasks);
    if (n > 0) put(task(n - 1) + kTasks, at + kTasks);
    put(sp + 48, kFunction);
    put(sp + 56 + 24, kBeginning);
    return n;
  }
  std::uint64_t frame(unsigned n) const { return stack(n) + 0x3e00 + 56; }

  Result<std::vector<CodeUser>> find_all() {
    auto paused = vmm::PausedMachine::pause(machine_);
    auto stack_check = StackCheck::prepare(*kernel_);
    EXPECT_TRUE(stack_check) << stack_check.error().message;
    return stack_check->find(*paused, guest_, *kernel_,
                             Kernel::AddressRange::of(GuestVirt(kCode), kCodeBytes));
  }
  std::string find() {
    const auto found = find_all();
    if (!found) return "unclear: " + found.error().message;
    return found->empty() ? "nobody" : found->front().name;
  }

  fakes::SparseGuest guest_;
  std::optional<TaskKernel> kernel_{std::in_place};
  OneVcpu machine_;
  unsigned tasks_ = 0;
};

TEST_F(StackCheckTest, NobodyIsInsideWhereNoStackLeadsThere) {
  add_task("init", 1);
  add_task("dd", 2);

  EXPECT_EQ(find(), "nobody");
}

TEST_F(StackCheckTest, ATaskThatReturnsThereIsNamed) {
  add_task("init", 1);
  const unsigned dd = add_task("dd", 22);
  put(frame(dd) + 24, kCode + 0x100);

  EXPECT_EQ(find(), "task 22 (dd)");
}

TEST_F(StackCheckTest, AllAreFoundWithTheirPlaces) {
  const unsigned dd = add_task("dd", 22), cat = add_task("cat", 23);
  put(frame(dd) + 24, kCode + 0x100);
  put(frame(cat), kCode + 0x300);  // may be left over
  put(frame(cat) + 24, kCode + 0x200);
  machine_.vcpu.rip = kCode + 5;

  const auto found = find_all();

  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 3u);
  using Places = std::vector<GuestVirt>;
  EXPECT_EQ((*found)[0].places, Places{GuestVirt(kCode + 0x100)});
  EXPECT_EQ((*found)[1].name, "task 23 (cat)");
  EXPECT_EQ((*found)[1].places, (Places{GuestVirt(kCode + 0x300), GuestVirt(kCode + 0x200)}));
  EXPECT_EQ((*found)[2].places, Places{GuestVirt(kCode + 5)});
}

TEST_F(StackCheckTest, SoIsAnotherThreadOfAProcess) {
  const unsigned leader = add_task("init", 1);
  const unsigned thread = add_task("worker", 2);
  put(task(leader) + kTasks, kInit + kTasks);  // it is in no list but its leader's
  put(task(leader) + kNode, task(thread) + kNode);
  put(task(thread) + kNode, task(leader) + kSignalAt);
  put(frame(thread) + 24, kCode);

  EXPECT_EQ(find(), "task 2 (worker)");
}

TEST_F(StackCheckTest, AWordThatAnEarlierCallHasLeftIsNoReturn) {
  const unsigned dd = add_task("dd", 2);
  put(frame(dd), kCode + 0x100);  // in the function's frame, where it keeps something

  EXPECT_EQ(find(), "nobody");
}

TEST_F(StackCheckTest, WhatTheUnwinderCannotDecideCountsAsInside) {
  const unsigned dd = add_task("dd", 2);
  put(frame(dd), kCode + 0x100);
  put(frame(dd) + 24, std::uint64_t{0x1234});  // the walk ends here

  EXPECT_EQ(find(), "task 2 (dd)");
}

TEST_F(StackCheckTest, AVcpuIsLookedAtWhereItStands) {
  machine_.vcpu.rip = kCode + 5;
  EXPECT_EQ(find(), "vCPU 0");

  machine_.vcpu.cs = 0x33;
  EXPECT_EQ(find(), "nobody") << "a user program has that address, too";

  machine_.vcpu.cs = 0x10;
  machine_.vcpu.rip = kFunction;
  put(machine_.vcpu.rsp + 24, kCode + 5);
  EXPECT_EQ(find(), "vCPU 0") << "it returns there";

  machine_.vcpu.rsp = kStacks - 0x1000;  // on no task's stack, and that one cannot be read
  EXPECT_EQ(find(), "unclear: the stack of vCPU 0 cannot be followed");
}

TEST_F(StackCheckTest, AllWordsThatLeadIntoRangesAreFound) {
  const unsigned dd = add_task("dd", 22);
  put(frame(dd), kText + 0x206);
  put(frame(dd) + 8, kText + 0x20a);  // behind a range
  put(frame(dd) + 16, kText + 0x403);
  put(stack(0) + 0x3f08, kText + 0x207);
  put(stack(0) + 0x3ef8, kText + 0x208);  // below rsp
  machine_.vcpu.rip = kText + 0x404;
  const auto range = [](std::uint64_t begin) {
    return Kernel::AddressRange::of(GuestVirt(kText + begin), 4);
  };
  const std::array ranges{range(0x206), range(0x401)};
  const auto words = [&] {
    auto paused = vmm::PausedMachine::pause(machine_);
    return StackCheck::prepare(*kernel_)->words_in(*paused, guest_, *kernel_, ranges);
  };

  auto found = words();

  ASSERT_TRUE(found) << found.error().message;
  std::ranges::sort(*found);
  EXPECT_EQ(*found, (std::vector{GuestVirt(kText + 0x206), GuestVirt(kText + 0x207),
                                 GuestVirt(kText + 0x403), GuestVirt(kText + 0x404)}));
  machine_.vcpu.rsp = stack(7);
  EXPECT_FALSE(words()) << "an interrupt's stack does not tell whom it has interrupted";
  machine_.vcpu.cs = 0x33;
  EXPECT_TRUE(words()) << "nobody is interrupted in the kernel";
}

TEST_F(StackCheckTest, ATaskThatIsInNoListMakesItUnclear) {
  const unsigned dd = add_task("dd", 2);
  put(kCpu0 + kQueues, 1U);
  EXPECT_EQ(find(), "unclear: a task that is ending is in no list");

  put(task(dd) + kOnRq, 1U);
  EXPECT_EQ(find(), "nobody");
}

TEST_F(StackCheckTest, ATaskThatIsBeingSwitchedMakesItUnclear) {
  const unsigned dd = add_task("dd", 2);
  put(task(dd) + kOnCpu, 1U);

  EXPECT_EQ(find(), "unclear: a vCPU changes from a task to the next");
}

TEST_F(StackCheckTest, SoDoesTheTaskThatAnIdleCpuIsAboutToRun) {
  const unsigned dd = add_task("dd", 2);
  put(frame(dd) + 24, kCode + 0x100);
  put(task(dd) + kOnCpu, 1U);
  put(kCpu0 + kQueues + 8, task(dd));  // current already, on the idle task's stack

  EXPECT_EQ(find(), "unclear: a vCPU changes from a task to the next");
}

TEST_F(StackCheckTest, ACpuThatIsOnlineAndShowsNoPagingMakesItUnclear) {
  machine_.vcpu.cr0 = 1;
  EXPECT_EQ(find(), "unclear: a vCPU handles a system management interrupt");

  put(kOnlineMask, std::uint64_t{0});
  EXPECT_EQ(find(), "nobody") << "it was not started";
}

TEST_F(StackCheckTest, FlagsThatAreBytesAreNoMore) {
  kernel_.emplace("unsigned char");
  const unsigned dd = add_task("dd", 2);
  put(task(dd) + kOnCpu, std::array<std::uint8_t, 4>{0, 1, 1, 1});  // what lies behind it
  EXPECT_EQ(find(), "nobody");

  put(task(dd) + kOnCpu, std::uint8_t{1});
  EXPECT_EQ(find(), "unclear: a vCPU changes from a task to the next");
}

TEST_F(StackCheckTest, ATaskThatHasEndedHasNoStack) {
  const unsigned dd = add_task("dd", 2);
  put(frame(dd) + 24, kCode + 0x100);
  put(task(dd) + kTaskStack, std::uint64_t{0});

  EXPECT_EQ(find(), "nobody");
}

TEST_F(StackCheckTest, ListsThatDoNotCloseEnd) {
  const unsigned dd = add_task("dd", 2);
  put(task(dd) + kTasks, task(dd) + kTasks);

  EXPECT_EQ(find(), "unclear: the guest's list of tasks has no end");
}

TEST_F(StackCheckTest, AStackPointerOutsideOfItsStackMakesItUnclear) {
  const unsigned dd = add_task("dd", 2);
  put(task(dd) + kTaskSp, stack(0));

  EXPECT_EQ(find(), "unclear: task 2 (dd) does not stand on its stack");
}

}  // namespace
}  // namespace ringside::guest_linux
