#include "providers/tracer/panic_watch.h"

#include "vmm/linux/kernel_variables.h"

namespace ringside::providers {

std::optional<std::uint32_t> PanicWatch::look(const guest_linux::Kernel& kernel,
                                              const GuestReader& memory, Clock::time_point now) {
  const auto cpu = guest_linux::panicked_cpu(kernel, memory);
  if (!cpu) {
    since_.reset();
    return std::nullopt;
  }
  if (!since_) since_ = now;
  return now - *since_ >= kSeenFor ? cpu : std::nullopt;
}

}  // namespace ringside::providers
