// ACPI's fixed hardware: the PM1 event and control registers and the power management timer.
// Advanced Configuration and Power Interface Specification 6.4, 4.8.2.1 (PM timer), 4.8.3.1 (PM1
// event), 4.8.3.2 (PM1 control). Offsets are those of the ports from kPm1Event on.
// Every sleep powers off: S5 is the only state that the machine's DSDT declares, so SLP_TYP is not
// looked at. The power button raises the SCI when the guest has enabled it.
// Does not: report the timer's overflow (TMR_STS), which would need a thread; nor SMIs, GPEs.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/devices/guest_end.h"
#include "vmm/kvm/devices/interrupt_pins.h"

namespace ringside::vmm::kvm {

class AcpiPm final : public Device {
 public:
  static constexpr std::uint64_t kPorts = 12;

  /// `nanoseconds` is a clock that never goes back, for the timer.
  AcpiPm(InterruptLine& sci, GuestEnd& guest_end,
         std::function<std::uint64_t()> nanoseconds = steady_nanoseconds);

  void press_power_button();

  void read(std::uint64_t offset, std::span<std::byte> data) override;
  void write(std::uint64_t offset, std::span<const std::byte> data) override;

 private:
  static std::uint64_t steady_nanoseconds();
  void update_line();

  std::mutex mutex_;
  InterruptLine& sci_;
  GuestEnd& guest_end_;
  const std::function<std::uint64_t()> nanoseconds_;
  std::uint16_t status_ = 0, enable_ = 0, control_ = 0;
};

}  // namespace ringside::vmm::kvm
