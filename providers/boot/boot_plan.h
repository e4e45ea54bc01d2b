// Plans the breakpoints of a kernel that is traced from its first instruction: which of them stand
// at which time. A debug register can watch any address at any time, but there are only four. An
// int3 needs memory that is mapped, and text that the kernel neither reads nor rewrites; on some
// hosts the guest must also have a gate for it. So breakpoints of our own, the markers, tell when
// the next set can be made:
//   first instruction     the first few points, in registers (all of them if that is enough)
//   x86_64_start_kernel   text is mapped: all but what the kernel rewrites while it boots, where
//                         the host's KVM sees int3 itself
//   early_cpu_init        setup_arch() has made the gate for int3: the same, on any host
//   rest_init             the text is rewritten (alternatives, return thunks): all
//   free_initmem          init text is about to be used for something else: all but that
// Four points leave no register for a marker. Then each hit reads the kernel's system_state until
// the next set can be made. Debug registers are used only at the beginning: the guest may want its
// own, and QEMU's TCG misses one if an interrupt comes at that instruction. For a kernel other than
// Linux there are no markers: all points are set at once, or else the first four, and the rest is
// tried again at each hit.
// Used by the boot tracer. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "providers/boot/boot_points.h"

namespace ringside::providers {

class BootPlan {
 public:
  static constexpr std::size_t kRegisters = 4;

  enum class Moment : std::uint8_t { Start, Mapped, Trapping, Patched, Freed };
  static constexpr std::size_t kMoments = 5;
  using Markers = std::array<std::optional<GuestVirt>, kMoments>;  // by Moment; none at the start

  /// `markers` are those that the kernel has; all empty for another kernel than Linux.
  BootPlan(std::vector<BootPoints::Point> points, const Markers& markers)
      : points_(std::move(points)), markers_(markers) {}
  static Markers find_markers(const BootPoints& points);

  /// A set to make, and the one to make where that cannot be had.
  struct Step {
    Moment moment = Moment::Start;  // always that for another kernel
    std::vector<GuestVirt> wanted;
    std::optional<std::vector<GuestVirt>> instead;
  };
  Step start() const;
  /// Whether at() needs the kernel's system_state.
  bool asks_system_state() const;
  /// The next one, now that a vCPU stands at `hit`; empty: nothing changes. `system_state`: the
  /// kernel's variable of that name, an enum system_states (include/linux/kernel.h, since 4.13).
  std::optional<Step> at(GuestVirt hit, std::optional<std::uint32_t> system_state = {}) const;
  /// Says that the set of start() or at() was made, or that its `instead` was.
  void made(const Step& step, bool wanted);

  /// One line for the user; empty when everything stands from the start.
  std::optional<std::string> notice() const;

 private:
  static constexpr unsigned kMostTries = 64;  // of another kernel

  bool has_markers() const;
  std::optional<Moment> marked_by(GuestVirt at) const;
  std::optional<Moment> told_by(std::uint32_t system_state) const;
  bool is_few() const { return points_.size() <= kRegisters; }
  std::vector<GuestVirt> set_at(Moment moment) const;
  std::vector<GuestVirt> first(std::size_t count) const;
  void add_marker(std::vector<GuestVirt>& to, Moment moment) const;
  std::optional<Moment> next_after(Moment moment) const;

  std::vector<BootPoints::Point> points_;
  Markers markers_;
  Moment reached_ = Moment::Start;
  bool complete_ = false;  // another kernel's
  unsigned tries_ = 0;
};

}  // namespace ringside::providers
