#include "vmm/kvm/devices/virtio_console.h"

#include <algorithm>
#include <utility>

namespace ringside::vmm::kvm {

VirtioConsole::VirtioConsole(Output output, std::function<void()> room)
    : output_(std::move(output)), room_(std::move(room)) {}

std::size_t VirtioConsole::receive(std::span<const std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  const auto taken = bytes.first(std::min(bytes.size(), kQueue - input_.size()));
  input_.insert(input_.end(), taken.begin(), taken.end());
  wanted_room_ = taken.size() < bytes.size();
  serve(kReceive);
  return taken.size();
}

void VirtioConsole::output_ready() {
  const std::scoped_lock lock(mutex_);
  if (unsent_ && send(*unsent_)) {
    finish(kTransmit, unsent_->head, 0);
    unsent_.reset();
  }
  serve(kTransmit);
}

bool VirtioConsole::wants(unsigned queue) const {
  return queue == kReceive ? !input_.empty() : !unsent_;
}

void VirtioConsole::stopped() {
  unsent_.reset();
  sent_ = 0;
}

std::optional<std::uint32_t> VirtioConsole::answer(unsigned queue, const DescriptorChain& chain) {
  if (queue == kReceive) return give_input(chain);
  if (send(chain)) return 0;
  unsent_ = chain;
  return std::nullopt;
}

std::uint32_t VirtioConsole::give_input(const DescriptorChain& chain) {
  std::array<std::byte, kQueue> bytes;
  const std::size_t size = std::min(input_.size(), chain.writable_size);
  const auto end = input_.begin() + static_cast<std::ptrdiff_t>(size);
  std::copy(input_.begin(), end, bytes.begin());
  input_.erase(input_.begin(), end);
  copy_to(chain.writable, 0, std::span(bytes).first(size));
  if (wanted_room_ && input_.size() <= kQueue / 2) {
    wanted_room_ = false;
    if (room_) room_();
  }
  return static_cast<std::uint32_t>(size);
}

/// Whether all of the chain was sent; if not, the next call continues where this one stopped.
bool VirtioConsole::send(const DescriptorChain& chain) {
  const std::size_t end = std::min(chain.readable_size, kMostOutput);
  std::array<std::byte, 4096> bytes;
  while (sent_ < end) {
    const auto part = std::span(bytes).first(std::min(bytes.size(), end - sent_));
    copy_from(chain.readable, sent_, part);
    const std::size_t taken = std::min(output_(part), part.size());
    sent_ += taken;
    if (taken < part.size()) return false;
  }
  sent_ = 0;
  return true;
}

}  // namespace ringside::vmm::kvm
