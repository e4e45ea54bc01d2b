// For tests: trap points that may be jumps; the test says who stands there. Not linked into the
// product.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "providers/trap_points/trap_points_for_tests.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers::trap_point_fakes {

using Range = guest_linux::Kernel::AddressRange;

/// Jumps may stand. f: ftrace nop, push rbp, lea rax [rip], ret: at 5 a jump may displace push and
/// lea.
class Jumps : public TrapPoints {
 protected:
  Jumps() {
    shim_.entry_of_jumps = GuestVirt(kSlots.raw() - 0x1000);
    table_.use_jumps(
        [this](vmm::PausedMachine&, std::span<const Range> ranges) {
          asked_.assign(ranges.begin(), ranges.end());
          return standing_;
        },
        [this](vmm::PausedMachine&, Range) -> Result<bool> { return is_inside_; });
  }
  /// Whether it was known who stands there.
  bool arm_jumps() {
    table_.prepare_jumps();
    auto paused = pause();
    const bool known = table_.find_standing(paused).has_value();
    armed_ = table_.arm(paused);
    return known;
  }
  void disarm() {
    auto paused = pause();
    ASSERT_TRUE(table_.disarm(paused));
  }
  /// The byte that stands there once a trap point of another kernel's is armed, and nobody is in
  /// the way of its jump.
  std::byte armed_in(FakeMachine& machine, FakeKernel& kernel, std::uint64_t offset) {
    shim_.entries.clear();
    TrapPointTable table(machine, shim_, kernel);
    table.use_jumps([](auto&, auto) { return std::vector<GuestVirt>(); },
                    [](auto&, auto) { return false; });
    EXPECT_TRUE(table.examine_and_add(at(offset)));
    table.prepare_jumps();
    auto paused = std::move(*vmm::PausedMachine::pause(machine));
    EXPECT_TRUE(table.find_standing(paused));
    EXPECT_TRUE(table.arm(paused));
    return machine.text(offset);
  }
  vmm::JumpBytes text_at(std::uint64_t offset) const {
    vmm::JumpBytes bytes;
    for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = machine_.text(offset + n);
    return bytes;
  }
  /// Where the jump there leads to; empty when it is none.
  std::optional<GuestVirt> target(std::uint64_t offset) const {
    return vmm::jump_target(at(offset), text_at(offset));
  }
  static vmm::JumpBytes bytes_of(const std::vector<std::byte>& code) {
    vmm::JumpBytes bytes{};
    std::copy_n(code.begin(), std::min(bytes.size(), code.size()), bytes.begin());
    return bytes;
  }

  const vmm::JumpBytes original_ = bytes_of(code({0x55, 0x48, 0x8d, 0x05, 0}));
  Result<std::vector<GuestVirt>> standing_;
  std::vector<Range> asked_;
  bool is_inside_ = false;
  Result<void> armed_;
};

}  // namespace ringside::providers::trap_point_fakes
