// The reset control register of a PC's chipset, which the FADT names as ACPI's RESET_REG (Advanced
// Configuration and Power Interface Specification 6.4, 4.8.3.6; bits as in the Intel 82371AB
// (PIIX4) data sheet): setting bit 2 resets, bit 1 chooses a hard or a soft reset.
// One port. Both resets end the guest as rebooted.
#pragma once

#include <atomic>
#include <cstdint>

#include "vmm/kvm/devices/byte_device.h"

namespace ringside::vmm::kvm {

class ResetControl final : public ByteDevice {
 public:
  static constexpr std::uint64_t kPorts = 1;

  explicit ResetControl(MachineEvents& events) : events_(events) {}

 private:
  std::uint8_t read_byte(std::uint64_t) override { return kind_; }
  void write_byte(std::uint64_t, std::uint8_t value) override {
    kind_ = value & 0x02;
    if ((value & 0x04) != 0) events_.guest_ended(MachineState::Rebooted);
  }

  MachineEvents& events_;
  std::atomic<std::uint8_t> kind_ = 0;
};

}  // namespace ringside::vmm::kvm
