#include "vmm/kvm/devices/cmos.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace ringside::vmm::kvm {
namespace {

// The clock has four digits for the year; these are 1970-01-01 and the end of 9999-12-31.
constexpr std::time_t kFirstMoment = 0, kLastMoment = 253'402'300'799;

constexpr std::uint8_t bcd(std::int64_t value) {
  return static_cast<std::uint8_t>(((value / 10 % 10) << 4) | (value % 10));
}

/// The value of one of the clock's registers; empty for those that are RAM. Not by gmtime_r, which
/// reads the host's time zone from a file: the sandbox of a vCPU's thread lets no file be opened.
std::optional<std::uint8_t> clock_register(std::uint8_t index, std::time_t now) {
  using namespace std::chrono;
  // In seconds: nanoseconds since the epoch overflow in 2262.
  const sys_seconds moment(seconds(std::clamp(now, kFirstMoment, kLastMoment)));
  const auto day = floor<days>(moment);
  const year_month_day date(day);
  const hh_mm_ss time(moment - day);
  const int year = static_cast<int>(date.year());
  switch (index) {
    case 0x00: return bcd(time.seconds().count());
    case 0x02: return bcd(time.minutes().count());
    case 0x04: return bcd(time.hours().count());
    case 0x06: return bcd(weekday(day).c_encoding() + 1);
    case 0x07: return bcd(static_cast<unsigned>(date.day()));
    case 0x08: return bcd(static_cast<unsigned>(date.month()));
    case 0x09: return bcd(year % 100);
    case 0x32: return bcd(year / 100);
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
