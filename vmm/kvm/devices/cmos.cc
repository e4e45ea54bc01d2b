#include "vmm/kvm/devices/cmos.h"

#include <optional>
#include <utility>

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint8_t bcd(int value) {
  return static_cast<std::uint8_t>(((value / 10 % 10) << 4) | (value % 10));
}

/// What the clock's own registers hold; empty for those that are RAM.
std::optional<std::uint8_t> clock_register(std::uint8_t index, std::time_t now) {
  std::tm time{};
  gmtime_r(&now, &time);
  switch (index) {
    case 0x00: return bcd(time.tm_sec);
    case 0x02: return bcd(time.tm_min);
    case 0x04: return bcd(time.tm_hour);
    case 0x06: return bcd(time.tm_wday + 1);
    case 0x07: return bcd(time.tm_mday);
    case 0x08: return bcd(time.tm_mon + 1);
    case 0x09: return bcd(time.tm_year % 100);
    case 0x32: return bcd((time.tm_year + 1900) / 100);
    case 0x0a: return 0x26;  // 32.768 kHz, 976.6 us; never "update in progress"
    case 0x0b: return 0x02;  // 24-hour mode, BCD, no interrupts
    case 0x0c: return 0x00;  // no interrupt is pending
    case 0x0d: return 0x80;  // the battery is good
    default: return std::nullopt;
  }
}

}  // namespace

Cmos::Cmos(std::function<std::time_t()> now) : now_(std::move(now)) {}

std::uint8_t Cmos::read_byte(std::uint64_t offset) {
  if (offset != 1) return 0xff;  // the index cannot be read back
  const std::scoped_lock lock(mutex_);
  return clock_register(index_, now_()).value_or(ram_[index_]);
}

void Cmos::write_byte(std::uint64_t offset, std::uint8_t value) {
  const std::scoped_lock lock(mutex_);
  if (offset == 0) {
    index_ = value & 0x7f;
  } else {
    ram_[index_] = value;  // of a clock's register: never seen again
  }
}

}  // namespace ringside::vmm::kvm
