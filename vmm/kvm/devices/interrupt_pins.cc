#include "vmm/kvm/devices/interrupt_pins.h"

namespace ringside::vmm::kvm {

void InterruptPin::pull(const InterruptLine& line, bool level) {
  // Held during the call, so that two devices' changes are told in their order.
  const std::lock_guard lock(mutex_);
  const bool before = !pulling_.empty();
  if (level)
    pulling_.insert(&line);
  else
    pulling_.erase(&line);
  if (pulling_.empty() == before) set_(gsi_, !pulling_.empty());
}

InterruptLine& InterruptPins::line(std::uint32_t gsi) {
  for (InterruptPin& pin : pins_) {
    if (pin.gsi() == gsi) return lines_.emplace_back(pin);
  }
  return lines_.emplace_back(pins_.emplace_back(set_, gsi));
}

}  // namespace ringside::vmm::kvm
