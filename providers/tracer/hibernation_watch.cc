#include "providers/tracer/hibernation_watch.h"

#include <sys/eventfd.h>

#include "providers/clock/host_clock.h"
#include "providers/tracer/watched_entry.h"

namespace ringside::providers {

HibernationWatch::HibernationWatch(std::uint64_t timeout)
    : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), timeout_(timeout) {}

Result<void> HibernationWatch::prepare(const guest_linux::Kernel& kernel, TrapPointTable& table) {
  for (const char* function : {"hibernate", "hibernation_snapshot"}) {
    const auto* const symbol = kernel.symbols().find(function, "vmlinux");
    if (symbol != nullptr) places_.push_back(TRY(watch_entry(table, kernel, *symbol)));
  }
  return {};
}

void HibernationWatch::add_to(vmm::TrapHandlers& handlers) {
  for (const GuestVirt place : places_) handlers.add(place, *this);
}

bool HibernationWatch::keeps(const vmm::Trap&) {
  const std::uint64_t now = monotonic_ns();
  std::uint64_t since = 0;
  if (since_.compare_exchange_strong(since, now, std::memory_order_relaxed)) {
    since = now;
    (void)eventfd_write(event_.get(), 1);  // full: then it is readable
  }
  return !ended_.load(std::memory_order_relaxed) && now - since < timeout_;
}

}  // namespace ringside::providers
