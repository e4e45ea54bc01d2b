// The pins of a board's interrupt controllers, level-triggered: several devices may pull one, and
// it is high while one of them does. The board makes the lines; devices set them.
// Threads: InterruptPins::line() while the board is made; InterruptLine::set() any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

namespace ringside::vmm::kvm {

class InterruptLine;

class InterruptPin {
 public:
  using Set = std::function<void(std::uint32_t gsi, bool level)>;

  InterruptPin(const Set& set, std::uint32_t gsi) : set_(set), gsi_(gsi) {}
  /// `line` pulls, or no longer.
  void pull(const InterruptLine& line, bool level);
  std::uint32_t gsi() const { return gsi_; }

 private:
  const Set& set_;
  const std::uint32_t gsi_;
  std::mutex mutex_;
  std::set<const InterruptLine*> pulling_;
};

/// A device's line to a pin.
class InterruptLine {
 public:
  explicit InterruptLine(InterruptPin& pin) : pin_(pin) {}
  InterruptLine(const InterruptLine&) = delete;
  InterruptLine& operator=(const InterruptLine&) = delete;
  void set(bool level) { pin_.pull(*this, level); }

 private:
  InterruptPin& pin_;
};

class InterruptPins {
 public:
  /// `set` is called for each change of a pin; one call at a time for each pin, on the thread of
  /// the device that made the change.
  explicit InterruptPins(InterruptPin::Set set) : set_(std::move(set)) {}
  InterruptPins(const InterruptPins&) = delete;
  InterruptPins& operator=(const InterruptPins&) = delete;

  /// A device's line to the pin `gsi`; lives as long as this object.
  InterruptLine& line(std::uint32_t gsi);

 private:
  const InterruptPin::Set set_;
  std::deque<InterruptPin> pins_;  // deques: their elements do not move
  std::deque<InterruptLine> lines_;
};

}  // namespace ringside::vmm::kvm
