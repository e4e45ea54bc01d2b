#include "vmm/kvm/guest_end.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace ringside::vmm::kvm {

Result<std::unique_ptr<GuestEnd>> GuestEnd::create(std::function<void()> stop,
                                                   std::function<std::string()> scene) {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    return fail(ErrorCode::Io, fmt::format("cannot make an event: {}", std::strerror(errno)));
  }
  return std::unique_ptr<GuestEnd>(
      new GuestEnd(std::move(stop), std::move(scene), std::move(event)));
}

void GuestEnd::record(MachineState how, std::string last_words) {
  {
    const std::lock_guard lock(mutex_);
    if (state() != MachineState::Running) return;
    last_words_ = std::move(last_words);
    state_.store(how, std::memory_order_release);
  }
  stop_();
  eventfd_write(event_.get(), 1);
}

std::string GuestEnd::last_words() const {
  const std::lock_guard lock(mutex_);
  return last_words_;
}

}  // namespace ringside::vmm::kvm
