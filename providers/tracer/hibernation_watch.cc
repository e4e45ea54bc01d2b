#include "providers/tracer/hibernation_watch.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "providers/fire/host_clock.h"
#include "providers/tracer/watched_entry.h"

namespace ringside::providers {

HibernationWatch::HibernationWatch(std::uint64_t timeout)
    : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), timeout_(timeout) {}

Result<void> HibernationWatch::prepare(const guest_linux::Kernel& kernel, TracepointTable& table) {
  for (const char* function : {"hibernate", "hibernation_snapshot"}) {
    const auto* const symbol = kernel.symbols().find(function, "vmlinux");
    if (symbol != nullptr) watch(TRY(watch_entry(table, kernel, *symbol)));
  }
  return {};
}

bool HibernationWatch::needs_poller(GuestVirt address) const {
  return std::ranges::find(places_, address) != places_.end() || next_->needs_poller(address);
}

bool HibernationWatch::keeps(const vmm::Trap& trap) {
  if (std::ranges::find(places_, trap.address) == places_.end()) return next_->keeps(trap);
  const std::uint64_t now = monotonic_ns();
  std::uint64_t since = 0;
  if (since_.compare_exchange_strong(since, now, std::memory_order_relaxed)) {
    since = now;
    (void)eventfd_write(event_.get(), 1);  // full: then it is readable
  }
  return !ended_.load(std::memory_order_relaxed) && now - since < timeout_;
}

}  // namespace ringside::providers
