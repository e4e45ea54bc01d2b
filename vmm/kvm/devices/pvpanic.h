// pvpanic: the device by which a guest's kernel reports a panic. QEMU, docs/specs/pvpanic.rst: one
// port. A read tells the supported events, a write reports one: bit 0 "panicked", bit 1 "panicked,
// and the guest handles it" (a crash kernel runs next; the host leaves the guest alone).
#pragma once

#include <cstdint>

#include "vmm/kvm/devices/byte_device.h"

namespace ringside::vmm::kvm {

class Pvpanic final : public ByteDevice {
 public:
  static constexpr std::uint64_t kPorts = 1;

  explicit Pvpanic(MachineEvents& events) : events_(events) {}

 private:
  static constexpr std::uint8_t kPanicked = 1, kCrashLoaded = 2;

  std::uint8_t read_byte(std::uint64_t) override { return kPanicked | kCrashLoaded; }
  void write_byte(std::uint64_t, std::uint8_t value) override {
    if ((value & kPanicked) != 0) events_.guest_ended(MachineState::Panicked);
  }

  MachineEvents& events_;
};

}  // namespace ringside::vmm::kvm
