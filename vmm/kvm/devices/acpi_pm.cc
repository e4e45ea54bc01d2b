#include "vmm/kvm/devices/acpi_pm.h"

#include <array>
#include <chrono>
#include <utility>

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {
namespace {

// Offsets in the register block.
constexpr std::uint64_t kStatusOffset = 0, kEnableOffset = 2, kControlOffset = 4, kTimerOffset = 8;

constexpr std::uint16_t kPowerButton = 1 << 8;   // PWRBTN_STS and PWRBTN_EN
constexpr std::uint16_t kSciEnabled = 1 << 0;    // SCI_EN: always, there is no legacy mode
constexpr std::uint16_t kSleepEnable = 1 << 13;  // SLP_EN: write-only

/// 3.579545 MHz, 32 bits.
std::uint32_t timer_value(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kHertz = 3'579'545, kSecond = 1'000'000'000;
  return static_cast<std::uint32_t>(nanoseconds / kSecond * kHertz +
                                    nanoseconds % kSecond * kHertz / kSecond);
}

}  // namespace

AcpiPm::AcpiPm(InterruptLine& sci, GuestEnd& guest_end, std::function<std::uint64_t()> nanoseconds)
    : sci_(sci), guest_end_(guest_end), nanoseconds_(std::move(nanoseconds)) {}

std::uint64_t AcpiPm::steady_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void AcpiPm::press_power_button() {
  const std::scoped_lock lock(mutex_);
  status_ |= kPowerButton;
  update_line();
}

void AcpiPm::update_line() {
  sci_.set((status_ & enable_) != 0);
}

void AcpiPm::read(std::uint64_t offset, std::span<std::byte> data) {
  // The whole block as bytes, so that an access of any width finds its part.
  std::array<std::byte, kPorts + 8> block;
  put_all_ones(block);
  {
    const std::scoped_lock lock(mutex_);
    put_value(std::span(block).subspan(kStatusOffset, 2), status_);
    put_value(std::span(block).subspan(kEnableOffset, 2), enable_);
    put_value(std::span(block).subspan(kControlOffset, 2), control_ | kSciEnabled);
  }
  put_value(std::span(block).subspan(kTimerOffset, 4), timer_value(nanoseconds_()));
  for (std::byte& byte : data) byte = offset < kPorts ? block[offset++] : std::byte{0xff};
}

void AcpiPm::write(std::uint64_t offset, std::span<const std::byte> data) {
  bool off = false;
  {
    const std::scoped_lock lock(mutex_);
    for (const std::byte byte : data) {
      const unsigned shift = offset % 2 * 8;
      const auto bits = static_cast<std::uint16_t>(std::to_integer<unsigned>(byte) << shift);
      const auto others = static_cast<std::uint16_t>(~(0xffu << shift));
      switch (offset++ & ~std::uint64_t{1}) {
        case kStatusOffset: status_ &= static_cast<std::uint16_t>(~bits); break;  // 1 clears
        case kEnableOffset: enable_ = static_cast<std::uint16_t>((enable_ & others) | bits); break;
        case kControlOffset:
          off = off || (bits & kSleepEnable) != 0;
          control_ = static_cast<std::uint16_t>(((control_ & others) | bits) & ~kSleepEnable);
          break;
        default: break;
      }
    }
    update_line();
  }
  if (off) guest_end_.guest_ended(MachineState::PoweredOff);
}

}  // namespace ringside::vmm::kvm
