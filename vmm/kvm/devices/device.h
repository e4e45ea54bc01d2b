// The interface of a device: it answers reads and writes of its range of ports or of guest-physical
// memory. It may pull an interrupt line (interrupt_pins.h) and end the guest (guest_end.h). Every
// offset, size and value comes from the guest: hostile. Devices know nothing of KVM, threads or the
// machine. How to add a device: a file of its own here, with the specification and its section in
// the header comment; a test beside it; a line where vmm/kvm/board.cc puts it on the buses; its
// fuzz target. Threads: calls come from every vCPU's thread and, for input, from other threads; a
// device locks itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ringside::vmm::kvm {

class Device {
 public:
  virtual ~Device() = default;
  /// `offset`: from the start of the device's range. `data`: 1, 2, 4 or 8 bytes, all inside the
  /// range; zero before a read. Registers that a device does not have read as all ones.
  virtual void read(std::uint64_t offset, std::span<std::byte> data) = 0;
  virtual void write(std::uint64_t offset, std::span<const std::byte> data) = 0;
};

/// A device whose registers are one byte wide. A wider access is split into one access a byte, from
/// the lowest port up, as on a PC's bus.
class ByteDevice : public Device {
 public:
  void read(std::uint64_t offset, std::span<std::byte> data) final {
    for (std::byte& byte : data) byte = std::byte{read_byte(offset++)};
  }
  void write(std::uint64_t offset, std::span<const std::byte> data) final {
    for (const std::byte byte : data) write_byte(offset++, std::to_integer<std::uint8_t>(byte));
  }

 private:
  virtual std::uint8_t read_byte(std::uint64_t offset) = 0;
  virtual void write_byte(std::uint64_t offset, std::uint8_t value) = 0;
};

// Register values and the bytes of an access: x86 and virtio are little-endian, and so is the host.

/// The first 8 bytes of `data` as a number; bytes that are not there are 0.
inline std::uint64_t value_of(std::span<const std::byte> data) {
  std::uint64_t value = 0;
  std::memcpy(&value, data.data(), std::min(data.size(), sizeof value));
  return value;
}

/// `value` into `data`; bytes beyond the value become 0.
inline void put_value(std::span<std::byte> data, std::uint64_t value) {
  std::ranges::fill(data, std::byte{0});
  std::memcpy(data.data(), &value, std::min(data.size(), sizeof value));
}

inline void put_all_ones(std::span<std::byte> data) {
  std::ranges::fill(data, std::byte{0xff});
}

}  // namespace ringside::vmm::kvm
