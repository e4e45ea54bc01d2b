// A second look at a guest that runs tells lost interrupts and timers from normal delays. An
// interrupt between CPUs takes a moment to arrive, a timer is due before it is taken, and an idle
// guest does not advance its clock. So such signs are watched by the host's clock: for a second if
// an idle CPU has a call in its queue, and for some seconds if the guest's clock seems to stand
// still. If nothing is suspicious, there is no second look. Source: call_single_queue
// (kernel/smp.c), a list of struct __call_single_data (include/linux/smp_types.h).
// Used by examine().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {

/// The host's clocks: others in tests.
struct HostTime {
  std::function<std::uint64_t()> now;           // ns, of a clock that never jumps
  std::function<std::uint64_t()> wall_seconds;  // since 1970
  std::function<void(std::uint64_t)> sleep;     // ns
  static HostTime real();
};

class LostInterruptWatch {
 public:
  /// No guest is watched for longer.
  static constexpr std::uint64_t kLongest = 6 * kSecond;

  /// `forget` drops what the view's reader keeps of page tables. All must outlive this.
  LostInterruptWatch(const KernelView& view, Clocks& clocks, std::function<void()> forget,
                     HostTime host)
      : view_(view), clocks_(clocks), forget_(std::move(forget)), host_(std::move(host)) {}

  /// Adds what it finds to the report's CPUs, whose vCPUs are known already.
  void watch(HealthReport& report);

 private:
  using Calls = std::map<std::uint32_t, GuestVirt>;  // the oldest of each queue, by CPU
  /// The guest's clock, and by how much its first timer is ahead of that.
  struct Standing {
    std::uint64_t clock = 0, ahead = 0;
  };

  std::optional<GuestVirt> oldest_call(std::uint32_t cpu) const;
  Calls find_waiting_calls(const HealthReport& report) const;
  std::optional<Standing> find_standing_clock(const HealthReport& report) const;
  void confirm(const Calls& calls, std::uint64_t waited, HealthReport& report) const;
  void confirm(const Standing& clock, std::uint64_t waited, HealthReport& report) const;
  std::string called_function(GuestVirt call) const;

  const KernelView& view_;
  Clocks& clocks_;
  std::function<void()> forget_;
  HostTime host_;
};

}  // namespace ringside::guest_linux
