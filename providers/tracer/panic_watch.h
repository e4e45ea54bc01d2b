// Tells when the guest's kernel has panicked and stands still while the machine runs on. A kernel
// that reboots after a panic (panic=N) ends its machine instead, or boots again. Used by
// RunningKernelTracer, on the session's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/kernel_variables.h"

namespace ringside::providers {

class PanicWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// So long it may take until a machine that ends with its kernel says so.
  static constexpr std::chrono::seconds kSeenFor{3};

  /// The CPU on which it did, once that has been seen for kSeenFor. `memory` is the kernel's.
  std::optional<std::uint32_t> look(const guest_linux::Kernel& kernel, const GuestReader& memory,
                                    Clock::time_point now);

 private:
  std::optional<Clock::time_point> since_;
};

inline std::optional<std::uint32_t> PanicWatch::look(const guest_linux::Kernel& kernel,
                                                     const GuestReader& memory,
                                                     Clock::time_point now) {
  const auto cpu = guest_linux::panicked_cpu(kernel, memory);
  if (!cpu) {
    since_.reset();
    return std::nullopt;
  }
  if (!since_) since_ = now;
  return now - *since_ >= kSeenFor ? cpu : std::nullopt;
}

}  // namespace ringside::providers
