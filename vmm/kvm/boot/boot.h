// Loads a kernel: writes what its boot protocol asks for into RAM, and tells the registers that the
// first vCPU starts with. Pure but for the RAM it fills; knows no KVM.
//   bzImage      Linux's 64-bit boot protocol (Documentation/arch/x86/boot.rst, 2.12 and later)
//   PVH          ELF with a Xen note of type 18 (xen/include/public/arch-x86/hvm/start_info.h)
//   Multiboot    ELF with a Multiboot 1 header (Multiboot Specification 0.6.96)
//   plain ELF64  long mode, identity map of the first 4 GiB, rdi = the PVH start info,
//                rsi = Linux's boot_params
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {

enum class BootProtocol : std::uint8_t { BzImage, Pvh, Multiboot, Elf64 };

struct BootRequest {
  std::span<const std::byte> initrd;  // may be empty
  std::string command_line;
  std::uint64_t ram_size = 0;
  std::optional<GuestPhys> rsdp;  // of the ACPI tables
};

/// The state in which the first vCPU starts. Beside these registers: rflags 2, no interrupts, GDT
/// at kBootGdt (4 entries: code at 0x10, data at 0x18, both flat), an IDT without entries, all else
/// 0.
struct BootState {
  BootProtocol protocol = BootProtocol::Elf64;
  enum class Mode : std::uint8_t { Protected32, Long64 } mode = Mode::Long64;
  std::uint64_t entry = 0;
  std::uint64_t rax = 0, rbx = 0, rsi = 0, rdi = 0, rsp = 0;
  std::uint64_t cr3 = 0;  // Long64: kBootTables
  /// Whether the kernel may move itself. A bzImage does if it was built so and is not told nokaslr;
  /// an ELF image runs where it was linked, so its symbols are right as they are.
  bool may_relocate = false;
};

/// Loads the kernel, its initrd and its parameters into `memory`, which is all zero. Invalid (a bad
/// file, by name), Limit (no room in RAM, with how much is needed), Unsupported (the kernel asks
/// for something that we do not have).
Result<BootState> load_kernel(const KernelFile& kernel, const BootRequest& request,
                              GuestMemory& memory);

std::string_view name_of(BootProtocol protocol);

}  // namespace ringside::vmm::kvm
