// A shim over plain memory, of which a test plays the guest. Not linked into the product.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vmm/shim/fake_guest_for_tests.h"
#include "vmm/shim/plain_region_for_tests.h"
#include "vmm/shim/shim.h"

namespace ringside::vmm::shim_fakes {

class Recorder final : public TrapSink {
 public:
  void on_trap(const Trap& trap) override {
    traps.push_back(trap);
    if (during) during();
  }
  std::vector<Trap> traps;
  std::function<void()> during;
};

/// Keeps vCPUs while `keeping`.
class RecordingWatch final : public TrapWatch {
 public:
  explicit RecordingWatch(const Recorder& sink) : sink_(sink) {}
  bool keeps(const Trap& trap) override {
    asked.push_back(trap);
    return keeping;
  }
  void on_trap(const Trap& trap) override { after.emplace_back(trap.address, sink_.traps.size()); }
  std::vector<Trap> asked;
  bool keeping = false;
  std::vector<std::pair<GuestVirt, std::size_t>> after;  // and how many traps the sink had by then

 private:
  const Recorder& sink_;
};

/// A channel over plain memory, mapped and by copies; the test plays the guest.
class ShimChannel : public testing::TestWithParam<Reach> {
 protected:
  static constexpr GuestVirt kBase{0xffffffff9f000000};

  ShimChannel()
      : region_(GetParam()),
        shim_(region_.memory(), region_.layout(), kBase, 2, PlainRegion::gate()) {
    slot_ = *shim_.allocate_slot(8);
    EXPECT_TRUE(shim_.add_entry(kText, slot_));
    EXPECT_TRUE(shim_.enable_entries(std::array{kText}));
  }
  std::span<std::byte> bytes() { return region_.bytes(); }
  shim_head& head(unsigned i) { return region_.head(i); }
  shim_box& box(unsigned i) { return region_.box(i); }
  shim_control& control() { return region_.control(); }
  const ShimLayout& layout() { return region_.layout(); }
  void raise(unsigned i, GuestVirt address, std::uint64_t claim = 1) {
    head(i).address = address.raw();
    head(i).percpu = 0xffff888000000000 + i;
    head(i).tsc = 1000 + i;
    for (unsigned r = 0; r < SHIM_REGISTERS; ++r) box(i).regs[r] = 100 * i + r;
    head(i).segments = std::uint64_t{0x18} << 32 | 0x10;
    box(i).seal = seal_of(head(i), box(i), claim * SHIM_CLAIM);
    head(i).head = claim * SHIM_CLAIM | SHIM_RAISED;
  }

  PlainRegion region_;
  Shim shim_;
  GuestVirt slot_;
  Recorder sink_;
  RecordingWatch watch_{sink_};
  TrapHandlers handlers_{sink_};
};

inline const auto kEveryReach = testing::Values(Reach::Mapped, Reach::Copied, Reach::Mixed);

inline std::string reach_name(const testing::TestParamInfo<Reach>& info) {
  return info.param == Reach::Mapped ? "Mapped" : info.param == Reach::Copied ? "Copied" : "Mixed";
}

}  // namespace ringside::vmm::shim_fakes
