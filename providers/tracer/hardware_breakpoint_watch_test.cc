// A guest that sets hardware breakpoints where we trace: the test plays its kernel.
#include "providers/tracer/hardware_breakpoint_watch.h"

#include <gtest/gtest.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using trap_point_fakes::kText;

constexpr std::uint64_t kInstaller = 0x100, kFtraceSite = 5, kJumping = 0x005, kCovered = 0x006;
constexpr std::uint64_t kPerfEvent = 0x102000, kAddressAt = 0x18, kNowhere = 0x4000'0000;

/// struct perf_event with hw.info.address, where kAddressAt says.
struct DebugKernel final : trap_point_fakes::FakeKernel {
  void describe() {
    const TypeId word = *types_.find("unsigned long");
    const Member address[] = {{"address", word, 0, 0}};
    const TypeId info = types_.add_struct(TypeKind::Struct, "arch_hw_breakpoint", 8, address);
    const Member infos[] = {{"info", info, 64, 0}};
    const TypeId hw = types_.add_struct(TypeKind::Struct, "hw_perf_event", 16, infos);
    const Member hws[] = {{"hw", hw, 8 * (kAddressAt - 8), 0}};
    types_.index(types_.add_struct(TypeKind::Struct, "perf_event", 64, hws));
  }
};

/// One function with a jump of ours over push and lea, and the kernel's that sets breakpoints.
class WatchOfHardwareBreakpoints : public testing::Test {
 protected:
  WatchOfHardwareBreakpoints() {
    machine_.put(0x000,
                 disasm::code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3}));
    machine_.put(kInstaller, disasm::code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
    kernel_.name({{0, "traced"}, {kInstaller, "arch_install_hw_breakpoint"}, {0x180, "end"}});
    kernel_.describe();
    shim_.entry_of_jumps = trap_point_fakes::kSlots.wrapping_sub(0x1000);
    table_.emplace(machine_, shim_, kernel_);
    table_->use_jumps([](auto&, auto) { return std::vector<GuestVirt>(); },
                      [](auto&, auto) { return false; });
    watch_.emplace(machine_, kernel_, *table_);
    EXPECT_TRUE(table_->examine_and_add(at(kJumping)));
    const auto prepared = watch_->prepare();
    EXPECT_TRUE(prepared) << prepared.error().message;
    table_->prepare_jumps();
    auto paused = vmm::PausedMachine::pause(machine_);
    EXPECT_TRUE(table_->find_standing(*paused) && table_->arm(*paused));
    EXPECT_EQ(table_->jumps(), 1u);
  }
  static GuestVirt at(std::uint64_t offset) { return kText.wrapping_add(offset); }
  /// A CPU is about to have one at `place`.
  void install(std::uint64_t place, std::uint64_t event = kText.raw() + kPerfEvent) {
    const auto bytes = std::as_bytes(std::span(&place, 1));
    machine_.put(kPerfEvent + kAddressAt, {bytes.begin(), bytes.end()});
    vmm::Trap trap{at(kInstaller + kFtraceSite), 0, GuestVirt(), {}};
    trap.registers.rdi = event;
    watch_->on_trap(trap);
  }

  trap_point_fakes::FakeMachine machine_;
  trap_point_fakes::FakeShim shim_;
  DebugKernel kernel_;
  std::optional<TrapPointTable> table_;
  std::optional<HardwareBreakpointWatch> watch_;
};

TEST_F(WatchOfHardwareBreakpoints, AJumpThatHasDisplacedThePlaceBecomesAnInt3) {
  install(at(kCovered).raw());

  EXPECT_EQ(table_->jumps(), 0u);
  EXPECT_EQ(machine_.text(kJumping), std::byte{0xcc});
  EXPECT_EQ(machine_.text(kCovered), std::byte{0x48});
}

TEST_F(WatchOfHardwareBreakpoints, OthersAndLiesStopNobody) {
  const std::uint64_t pauses = machine_.stops().pauses().count;

  install(at(kJumping).raw());
  install(at(0x00d).raw());
  install(0x7fff'0000'1000);
  install(at(kCovered).raw(), kNowhere);
  install(at(kCovered).raw(), UINT64_MAX);

  EXPECT_EQ(table_->jumps(), 1u);
  EXPECT_EQ(machine_.stops().pauses().count, pauses);
}

TEST_F(WatchOfHardwareBreakpoints, TakesTheTrapsWhereTheKernelSetsOne) {
  trap_point_fakes::NoSink sink;
  vmm::TrapHandlers handlers(sink);

  watch_->add_to(handlers);

  EXPECT_EQ(handlers.watches_at(at(kInstaller + kFtraceSite)).size(), 1u);
  EXPECT_TRUE(handlers.watches_at(at(kJumping)).empty());
}

}  // namespace
}  // namespace ringside::providers
