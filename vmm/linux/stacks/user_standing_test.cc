// A guest of 2 MiB with page tables: the kernel's linear map, and processes that have mapped one
// page of a file at kTextPage and one page of stack.
#include "vmm/linux/stacks/user_standing.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kLinear = 0xffff'8880'0000'0000, kRoot = 0x1000;
constexpr std::uint64_t kInitTask = kLinear + 0x4000, kInode = kLinear + 0x5000,
                        kMapping = kInode + 0x100, kCpu = kLinear + 0x6000;
constexpr std::uint64_t kFirstProcess = 0x10000, kProcessBytes = 0x10000;
constexpr std::uint64_t kTextPage = 0x40'0000, kUserStack = 0x41'0000;  // of processes
constexpr std::uint64_t kFileOffset = 0x3000;                           // of the page at kTextPage
constexpr std::uint64_t kKernelStackBytes = 16 << 10;

class ProcessKernel final : public InertKernel {
 public:
  ProcessKernel() : InertKernel(GuestPhys(kRoot)) {
    EXPECT_TRUE(Btf::read(fakes::process_types().blob(), nullptr, types_));
    layout_ = read_layout(types_);
    symbols_.add_module({.name = "vmlinux", .text_base = GuestVirt(kLinear), .text_size = 1},
                        {Symbol{.address = GuestVirt(kInitTask),
                                .size = 8,
                                .name = "init_task",
                                .type = 'D',
                                .module = 0}});
    symbols_.seal();
  }
  Result<GuestVirt, Fault> current_task(const GuestReader&, GuestVirt) const override {
    return current;
  }
  GuestVirt current{kInitTask};
};

class OneVcpuMachine final : public vmm::InertMachine {
 public:
  explicit OneVcpuMachine(vmm::GuestMemory memory) : memory_(std::move(memory)) {}
  vmm::GuestMemory& memory() override { return memory_; }
  Registers vcpu;

 protected:
  Result<Registers> registers(unsigned) override { return vcpu; }

 private:
  vmm::GuestMemory memory_;
};

