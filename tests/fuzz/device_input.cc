// In this file: the port devices, then the serial port. The virtio devices are in virtio_input.cc.
#include "tests/fuzz/device_input.h"

#include <array>

#include "tests/fuzz/script.h"
#include "vmm/base/check.h"
#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/devices/acpi_pm.h"
#include "vmm/kvm/devices/bus.h"
#include "vmm/kvm/devices/cmos.h"
#include "vmm/kvm/devices/end_ports.h"
#include "vmm/kvm/devices/i8042.h"
#include "vmm/kvm/devices/testing/fakes.h"
#include "vmm/kvm/devices/uart16550.h"

namespace ringside::fuzz {
namespace {

using namespace vmm::kvm;
using U8 = std::uint8_t;

constexpr std::array<std::uint16_t, 6> kPlaces{kCmos,       kKeyboard, kPm1Event,
                                               kPm1Control, kReset,    kPvpanic};

std::size_t width(U8 code) {
  return std::size_t{1} << (code % 4);
}

}  // namespace

void drive_ports(std::span<const std::byte> bytes) {
  FakeLine sci;
  GuestEnd guest_end = running_guest();
  std::uint64_t now = 0;
  Cmos cmos([&now] { return static_cast<std::time_t>(now); });
  I8042 keyboard(guest_end);
  AcpiPm pm(sci, guest_end, [&now] { return now; });
  ResetControl reset(guest_end);
  Pvpanic pvpanic(guest_end);
  Bus bus;
  CHECK(bus.add(kCmos, Cmos::kPorts, cmos) && bus.add(kKeyboard, I8042::kPorts, keyboard));
  CHECK(bus.add(kPm1Event, AcpiPm::kPorts, pm) && bus.add(kReset, ResetControl::kPorts, reset));
  CHECK(bus.add(kPvpanic, Pvpanic::kPorts, pvpanic));

  FuzzScript script(bytes);
  std::array<std::byte, 8> data{};
  while (!script.at_end()) {
    const auto what = script.take<U8>();
    const auto place = script.take<U8>();
    const std::uint64_t port = kPlaces[place % kPlaces.size()] + place / kPlaces.size() % 16;
    const auto part = std::span(data).first(width(what / 4));
    switch (what % 4) {
      case 0: bus.read(port, part); break;
      case 1:
        std::ranges::copy(script.take_bytes(part.size()), part.begin());
        bus.write(port, part);
        break;
      case 2: pm.press_power_button(); break;
      default: now = script.take<std::uint64_t>() >> (place % 64); break;
    }
    const std::uint64_t events_now = read_from(pm, 0, 4);
    CHECK(sci.level() == ((events_now & (events_now >> 16) & 0xffff) != 0));
  }
  CHECK((read_from(keyboard, 4) & 2) == 0);
}

void drive_uart(std::span<const std::byte> bytes) {
  FakeLine line;
  std::size_t room = 0;
  unsigned rooms = 0;
  Uart16550 uart(
      line,
      [&room](std::span<const std::byte> output) {
        CHECK(!output.empty() && output.size() <= Uart16550::kFifo);
        const std::size_t taken = std::min(output.size(), room);
        room -= taken;
        return taken;
      },
      [&rooms] { ++rooms; });

  FuzzScript script(bytes);
  while (!script.at_end()) {
    const auto what = script.take<U8>();
    const std::uint64_t offset = what / 4 % Uart16550::kPorts;
    switch (what % 4) {
      case 0: read_from(uart, offset, std::min(width(what / 32), 8 - offset)); break;
      case 1:
        write_to(uart, offset, script.take<std::uint32_t>(),
                 std::min(width(what / 32), 8 - offset));
        break;
      case 2: {
        const std::vector<std::byte> input(script.take<std::uint16_t>());
        CHECK(uart.receive(input) <= Uart16550::kQueue);
        break;
      }
      default:
        room = what / 4;
        uart.output_ready();
        break;
    }
  }
  const bool level = line.level();
  CHECK(level == ((read_from(uart, 2) & 1) == 0));
}

std::vector<Bytes> port_scripts() {
  ScriptWriter clock, ends;
  const auto at = [](std::size_t place, unsigned offset) {
    return static_cast<U8>(place + offset * kPlaces.size());
  };
  for (U8 index = 0; index < 0x40; ++index) clock.put(U8{1}, at(0, 0), index, U8{0}, at(0, 1));
  clock.put(U8{3}, U8{20}, std::uint64_t{UINT64_MAX}, U8{0}, at(0, 1));
  for (const U8 command : {0x20, 0x60, 0xa9, 0xaa, 0xab, 0xd0, 0xd1, 0xd3, 0xd4, 0xfe}) {
    ends.put(U8{1}, at(1, 4), command, U8{1}, at(1, 0), U8{0x5a}, U8{0}, at(1, 4), U8{0}, at(1, 0));
  }
  ends.put(U8{1 + 4 * 1}, at(2, 2), std::uint16_t{0x100}, U8{2}, U8{0});
  ends.put(U8{1 + 4 * 1}, at(2, 0), std::uint16_t{0x100}, U8{0 + 4 * 2}, at(2, 8));
  ends.put(U8{1 + 4 * 1}, at(3, 0), std::uint16_t{0x3400});
  ends.put(U8{1}, at(4, 0), U8{6}, U8{0}, at(5, 0), U8{1}, at(5, 0), U8{1});
  return {clock.bytes(), ends.bytes()};
}

std::vector<Bytes> uart_scripts() {
  const auto in = [](unsigned offset) { return static_cast<U8>(offset * 4); };
  const auto out = [](unsigned offset) { return static_cast<U8>(offset * 4 + 1); };
  ScriptWriter probe, talk;
  for (const unsigned value : {0x00, 0x0f, 0xff}) {
    probe.put(out(1), std::uint32_t{value}, in(1), out(4), std::uint32_t{0x1a}, in(6), in(5));
    probe.put(out(2), std::uint32_t{value}, in(2), out(3), std::uint32_t{value}, in(0), in(3));
    probe.put(out(0), std::uint32_t{value}, in(0), in(2), in(2), in(2), in(2));
  }
  talk.put(out(2), std::uint32_t{0xc1}, out(1), std::uint32_t{0x0f}, U8{3 + 4 * 40});
  for (unsigned i = 0; i < 60; ++i) talk.put(out(0), std::uint32_t{i}, in(5), in(2));
  talk.put(U8{2}, std::uint16_t{5000}, in(0), in(2), in(0), U8{3 + 4 * 60}, out(2),
           std::uint32_t{7});
  for (unsigned i = 0; i < 60; ++i) talk.put(in(0), in(2));
  return {probe.bytes(), talk.bytes()};
}

}  // namespace ringside::fuzz
