// The work of the device targets on their bytes, and their first inputs. The bytes are a script:
// what a guest does to one device's registers and to its own memory, and what the host does
// meanwhile. Every script that is cut short is a script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringside::fuzz {

using Bytes = std::vector<std::byte>;

/// The port devices but the serial one, on a bus: clock, keyboard controller, ACPI, reset, pvpanic.
void drive_ports(std::span<const std::byte> script);
/// A serial port, whose output's room and whose input the script says.
void drive_uart(std::span<const std::byte> script);
/// A virtio device with RAM of four pages in which everything lies, the rings included. A CHECK
/// fails when the interrupt line is not what InterruptStatus says, or a reset leaves something.
void drive_block(std::span<const std::byte> script);
void drive_console(std::span<const std::byte> script);
void drive_rng(std::span<const std::byte> script);

std::vector<Bytes> port_scripts();
std::vector<Bytes> uart_scripts();
/// For every virtio device: requests of each kind, by the book and not.
std::vector<Bytes> virtio_scripts();

}  // namespace ringside::fuzz
