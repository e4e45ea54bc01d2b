// The notes of a dump that hold vCPUs' registers: one of each kind a vCPU, in order.
//   NT_PRSTATUS      "CORE": struct elf_prstatus of x86-64, registers at 112 in the order of
//                    user_regs_struct (arch/x86/include/asm/user_64.h)
//   "QEMU", type 0   QEMUCPUState of QEMU's target/i386/arch_dump.c, version 1, with the control
//                    registers
// ELF cores and compressed dumps have the same ones. Used to read and to write them.
#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

/// More than these no machine has.
inline constexpr std::size_t kMaxVcpus = 8192, kMaxNoteBytes = 64 << 20;

struct NotedVcpus {
  std::vector<Registers> registers;  // empty: the notes say nothing of vCPUs that is understood
  /// Of all vCPUs the control registers and segment bases are known, which NT_PRSTATUS lacks.
  bool has_control_registers = false;
};

/// Collects the vCPUs of any number of runs of notes. The bytes may be anything: what is no note
/// ends its run.
class NoteReader {
 public:
  void read(std::span<const std::byte> notes);
  NotedVcpus vcpus() &&;

 private:
  void take(std::uint32_t type, std::string_view name, std::span<const std::byte> bytes);

  std::vector<Registers> by_status_, by_qemu_;
};

}  // namespace ringside::vmm::core_notes
