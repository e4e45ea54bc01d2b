// The pins of a board's interrupt controllers, level-triggered: several devices may pull one, and
// it is high while one of them does. Used by board. Threads: line() while the board is made; lines
// any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

class InterruptPins {
 public:
  /// `set_pin` is called for each change of a pin; one call at a time for each pin, on the thread
  /// of the device that made the change.
  explicit InterruptPins(std::function<void(std::uint32_t gsi, bool level)> set_pin)
      : set_pin_(std::move(set_pin)) {}
  InterruptPins(const InterruptPins&) = delete;
  InterruptPins& operator=(const InterruptPins&) = delete;

  /// A device's line to the pin `gsi`; lives as long as this object.
  InterruptLine& line(std::uint32_t gsi);

 private:
  class Pin {
   public:
    Pin(InterruptPins& pins, std::uint32_t gsi) : pins_(pins), gsi_(gsi) {}
    void set(const InterruptLine* line, bool level);
    std::uint32_t gsi() const { return gsi_; }

   private:
    InterruptPins& pins_;
    const std::uint32_t gsi_;
    std::mutex mutex_;
    std::set<const InterruptLine*> pulling_;
  };
  class Line final : public InterruptLine {
   public:
    explicit Line(Pin& pin) : pin_(pin) {}
    void set(bool level) override { pin_.set(this, level); }

   private:
    Pin& pin_;
  };

  const std::function<void(std::uint32_t, bool)> set_pin_;
  std::deque<Pin> pins_;  // deques: their elements do not move
  std::deque<Line> lines_;
};

}  // namespace ringside::vmm::kvm
