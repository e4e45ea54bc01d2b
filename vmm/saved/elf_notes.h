// The notes of an ELF core that hold vCPUs' registers, as bytes; elf_core.h says what they are.
// Used to read and to write cores.
#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "vmm/arch/arch.h"

namespace ringside::vmm::core_notes {

/// struct elf_prstatus of x86-64 (include/linux/elfcore.h).
inline constexpr std::size_t kPrStatusBytes = 336, kPrStatusPid = 32, kPrStatusRegisters = 112;

/// The words of struct user_regs_struct (arch/x86/include/asm/user_64.h): those of pt_regs, then
/// the bases of fs and gs and four selectors. Null for what arch::Registers does not have.
inline constexpr std::array<arch::Register, 27> kUserRegisters = [] {
  std::array<arch::Register, 27> words{};
  for (const arch::SavedWord& saved : arch::kSavedWords) words.at(saved.word) = saved.which;
  words[21] = &Registers::fs_base;
  words[22] = &Registers::gs_base;
  return words;
}();

/// struct QEMUCPUState: u32 version, u32 size, 16 registers, rip, rflags, ten segments, cr0 to cr4,
/// kernel_gs_base (which older versions lack).
inline constexpr std::uint32_t kQemuVersion = 1;
inline constexpr std::size_t kQemuRegisters = 8;
inline constexpr std::array<arch::Register, 18> kQemuOrder{
    &Registers::rax, &Registers::rbx, &Registers::rcx,   &Registers::rdx, &Registers::rsi,
    &Registers::rdi, &Registers::rsp, &Registers::rbp,   &Registers::r8,  &Registers::r9,
    &Registers::r10, &Registers::r11, &Registers::r12,   &Registers::r13, &Registers::r14,
    &Registers::r15, &Registers::rip, &Registers::rflags};
/// A segment: u32 selector, limit, flags, padding; u64 base.
inline constexpr std::size_t kSegmentBytes = 24, kSegmentLimit = 4, kSegmentFlags = 8,
                             kSegmentBase = 16;
/// The flags are a descriptor's upper half: granularity, size (L or D/B), present, level, type.
inline constexpr std::uint32_t kLongFlag = 1 << 21, kLongCode = 0x00a0'9b00,
                               kPlainCode = 0x00c0'9b00, kPlainData = 0x00c0'9300;
inline constexpr unsigned kSegmentLevelShift = 13;
inline constexpr std::size_t kQemuSegments = kQemuRegisters + kQemuOrder.size() * 8;
enum QemuSegment : std::size_t { Cs, Ds, Es, Fs, Gs, Ss, Ldt, Tr, Gdt, Idt, kQemuSegmentCount };
inline constexpr std::size_t kQemuControl = kQemuSegments + kQemuSegmentCount * kSegmentBytes;
inline constexpr std::size_t kQemuKernelGs = kQemuControl + std::size_t{5} * 8;
inline constexpr std::size_t kQemuBytes = kQemuKernelGs + 8;

}  // namespace ringside::vmm::core_notes
