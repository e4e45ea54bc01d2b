// A device whose registers are one byte wide. A wider access is split into one access a byte, from
// the lowest port up, as on a PC's bus.
#pragma once

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

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

}  // namespace ringside::vmm::kvm
