// Instructions that must run in their own place, because the guest has, or has had, a hardware
// breakpoint there. No jump may displace them. Used by JumpPlanner.
// Does not: take away jumps that stand.
// Threads: as JumpPlanner. Fire context: no.
#pragma once

#include <vector>

#include "providers/tracepoint/tracepoint_store.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/hardware_breakpoints.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// If a guest has set more hardware breakpoints than this, no place becomes a jump any more.
inline constexpr std::size_t kMostInPlace = 4096;

class KeptInPlace {
 public:
  /// `kernel` must outlive it.
  explicit KeptInPlace(const guest_linux::Kernel& kernel) : kernel_(kernel), hardware_(kernel) {}

  void add(GuestVirt at);
  /// Adds those that are set now.
  void look(const GuestReader& live);
  /// Whether one of them lies in an instruction that the point's jump displaces.
  bool forbids(const Tracepoint& point) const;

 private:
  const guest_linux::Kernel& kernel_;
  const guest_linux::HardwareBreakpoints hardware_;
  std::vector<GuestVirt> places_;
};

}  // namespace ringside::providers
