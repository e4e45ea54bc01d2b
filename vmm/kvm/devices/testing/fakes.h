// For tests of devices: an interrupt line that counts, a guest that runs, and accesses as one call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/devices/guest_end.h"
#include "vmm/kvm/devices/interrupt_pins.h"

namespace ringside::vmm::kvm {

/// A line to the one pin of a board.
class FakeLine {
 public:
  operator InterruptLine&() { return line_; }
  bool level() const { return level_; }
  unsigned rises() const { return rises_; }

 private:
  std::atomic<bool> level_ = false;
  std::atomic<unsigned> rises_ = 0;
  InterruptPins pins_{[this](std::uint32_t, bool level) {
    if (level) ++rises_;
    level_ = level;
  }};
  InterruptLine& line_ = pins_.line(0);
};

inline GuestEnd running_guest() {
  return GuestEnd(
      GuestEnd::make_event().value(), [] {}, [] { return std::string(); });
}

/// One read of `size` bytes; all in one number.
inline std::uint64_t read_from(Device& device, std::uint64_t offset, std::size_t size = 1) {
  std::array<std::byte, 8> bytes{};
  device.read(offset, std::span(bytes).first(size));
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), size);
  return value;
}

inline void write_to(Device& device, std::uint64_t offset, std::uint64_t value,
                     std::size_t size = 1) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  device.write(offset, std::span<const std::byte>(bytes).first(size));
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace ringside::vmm::kvm
