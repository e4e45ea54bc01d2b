// The CMOS RAM and real-time clock: Motorola MC146818A data sheet (1984), "address map" and
// "registers". Two ports: index (bit 7, the NMI mask, is ignored) and data.
// The time is the host's, UTC, in BCD and 24-hour mode, read anew for each byte: a driver compares
// the seconds before and after, as the data sheet demands. The century is at 0x32, as in PCs.
// Does not: let the guest set the time or the mode, raise interrupts (alarm, periodic, update), or
// tell memory sizes (e820 does).
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

class Cmos final : public ByteDevice {
 public:
  static constexpr std::uint64_t kPorts = 2;

  /// `now` gives seconds since 1970.
  explicit Cmos(std::function<std::time_t()> now = [] { return std::time(nullptr); });

 private:
  std::uint8_t read_byte(std::uint64_t offset) override;
  void write_byte(std::uint64_t offset, std::uint8_t value) override;

  std::mutex mutex_;
  const std::function<std::time_t()> now_;
  std::uint8_t index_ = 0;
  std::array<std::uint8_t, 128> ram_{};
};

}  // namespace ringside::vmm::kvm
