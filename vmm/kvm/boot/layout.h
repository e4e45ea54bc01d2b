// The layout of a machine of ours: guest-physical addresses, ports, interrupt lines. The one place
// for such numbers: ACPI tables, boot parameters and the board all read it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/guest_memory.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm::kvm {

// RAM: from 0 up to the hole; the rest from 4 GiB on.
inline constexpr std::uint64_t kHoleStart = 0xc000'0000;  // 3 GiB
inline constexpr std::uint64_t kHighRam = 0x1'0000'0000;  // 4 GiB

// The first megabyte.
inline constexpr std::uint64_t kBootGdt = 0x500;
inline constexpr std::uint64_t kBootIdt = 0x520;
inline constexpr std::uint64_t kStartInfo = 0x6000;   // PVH's hvm_start_info and what it points to
inline constexpr std::uint64_t kZeroPage = 0x7000;    // Linux's struct boot_params
inline constexpr std::uint64_t kBootStack = 0x8ff0;   // grows down
inline constexpr std::uint64_t kBootTables = 0x9000;  // identity map of the first 4 GiB: 6 pages
inline constexpr std::uint64_t kCommandLine = 0x20000;  // up to kCommandLineSize with its NUL
inline constexpr std::uint64_t kCommandLineSize = 0x1000;
inline constexpr std::uint64_t kLowRamEnd = 0x9fc00;   // the EBDA's place
inline constexpr std::uint64_t kAcpiTables = 0xe0000;  // RSDP first; up to 1 MiB
inline constexpr std::uint64_t kAcpiEnd = 0x10'0000;
inline constexpr std::uint64_t kKernelStart = 0x10'0000;

/// For the shim: e820 calls it reserved. The same place as in the qemu machine.
inline constexpr GuestMemory::Extent kShimMemory{GuestPhys(0x600'0000), 16 << 20};

// The hole.
inline constexpr std::uint64_t kVirtioBase = 0xd000'0000;  // one page each, in order
inline constexpr std::uint64_t kVirtioStride = 0x1000;
inline constexpr std::uint64_t kVirtioSize = 0x200;
inline constexpr std::uint32_t kVirtioFirstGsi = 16;
inline constexpr unsigned kMostVirtio = 8;  // GSI 16 to 23
inline constexpr std::uint64_t kIoApic = 0xfec0'0000;
inline constexpr std::uint64_t kLocalApic = 0xfee0'0000;
inline constexpr std::uint64_t kIdentityMapPage = 0xfffb'c000;  // KVM_SET_IDENTITY_MAP_ADDR
inline constexpr std::uint64_t kTssPages = 0xfffb'd000;         // KVM_SET_TSS_ADDR: three pages

// Ports.
struct SerialPort {
  std::uint16_t port;
  std::uint32_t gsi;
};
/// ttyS0 console, ttyS1 requests, ttyS2 output (images/README.md).
inline constexpr std::array<SerialPort, 3> kSerialPorts{{{0x3f8, 4}, {0x2f8, 3}, {0x3e8, 4}}};
inline constexpr std::uint16_t kCmos = 0x70;         // 2 ports
inline constexpr std::uint16_t kKeyboard = 0x60;     // 0x60 and 0x64
inline constexpr std::uint16_t kPvpanic = 0x505;     // 1 port
inline constexpr std::uint16_t kPm1Event = 0x600;    // ACPI PM1a_EVT_BLK, 4 ports
inline constexpr std::uint16_t kPm1Control = 0x604;  // ACPI PM1a_CNT_BLK, 2 ports
inline constexpr std::uint16_t kPmTimer = 0x608;     // ACPI PM_TMR_BLK, 4 ports
inline constexpr std::uint32_t kSci = 9;             // GSI of ACPI's interrupt
inline constexpr std::uint16_t kReset = 0xcf9;       // reset control register, also in the FADT

/// The pieces of RAM of a machine with `size` bytes; they follow each other in one memory file.
std::vector<RamPiece> place_ram(std::uint64_t size);

/// kShimMemory where `ram_size` bytes of RAM hold all of it; empty in a smaller machine.
std::optional<GuestMemory::Extent> shim_memory(std::uint64_t ram_size);

enum class E820Type : std::uint32_t { Ram = 1, Reserved = 2 };
struct E820Entry {
  std::uint64_t base = 0, size = 0;
  E820Type type = E820Type::Ram;
};
/// The memory map that the guest gets, in ascending order: RAM without the shim's part; the EBDA's
/// place, the ACPI tables and the shim's part as reserved.
std::vector<E820Entry> memory_map(std::uint64_t ram_size);

}  // namespace ringside::vmm::kvm
