#include "vmm/kvm/devices/guest_end.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

namespace ringside::vmm::kvm {

Result<UniqueFd> GuestEnd::make_event() {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event) return event;
  return fail(ErrorCode::Io, fmt::format("cannot make an event: {}", std::strerror(errno)));
}

void GuestEnd::record(MachineState how, std::string exit_report) {
  {
    const std::lock_guard lock(mutex_);
    if (state() != MachineState::Running) return;
    last_words_ = std::move(exit_report);
    state_.store(how, std::memory_order_release);
  }
  stop_();
  eventfd_write(event_.get(), 1);
}

std::string GuestEnd::exit_report() const {
  const std::lock_guard lock(mutex_);
  return last_words_;
}

}  // namespace ringside::vmm::kvm