class UserStandingTest : public testing::Test {
 protected:
  UserStandingTest() {
    put(kRoot + 273 * 8, 0x2003);  // PML4 to PDPT
    put(0x2000, 0x83);             // a page of 1 GiB
    put_kernel(kInitTask + 0x10, kInitTask + 0x10);
    put_kernel(kInode + 0x30, kMapping);
    machine_.vcpu.rsp = kCpu;  // in the kernel, on the first task's stack
    machine_.vcpu.cs = 0x10;
    put_kernel(kInitTask + 0x48, kCpu);
  }
  void put(std::uint64_t at, std::uint64_t value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void put_kernel(std::uint64_t at, std::uint64_t value) { put(at - kLinear, value); }

  /// Adds a process of one thread; its number, from 0.
  std::uint64_t process(std::uint64_t rip, std::uint64_t top_of_stack = 0) {
    const std::uint64_t n = processes_++, at = base(n), task = task_of(n), tables = at + 0x8000;
    const std::uint64_t before = n == 0 ? kInitTask : task_of(n - 1);
    put_kernel(before + 0x10, task + 0x10);
    put_kernel(task + 0x10, kInitTask + 0x10);
    put_kernel(task + 0x28, kLinear + at + 0x200);  // mm
    put_kernel(task + 0x30, kLinear + at + 0x300);  // signal
    put_kernel(kLinear + at + 0x310, task + 0x38);
    put_kernel(task + 0x38, kLinear + at + 0x310);
    put_kernel(task + 0x48, kLinear + at + 0x2000);  // its stack in the kernel
    put_kernel(kLinear + at + 0x210, kLinear + tables);
    put(tables, tables + 0x1003), put(tables + 0x1000, tables + 0x2003);
    put(tables + 0x2000 + 2 * 8, tables + 0x3003);  // 2 MiB from kTextPage on
    put(tables + 0x3000, (at + 0x6000) | 3);
    put(tables + 0x3000 + 0x10 * 8, (at + 0x7000) | 3);
    put(at + 0x7000, top_of_stack);
    stand(n, rip);
    const std::uint64_t area = kLinear + at + 0x400;
    put_kernel(area, kTextPage), put_kernel(area + 8, kTextPage + 0x1000);
    put_kernel(area + 16, kFileOffset / 0x1000), put_kernel(area + 32, kLinear + at + 0x200);
    put_kernel(area + 40 + 8, last_area_);  // on its right are the earlier ones
    put_kernel(area + 40 + 24, kFileOffset / 0x1000);
    last_area_ = area + 40;
    put_kernel(kMapping + 0x20, last_area_);
    return n;
  }
  void stand(std::uint64_t n, std::uint64_t rip) {
    Registers user;
    user.rip = rip, user.rsp = kUserStack, user.cs = 0x33;
    const auto saved = arch::save(user);
    std::memcpy(bytes_.data() + base(n) + 0x2000 + kKernelStackBytes - sizeof saved, &saved,
                sizeof saved);
  }
  static std::uint64_t base(std::uint64_t n) { return kFirstProcess + n * kProcessBytes; }
  static std::uint64_t task_of(std::uint64_t n) { return kLinear + base(n); }
  void has_run(std::uint64_t n) { put_kernel(task_of(n) + 0x58, ++switches_); }
  void runs(std::uint64_t n, bool does) { put_kernel(task_of(n) + 8, does ? 1 : 0); }
  void has_copies(std::uint64_t n) { put_kernel(kLinear + base(n) + 0x400 + 72, 1); }

  /// From now on the process has only the next page of the file mapped; its text is its own.
  void move_text(std::uint64_t n) {
    const std::uint64_t area = kLinear + base(n) + 0x400;
    put_kernel(area, kTextPage + 0x1000), put_kernel(area + 8, kTextPage + 0x2000);
    put_kernel(area + 16, kFileOffset / 0x1000 + 1);
    put_kernel(area + 40 + 24, kFileOffset / 0x1000 + 1);
  }

  UserStanding::Sleepers look_ahead() {
    return standing_->look_ahead(machine_.memory(), kernel_, ranges_);
  }
  std::vector<UserStanding::Copy> copies(const UserStanding::Sleepers& sleepers = {}) {
    const auto found = standing_->copies(machine_.memory(), kernel_, ranges_, sleepers);
    swapped_out_ = found.swapped_out;
    return found.places;
  }
  /// Which of the two ranges somebody is inside of.
  std::vector<bool> inside(const UserStanding::Sleepers& sleepers = {}) {
    auto paused = vmm::PausedMachine::pause(machine_);
    EXPECT_TRUE(paused);
    const auto found = standing_->find(*paused, kernel_, ranges_, sleepers);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : std::vector<bool>();
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(2 << 20);
  OneVcpuMachine machine_{vmm::GuestMemory({{GuestPhys(0), bytes_}})};
  ProcessKernel kernel_;
  const std::optional<UserStanding> standing_ = UserStanding::prepare(machine_.memory(), kernel_);
  const std::vector<FileRange> ranges_{
      {GuestVirt(kInode), kFileOffset + 0x800, kFileOffset + 0x810},
      {GuestVirt(kInode), kFileOffset + 0x100, kFileOffset + 0x110}};
  std::uint64_t processes_ = 0, last_area_ = 0, switches_ = 0, swapped_out_ = 0;
};

using Flags = std::vector<bool>;

TEST_F(UserStandingTest, WhoseNextInstructionIsThereIsInside) {
  ASSERT_TRUE(standing_);
  process(kTextPage + 0x900);
  EXPECT_EQ(inside(), (Flags{false, false}));
  process(kTextPage + 0x10f);
  EXPECT_EQ(inside(), (Flags{false, true}));
  process(kTextPage + 0x800);
  process(kTextPage + 0x110);
  EXPECT_EQ(inside(), (Flags{true, true}));
}

TEST_F(UserStandingTest, WhoWillReturnThereFromASignalIsInside) {
  process(kTextPage + 0x900, kTextPage + 0x804);
  EXPECT_EQ(inside(), (Flags{true, false}));
}

TEST_F(UserStandingTest, AStackIsLookedAtBeyondPagesThatItHasNeverTouched) {
  const std::uint64_t n = process(kTextPage + 0x900), at = base(n);
  put(at + 0xc010, kTextPage + 0x804);
  put(at + 0xb000 + 0x1f * 8, (at + 0xc000) | 3);
  EXPECT_EQ(inside(), (Flags{true, false}));
  put(at + 0xb000 + 0x13 * 8, 0x4242'0000);  // swapped out
  EXPECT_EQ(inside(), (Flags{true, false}));
  put(at + 0xb000 + 0x1f * 8, 0);
  put(at + 0xb000 + 0x50 * 8, (at + 0xc000) | 3);
  EXPECT_EQ(inside(), (Flags{false, false})) << "that is too far";
}

TEST_F(UserStandingTest, AStackThatASignalFrameNamesIsLookedAt) {
  const std::uint64_t n = process(kTextPage + 0x900);
  // The handler runs on the page of the stack. Its frame says that the code was on the page of the
  // text, as far as this test goes, with a return address there.
  const std::uint64_t frame = base(n) + 0x7000 + 0xff0, other = kTextPage + 0xff8;
  put(base(n) + 0x6ff8, kTextPage + 0x104);
  put(frame - 16, other), put(frame - 8, 0x1234), put(frame, 0x202);
  put(frame + 8, 0x2b'0000'0000'0032);
  EXPECT_EQ(inside(), (Flags{false, false})) << "these are no segments of a process";
  put(frame + 8, 0x2b'0000'0000'0033);
  EXPECT_EQ(inside(), (Flags{false, true}));
}

TEST_F(UserStandingTest, AVcpuInUserModeIsAThreadThatRuns) {
  process(kTextPage + 0x900);
  const std::uint64_t n = process(kTextPage + 0x900);
  machine_.vcpu.rip = kTextPage + 0x102, machine_.vcpu.rsp = kUserStack, machine_.vcpu.cs = 0x33;
  machine_.vcpu.cr3 = base(n) + 0x8000, machine_.vcpu.cr0 = 0x8000'0001;
  machine_.vcpu.cr4 = 0x20, machine_.vcpu.efer = 0x500;
  EXPECT_EQ(inside(), (Flags{false, false})) << "no thread runs";
  runs(n, true);
  EXPECT_EQ(inside(), (Flags{false, true}));
}

TEST_F(UserStandingTest, AVcpuOnItsWayBetweenTheTwoLeavesItOpen) {
  process(kTextPage + 0x900);
  machine_.vcpu.rsp = kCpu + kKernelStackBytes;
  auto paused = vmm::PausedMachine::pause(machine_);
  EXPECT_FALSE(standing_->find(*paused, kernel_, ranges_, {}));
}

TEST_F(UserStandingTest, ASleeperIsNotLookedAtAgainUntilItHasRun) {
  const std::uint64_t n = process(kTextPage + 0x104);
  const auto sleepers = look_ahead();
  stand(n, kTextPage + 0x900);
  EXPECT_EQ(inside(sleepers), (Flags{false, true})) << "it has not run, as far as the kernel says";
  has_run(n);
  EXPECT_EQ(inside(sleepers), (Flags{false, false}));
  stand(n, kTextPage + 0x804);
  EXPECT_EQ(inside(sleepers), (Flags{true, false}));
}

TEST_F(UserStandingTest, WhoRunsIsLookedAt) {
  const std::uint64_t n = process(kTextPage + 0x104);
  runs(n, true);
  const auto early = look_ahead();
  runs(n, false);
  stand(n, kTextPage + 0x900);
  EXPECT_EQ(inside(early), (Flags{false, false})) << "it ran when it was looked at";
  const auto sleepers = look_ahead();
  stand(n, kTextPage + 0x104);
  runs(n, true);
  EXPECT_EQ(inside(sleepers), (Flags{false, true})) << "it runs now";
}

TEST_F(UserStandingTest, AnotherTaskInTheSamePlaceIsLookedAt) {
  const std::uint64_t n = process(kTextPage + 0x104);
  const auto sleepers = look_ahead();
  put_kernel(task_of(n) + 0x60, 77);  // its start_time
  stand(n, kTextPage + 0x900);
  EXPECT_EQ(inside(sleepers), (Flags{false, false}));
}

TEST_F(UserStandingTest, ASleeperWhoseMappingWasMissedIsLookedAt) {
  const std::uint64_t n = process(kTextPage + 0x104);
  put_kernel(kLinear + base(n) + 0x400, kTextPage + 0x10'0000);  // where it begins, and ends
  put_kernel(kLinear + base(n) + 0x408, kTextPage + 0x10'1000);
  const auto sleepers = look_ahead();
  put_kernel(kLinear + base(n) + 0x400, kTextPage);
  put_kernel(kLinear + base(n) + 0x408, kTextPage + 0x1000);
  EXPECT_EQ(inside(sleepers), (Flags{false, true}));
}

TEST_F(UserStandingTest, SleepersOfOtherRangesAreNoHelp) {
  const std::uint64_t n = process(kTextPage + 0x104);
  const auto sleepers =
      standing_->look_ahead(machine_.memory(), kernel_, std::span(ranges_).first(1));
  EXPECT_EQ(inside(sleepers), (Flags{false, true}));
  has_run(n);
  EXPECT_EQ(inside(sleepers), (Flags{false, true}));
}

TEST_F(UserStandingTest, WhileTheFilesMappingsChangeTheProcessesOwnAreAsked) {
  process(kTextPage + 0x104);
  put_kernel(kMapping + 0x40, 1);
  EXPECT_EQ(inside(), (Flags{false, false})) << "this one has none of its own";
  put_kernel(kMapping + 0x40, 0);
  EXPECT_EQ(inside(), (Flags{false, true}));
}

TEST_F(UserStandingTest, CopiesAreThoseOfProcessesThatMayHaveChangedPages) {
  process(kTextPage);
  const std::uint64_t n = process(kTextPage);
  EXPECT_TRUE(copies().empty());
  has_copies(n);
  EXPECT_EQ(copies(), (std::vector<UserStanding::Copy>{{0, GuestPhys(base(n) + 0x6800)},
                                                       {1, GuestPhys(base(n) + 0x6100)}}));
  // PROT_NONE: as the kernel keeps it.
  put(base(n) + 0xb000, ((base(n) + 0x6000) ^ 0x000f'ffff'ffff'f000) | 0x100);
  EXPECT_EQ(copies().size(), 2u);
}

TEST_F(UserStandingTest, TextThatWasMovedIsFoundByOtherMappingsOfTheFile) {
  process(kTextPage + 0x900);
  const std::uint64_t moved = process(kTextPage + 0x808);
  move_text(moved);
  EXPECT_TRUE(copies().empty());
  EXPECT_EQ(inside(), (Flags{false, false}));
  const auto ahead = look_ahead();
  EXPECT_EQ(copies(ahead), (std::vector<UserStanding::Copy>{{0, GuestPhys(base(moved) + 0x6800)},
                                                            {1, GuestPhys(base(moved) + 0x6100)}}));
  EXPECT_EQ(inside(ahead), (Flags{true, false}));
}

TEST_F(UserStandingTest, TextWhereTheFileIsStillMappedWasNotMoved) {
  process(kTextPage + 0x900);
  EXPECT_TRUE(look_ahead().moved.empty());
}

TEST_F(UserStandingTest, CopiesThatAreSwappedOutAreCounted) {
  const std::uint64_t n = process(kTextPage + 0x900);
  has_copies(n);
  EXPECT_EQ(copies().size(), 2u);
  EXPECT_EQ(swapped_out_, 0u);
  put(base(n) + 0x8000 + 0x3000, 0x1234'5678'0000'0000);  // a swap entry
  EXPECT_TRUE(copies().empty());
  EXPECT_EQ(swapped_out_, 1u) << "both are in one page";
  put(base(n) + 0x8000 + 0x3000, 0);
  EXPECT_TRUE(copies().empty());
  EXPECT_EQ(swapped_out_, 0u) << "it was never there";
}

}  // namespace
}  // namespace ringside::guest_linux
