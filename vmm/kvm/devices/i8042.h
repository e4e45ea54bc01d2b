// The keyboard controller, as far as a machine without keyboard and mouse needs it: Intel UPI-41
// 8042 as in the IBM PS/2 Hardware Interface Technical Reference ("keyboard and auxiliary device
// controller"): self-tests, command byte, output port, and the pulse that resets the machine.
// Offsets from port 0x60: data at 0, status and commands at 4; those between are other devices'.
// A command is executed at once, so the input buffer is never full and no driver waits. It raises
// no interrupt: a driver whose interface test finds no device enables none.
#pragma once

#include <cstdint>
#include <mutex>

#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/devices/guest_end.h"

namespace ringside::vmm::kvm {

class I8042 final : public ByteDevice {
 public:
  static constexpr std::uint64_t kPorts = 5;

  explicit I8042(GuestEnd& guest_end) : guest_end_(guest_end) {}

 private:
  std::uint8_t read_byte(std::uint64_t offset) override;
  void write_byte(std::uint64_t offset, std::uint8_t value) override;
  void answer(std::uint8_t value);
  /// Both: whether the guest resets the machine by it.
  bool command(std::uint8_t value);
  bool data(std::uint8_t value);

  std::mutex mutex_;
  GuestEnd& guest_end_;
  std::uint8_t output_ = 0;     // the output buffer
  std::uint8_t status_ = 0x14;  // the self-test passed, the keyboard is not locked
  std::uint8_t command_byte_ = 0;
  std::uint8_t output_port_ = 0x03;  // no reset, A20 open
  std::uint8_t data_is_for_ = 0;     // the command that takes the next data byte; 0: the keyboard
};

}  // namespace ringside::vmm::kvm
