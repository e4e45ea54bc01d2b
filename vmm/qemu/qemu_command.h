// Makes QEMU's command line of the configuration and the descriptors that QEMU inherits.
// Pure. Used by start_qemu. Does not: look at the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vmm/guest_config.h"
#include "vmm/guest_memory.h"
#include "vmm/qemu/start_qemu.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm {

enum class Accelerator : std::uint8_t { Tcg, Kvm };

/// QEMU's ends of the connections to us: open descriptors that the QEMU process inherits.
struct QemuDescriptors {
  int ram = -1;  // the memory file
  int monitor = -1, gdb = -1;
  int console = -1, control = -1, output = -1;  // the guest's ttyS0, ttyS1, ttyS2
};

/// RAM that the kernel command line below keeps the guest from using, for the shim.
inline constexpr GuestMemory::Extent kReservedMemory{GuestPhys(0x600'0000), 16 << 20};

/// How QEMU's `pc` machine places `size` bytes of RAM: from 3.5 GiB on it leaves only 3 GiB below
/// the PCI hole and puts the rest at 4 GiB (QEMU 7.2 and 10.0, hw/i386/pc_piix.c).
std::vector<RamPiece> pc_ram(std::uint64_t size);

/// Argument 0 is config.program. The machine starts stopped; the gdbstub lets it go.
std::vector<std::string> qemu_arguments(const GuestConfig& guest, const QemuConfig& config,
                                        Accelerator accelerator, const QemuDescriptors& fds);

}  // namespace ringside::vmm
