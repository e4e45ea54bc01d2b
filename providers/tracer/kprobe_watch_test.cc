// A guest that sets kprobes where we trace: the test plays its kernel.
#include "providers/tracer/kprobe_watch.h"

#include <gtest/gtest.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

namespace fakes = guest_linux::fakes;

constexpr std::uint64_t kReader = 0x100, kOptimizer = 0x180, kWhole = 0x200, kOther = 0x300;
constexpr std::uint64_t kHeadBytes = 5, kProbed = kHeadBytes, kWayOut = kWhole + kHeadBytes + 1;
constexpr std::uint64_t kNewKprobe = 0x102000, kUnmapped = 0x4000'0000;
constexpr std::byte kInt3{0xcc}, kPush{0x55};

/// Functions of three instructions: ftrace nop, push rbp, ret.
class WatchOfKprobes : public ::testing::Test {
 protected:
  static constexpr GuestVirt kText = trap_point_fakes::kText;

  WatchOfKprobes() {
    for (const std::uint64_t offset : {std::uint64_t{0}, kReader, kOptimizer, kWhole, kOther}) {
      machine_.put(offset, std::vector<std::byte>(0x80, kInt3));
      machine_.put(offset, disasm::code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
    }
    kernel_.name({{0, "traced"},
                  {kReader, "arch_prepare_kprobe"},
                  {kOptimizer, "arch_prepare_optimized_kprobe"},
                  {kWhole, "register_kprobe"},
                  {kWhole + 0x80, "after"},
                  {kOther, "other"},
                  {0x380, "end"}});
    table_.emplace(machine_, shim_, kernel_);
    watch_.emplace(machine_, kernel_, *table_);
    add(at(kProbed));
    const auto prepared = watch_->prepare();
    EXPECT_TRUE(prepared) << prepared.error().message;
    auto paused = vmm::PausedMachine::pause(machine_);
    EXPECT_TRUE(table_->arm(*paused));
  }
  static GuestVirt at(std::uint64_t offset) { return GuestVirt(kText.raw() + offset); }
  void add(GuestVirt place) {
    const auto added = table_->examine_and_add(place);
    ASSERT_TRUE(added) << added.error().message;
  }
  template <class T>
  void write(std::uint64_t offset, T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    machine_.put(offset, {bytes.begin(), bytes.end()});
  }
  void trap(std::uint64_t offset, std::uint64_t first_argument = 0) {
    vmm::Trap trap{at(offset), 0, GuestVirt(), {}};
    trap.registers.rdi = first_argument;
    watch_->on_trap(trap);
  }
  /// The kernel is about to read the text for a kprobe at `place`.
  void prepare_kprobe(GuestVirt place) {
    write(kNewKprobe + fakes::kAddrAt, place.raw());
    trap(kReader + kHeadBytes, kText.raw() + kNewKprobe);
  }
  void hold_text() {
    write(trap_point_fakes::kTextMutex + fakes::kOwnerAt, std::uint64_t{0xffff'8880'0001'0000});
  }
  void release_text() { write(trap_point_fakes::kTextMutex + fakes::kOwnerAt, std::uint64_t{0}); }

  trap_point_fakes::FakeMachine machine_;
  trap_point_fakes::FakeShim shim_;
  trap_point_fakes::FakeKernel kernel_;
  std::optional<TrapPointTable> table_;
  std::optional<KprobeWatch> watch_;
};

TEST_F(WatchOfKprobes, ProbesLeaveWhileTheKernelReadsTheirFunctionAndComeBack) {
  ASSERT_EQ(machine_.text(kProbed), kInt3);

  prepare_kprobe(at(kProbed + 1));

  EXPECT_EQ(machine_.text(kProbed), kPush);
  EXPECT_EQ(machine_.text(kWayOut), kInt3) << "ours at the end of register_kprobe stays";
  EXPECT_EQ(watch_->take_away().times, 0u) << "told with the time that it took";

  trap(kWayOut);

  EXPECT_EQ(machine_.text(kProbed), kInt3);
  const auto away = watch_->take_away();
  EXPECT_EQ(away.times, 1u);
  EXPECT_EQ(away.at, at(kProbed + 1));
  EXPECT_FALSE(away.error);
  EXPECT_EQ(watch_->take_away().times, 0u) << "told once";
}

TEST_F(WatchOfKprobes, OfAnOptimizedOneTheKprobeLiesInside) {
  write(kNewKprobe + fakes::kOptimizedAt + fakes::kAddrAt, at(kProbed).raw());

  trap(kOptimizer + kHeadBytes, kText.raw() + kNewKprobe);

  EXPECT_EQ(machine_.text(kProbed), kPush);
  trap(kWayOut);
  EXPECT_EQ(machine_.text(kProbed), kInt3);
}

TEST_F(WatchOfKprobes, WhereItStandsOursIsGone) {
  prepare_kprobe(at(kProbed));
  const fakes::FakeKprobe kprobe{
      .at = kText.raw() + trap_point_fakes::kKprobes, .address = at(kProbed).raw(), .opcode = 0x55};
  kprobe.write([this](std::uint64_t address, auto value) { write(address - kText.raw(), value); });
  write(trap_point_fakes::kKprobeTable, kprobe.node());

  trap(kWayOut);

  EXPECT_EQ(machine_.text(kProbed), kPush) << "the kernel's own int3 comes by itself";
  EXPECT_EQ(table_->drop_changed(), std::vector{at(kProbed)});
}

TEST_F(WatchOfKprobes, OtherFunctionsAndLiesMoveNothing) {
  prepare_kprobe(at(kOther + kHeadBytes));
  trap(kReader + kHeadBytes, kUnmapped);
  trap(kReader + kHeadBytes, UINT64_MAX);

  EXPECT_EQ(machine_.text(kProbed), kInt3);
  EXPECT_FALSE(watch_->catch_up());
  EXPECT_EQ(watch_->take_away().times, 0u);
}

TEST_F(WatchOfKprobes, ThoseThatCannotComeBackYetComeWithUpkeep) {
  prepare_kprobe(at(kProbed + 1));
  hold_text();

  trap(kWayOut);
  EXPECT_EQ(machine_.text(kProbed), kPush);
  const std::uint64_t pauses = machine_.stops().pauses().count;
  for (unsigned n = 0; n < 5; ++n) EXPECT_TRUE(watch_->catch_up()) << "soon again";
  EXPECT_EQ(machine_.stops().pauses().count, pauses) << "it is not stopped to see that";

  release_text();
  EXPECT_FALSE(watch_->catch_up());
  EXPECT_EQ(machine_.text(kProbed), kInt3);
  EXPECT_EQ(watch_->take_away().times, 1u);
}

TEST_F(WatchOfKprobes, TakesTheTrapsWhereTheKernelPreparesOneAndWhereItIsDone) {
  trap_point_fakes::NoSink sink;
  vmm::TrapHandlers handlers(sink);

  watch_->add_to(handlers);

  for (const std::uint64_t place : {kReader + kHeadBytes, kOptimizer + kHeadBytes, kWayOut}) {
    ASSERT_EQ(handlers.watches_at(at(place)).size(), 1u) << place;
    EXPECT_EQ(handlers.watches_at(at(place)).front().watch, &*watch_) << place;
  }
  EXPECT_TRUE(handlers.watches_at(at(kProbed)).empty());
}

}  // namespace
}  // namespace ringside::providers
