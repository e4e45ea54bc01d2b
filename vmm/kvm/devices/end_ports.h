// The two devices of one port by which a guest's kernel ends it: a reset and a panic.
#pragma once

#include <atomic>
#include <cstdint>

#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/devices/guest_end.h"

namespace ringside::vmm::kvm {

/// The reset control register of a PC's chipset, which the FADT names as ACPI's RESET_REG (Advanced
/// Configuration and Power Interface Specification 6.4, 4.8.3.6; bits as in the Intel 82371AB
/// (PIIX4) data sheet): setting bit 2 resets, bit 1 chooses a hard or a soft reset. Both resets end
/// the guest as rebooted.
class ResetControl final : public ByteDevice {
 public:
  static constexpr std::uint64_t kPorts = 1;

  explicit ResetControl(GuestEnd& guest_end) : guest_end_(guest_end) {}

 private:
  std::uint8_t read_byte(std::uint64_t) override { return kind_; }
  void write_byte(std::uint64_t, std::uint8_t value) override {
    kind_ = value & 0x02;
    if ((value & 0x04) != 0) guest_end_.guest_ended(MachineState::Rebooted);
  }

  GuestEnd& guest_end_;
  std::atomic<std::uint8_t> kind_ = 0;
};

/// pvpanic: the device by which a guest's kernel reports a panic. QEMU, docs/specs/pvpanic.rst: one
/// port. A read tells the supported events, a write reports one: bit 0 "panicked", bit 1 "panicked,
/// and the guest handles it" (a crash kernel runs next; the host leaves the guest alone).
class Pvpanic final : public ByteDevice {
 public:
  static constexpr std::uint64_t kPorts = 1;

  explicit Pvpanic(GuestEnd& guest_end) : guest_end_(guest_end) {}

 private:
  static constexpr std::uint8_t kPanicked = 1, kCrashLoaded = 2;

  std::uint8_t read_byte(std::uint64_t) override { return kPanicked | kCrashLoaded; }
  void write_byte(std::uint64_t, std::uint8_t value) override {
    if ((value & kPanicked) != 0) guest_end_.guest_ended(MachineState::Panicked);
  }

  GuestEnd& guest_end_;
};

}  // namespace ringside::vmm::kvm
