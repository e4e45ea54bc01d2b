#include "vmm/kvm/devices/uart16550.h"

#include <algorithm>
#include <utility>

namespace ringside::vmm::kvm {
namespace {

// Table II of the data sheet. Offsets 0 and 1 are the divisor latch while LCR's DLAB is set.
enum Offset : std::uint8_t { kData, kIer, kIirFcr, kLcr, kMcr, kLsr, kMsr, kScratch };

enum Ier : std::uint8_t { kIerData = 1, kIerEmpty = 2, kIerLine = 4, kIerModem = 8 };
// The identification register's interrupts, in the order of their priority (table IV).
enum Iir : std::uint8_t {
  kIirLine = 0x06,
  kIirData = 0x04,
  kIirTimeout = 0x0c,
  kIirEmpty = 0x02,
  kIirModem = 0x00,
  kIirNone = 0x01,
  kIirFifos = 0xc0,
};
enum Fcr : std::uint8_t { kFcrEnable = 1, kFcrClearReceiver = 2, kFcrClearTransmitter = 4 };
constexpr std::uint8_t kFcrKept = 0xc9;  // enable, DMA mode, trigger level
constexpr std::uint8_t kLcrDivisor = 0x80;
enum Mcr : std::uint8_t { kMcrDtr = 1, kMcrRts = 2, kMcrOut1 = 4, kMcrOut2 = 8, kMcrLoop = 16 };
constexpr std::uint8_t kMcrBits = 0x1f;
enum Lsr : std::uint8_t { kLsrData = 1, kLsrOverrun = 2, kLsrEmpty = 0x20, kLsrIdle = 0x40 };
enum Msr : std::uint8_t { kMsrRiEnded = 4, kMsrCts = 16, kMsrDsr = 32, kMsrRi = 64, kMsrDcd = 128 };

}  // namespace

Uart16550::Uart16550(InterruptLine& line, Output output, std::function<void()> room)
    : line_(line), output_(std::move(output)), room_(std::move(room)) {}

std::size_t Uart16550::receive(std::span<const std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  const auto taken = bytes.first(std::min(bytes.size(), kQueue - queue_.size()));
  queue_.insert(queue_.end(), taken.begin(), taken.end());
  wanted_room_ = taken.size() < bytes.size();
  refill();
  update_line();
  return taken.size();
}

void Uart16550::output_ready() {
  const std::scoped_lock lock(mutex_);
  transmit();
  update_line();
}

std::uint8_t Uart16550::read_byte(std::uint64_t offset) {
  const std::scoped_lock lock(mutex_);
  switch (offset) {
    case kData: return divisor_selected() ? static_cast<std::uint8_t>(divisor_) : read_data();
    case kIer:
      return divisor_selected() ? static_cast<std::uint8_t>(divisor_ >> 8) : interrupt_enable_;
    case kIirFcr: return identify();
    case kLcr: return line_control_;
    case kMcr: return modem_control_;
    case kLsr: return read_line_status();
    case kMsr: return read_modem_status();
    case kScratch: return scratch_;
    default: return 0xff;
  }
}

void Uart16550::write_byte(std::uint64_t offset, std::uint8_t value) {
  const std::scoped_lock lock(mutex_);
  switch (offset) {
    case kData:
      if (!divisor_selected()) return write_data(value);
      divisor_ = static_cast<std::uint16_t>((divisor_ & 0xff00) | value);
      return;
    case kIer:
      if (!divisor_selected()) return write_interrupt_enable(value);
      divisor_ = static_cast<std::uint16_t>((divisor_ & 0xff) | (value << 8));
      return;
    case kIirFcr: return write_fifo_control(value);
    case kLcr: line_control_ = value; return;
    case kMcr: return write_modem_control(value);
    case kScratch: scratch_ = value; return;
    default: return;  // LSR and MSR: for factory tests only
  }
}

bool Uart16550::divisor_selected() const {
  return (line_control_ & kLcrDivisor) != 0;
}

/// How many bytes each FIFO holds: one when FIFOs are off, as in the 16450.
std::size_t Uart16550::depth() const {
  return (fifo_control_ & kFcrEnable) != 0 ? kFifo : 1;
}

std::uint8_t Uart16550::read_data() {
  if (received_.empty()) return 0;
  const auto byte = std::to_integer<std::uint8_t>(received_.front());
  received_.pop_front();
  refill();
  update_line();
  return byte;
}

/// Moves what came in to the FIFO. Not in loopback: then the receiver hears the transmitter only.
void Uart16550::refill() {
  if ((modem_control_ & kMcrLoop) == 0) {
    while (received_.size() < depth() && !queue_.empty()) {
      received_.push_back(queue_.front());
      queue_.pop_front();
    }
  }
  if (wanted_room_ && queue_.size() <= kQueue / 2) {
    wanted_room_ = false;
    if (room_) room_();
  }
}

std::uint8_t Uart16550::read_line_status() {
  std::uint8_t status = received_.empty() ? 0 : kLsrData;
  if (std::exchange(overrun_, false)) status |= kLsrOverrun;
  if (sending_.empty()) status |= kLsrEmpty | kLsrIdle;
  update_line();
  return status;
}

/// The high half of MSR: the other end's lines, which are always on, or our own in loopback.
std::uint8_t Uart16550::modem_lines() const {
  if ((modem_control_ & kMcrLoop) == 0) return kMsrCts | kMsrDsr | kMsrDcd;
  std::uint8_t lines = 0;
  if ((modem_control_ & kMcrRts) != 0) lines |= kMsrCts;
  if ((modem_control_ & kMcrDtr) != 0) lines |= kMsrDsr;
  if ((modem_control_ & kMcrOut1) != 0) lines |= kMsrRi;
  if ((modem_control_ & kMcrOut2) != 0) lines |= kMsrDcd;
  return lines;
}

std::uint8_t Uart16550::read_modem_status() {
  const auto status = static_cast<std::uint8_t>(modem_lines() | std::exchange(modem_changes_, 0));
  update_line();
  return status;
}

/// The most urgent interrupt that is enabled and pending, as IIR's low half.
std::uint8_t Uart16550::pending() const {
  constexpr std::array<std::uint8_t, 4> kTriggers{1, 4, 8, 14};
  if ((interrupt_enable_ & kIerLine) != 0 && overrun_) return kIirLine;
  if ((interrupt_enable_ & kIerData) != 0 && !received_.empty()) {
    // Below the trigger level a 16550 waits for the time of four characters. Here all input is in
    // the FIFO already, so the time-out comes at once.
    const bool reached = received_.size() >= kTriggers[fifo_control_ >> 6];
    return depth() == 1 || reached ? kIirData : kIirTimeout;
  }
  if ((interrupt_enable_ & kIerEmpty) != 0 && empty_unseen_) return kIirEmpty;
  if ((interrupt_enable_ & kIerModem) != 0 && modem_changes_ != 0) return kIirModem;
  return kIirNone;
}

std::uint8_t Uart16550::identify() {
  const std::uint8_t which = pending();
  if (which == kIirEmpty) empty_unseen_ = false;
  update_line();
  return static_cast<std::uint8_t>(which | (depth() == 1 ? 0 : kIirFifos));
}

void Uart16550::update_line() {
  line_.set(pending() != kIirNone);
}

void Uart16550::write_data(std::uint8_t value) {
  empty_unseen_ = false;
  update_line();  // down before it rises again: an edge-triggered interrupt controller sees it
  if ((modem_control_ & kMcrLoop) != 0) {
    if (received_.size() < depth()) {
      received_.push_back(std::byte{value});
    } else {
      overrun_ = true;
    }
    empty_unseen_ = sending_.empty();
  } else {
    if (sending_.size() < depth()) sending_.push_back(std::byte{value});
    transmit();
  }
  update_line();
}

/// Gives the sink what waits for it.
void Uart16550::transmit() {
  if (sending_.empty()) return;
  std::array<std::byte, kFifo> bytes;
  const std::size_t size = sending_.size();
  std::ranges::copy(sending_, bytes.begin());
  const std::size_t taken = std::min(output_(std::span(bytes).first(size)), size);
  sending_.erase(sending_.begin(), sending_.begin() + static_cast<std::ptrdiff_t>(taken));
  if (sending_.empty()) empty_unseen_ = true;
}

void Uart16550::write_interrupt_enable(std::uint8_t value) {
  // Enabling the interrupt while the transmitter is empty raises it (section 8.5): drivers rely on
  // it to start sending.
  const bool newly = (value & ~interrupt_enable_ & kIerEmpty) != 0;
  if (newly && sending_.empty()) empty_unseen_ = true;
  interrupt_enable_ = value & 0x0f;
  update_line();
}

void Uart16550::write_fifo_control(std::uint8_t value) {
  // Section 8.4: changing the mode empties both FIFOs; without the enable no other bit counts.
  const bool enabled = (value & kFcrEnable) != 0;
  const bool changed = enabled != ((fifo_control_ & kFcrEnable) != 0);
  if (changed || (enabled && (value & kFcrClearReceiver) != 0)) received_.clear();
  if (changed || (enabled && (value & kFcrClearTransmitter) != 0)) {
    empty_unseen_ = empty_unseen_ || !sending_.empty();
    sending_.clear();
  }
  fifo_control_ = enabled ? value & kFcrKept : 0;
  refill();
  update_line();
}

void Uart16550::write_modem_control(std::uint8_t value) {
  const std::uint8_t before = modem_lines();
  modem_control_ = value & kMcrBits;
  const auto changed = static_cast<std::uint8_t>(before ^ modem_lines());
  // DCTS, DDSR and DDCD lie four bits below their lines; TERI tells the end of a ring only.
  modem_changes_ |= static_cast<std::uint8_t>((changed & (kMsrCts | kMsrDsr | kMsrDcd)) >> 4);
  if ((changed & before & kMsrRi) != 0) modem_changes_ |= kMsrRiEnded;
  refill();
  update_line();
}

}  // namespace ringside::vmm::kvm
