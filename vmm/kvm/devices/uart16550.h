// A serial port: the PC16550D UART (National Semiconductor PC16550D data sheet, June 1995; register
// numbers below are those of its table II, behaviour of section 8). Eight one-byte ports.
// Sent bytes go to a sink at once. Bytes that the sink does not take wait in the 16-byte transmit
// FIFO with THRE clear, so that a guest's writer sleeps as on a slow line. Received bytes wait in a
// bounded queue before they enter the receive FIFO, so no byte that receive() took is lost. Does
// not: keep the line's speed, or have parity, framing errors, breaks and DMA. INTR is not gated by
// OUT2: that is a PC's wiring, not this chip's. Threads: any. The sink and `room` are called with
// the port locked: they must not call it back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>

#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/devices/interrupt_pins.h"

namespace ringside::vmm::kvm {

class Uart16550 final : public ByteDevice {
 public:
  static constexpr std::uint64_t kPorts = 8;
  static constexpr std::size_t kFifo = 16;
  static constexpr std::size_t kQueue = 4096;

  /// Gets bytes of the guest; returns how many of them it takes. output_ready() offers it the rest.
  using Output = std::function<std::size_t(std::span<const std::byte>)>;

  /// `line` must outlive the port. `room` is called when there is room again after a receive() that
  /// did not take everything.
  Uart16550(InterruptLine& line, Output output, std::function<void()> room = {});

  /// Input for the guest; returns how many bytes were taken.
  std::size_t receive(std::span<const std::byte> bytes);
  /// The sink may take bytes again.
  void output_ready();

 private:
  std::uint8_t read_byte(std::uint64_t offset) override;
  void write_byte(std::uint64_t offset, std::uint8_t value) override;

  std::uint8_t read_data();
  std::uint8_t read_line_status();
  std::uint8_t read_modem_status();
  std::uint8_t identify();
  void write_data(std::uint8_t value);
  void write_interrupt_enable(std::uint8_t value);
  void write_fifo_control(std::uint8_t value);
  void write_modem_control(std::uint8_t value);
  void transmit();
  void refill();
  void update_line();
  std::uint8_t pending() const;
  std::uint8_t modem_lines() const;
  std::size_t depth() const;
  bool divisor_selected() const;

  std::mutex mutex_;
  InterruptLine& line_;
  const Output output_;
  const std::function<void()> room_;

  std::deque<std::byte> queue_;     // received, not yet in the FIFO; at most kQueue
  std::deque<std::byte> received_;  // the receive FIFO; at most kFifo
  std::deque<std::byte> sending_;   // the transmit FIFO; at most kFifo
  bool wanted_room_ = false;        // receive() did not take everything
  bool empty_unseen_ = false;       // THRE became set and IIR has not reported it yet
  bool overrun_ = false;            // LSR's OE: only in loopback, where nobody waits for room

  std::uint8_t interrupt_enable_ = 0, fifo_control_ = 0, line_control_ = 0, modem_control_ = 0;
  std::uint8_t modem_changes_ = 0;  // MSR's low half
  std::uint8_t scratch_ = 0;
  std::uint16_t divisor_ = 12;  // 9600 baud, as a PC's firmware leaves it
};

}  // namespace ringside::vmm::kvm
