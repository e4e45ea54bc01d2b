// Where Linux and its compiled code keep things: registers in struct pt_regs, arguments of system
// calls and of functions, the kernel's own image. It is the same in every version.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "vmm/arch/x86_64/registers.h"
#include "vmm/base/address.h"

namespace ringside::arch {

/// struct pt_regs, where Linux keeps the registers of the code that it interrupted, word for word:
/// r15 first, ss last. ptrace and signal frames show it to user programs. Table: registers.def.
using SavedRegisters = std::array<std::uint64_t, 21>;

/// The number of the system call, which no register keeps.
inline constexpr std::size_t kSavedNumber = 15;  // orig_ax
inline constexpr std::string_view kSavedNumberName = "orig_ax";

/// Which word of SavedRegisters a register is in.
struct SavedWord {
  Register which = nullptr;
  std::string_view member;  // its name in struct pt_regs
  std::size_t word = 0;
};
inline constexpr std::array kSavedWords = {
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) SavedWord{&Registers::field, #saved, w},
#define ARCH_SEGMENT(field, D, n, saved, w, gdb, b, kvm) SavedWord{&Registers::field, #saved, w},
#include "vmm/arch/x86_64/registers.def"
};
static_assert(kSavedWords.size() + 1 == std::tuple_size_v<SavedRegisters>, "and orig_ax");

/// Where `which` is saved; for a register that is in kSavedWords.
constexpr const SavedWord& saved_word(Register which) {
  for (const SavedWord& saved : kSavedWords) {
    if (saved.which == which) return saved;
  }
  return kSavedWords.front();
}

/// The registers that the 6 arguments of a system call are in, and that of its number and result
/// (entry_SYSCALL_64 in arch/x86/entry/entry_64.S).
inline constexpr std::array<Register, 6> kSystemCallArguments = {&Registers::rdi, &Registers::rsi,
                                                                 &Registers::rdx, &Registers::r10,
                                                                 &Registers::r8,  &Registers::r9};
inline constexpr Register kSystemCallResult = &Registers::rax;

inline SavedRegisters save(const Registers& r) {
  SavedRegisters words{};
  for (const SavedWord& saved : kSavedWords) words[saved.word] = r.*saved.which;
  return words;
}

/// Fills only the registers that struct pt_regs has. Only the low 16 bits of a segment register
/// count: the CPU pushes no more, and FRED stores other data above them.
inline Registers unsave(const SavedRegisters& words) {
  Registers r;
  for (const SavedWord& saved : kSavedWords) r.*saved.which = words[saved.word];
  r.cs &= 0xffff;
  r.ss &= 0xffff;
  return r;
}

/// A signal frame has the registers of the code that it has interrupted. These of its words are
/// side by side (struct sigcontext_64 in arch/x86/include/uapi/asm/sigcontext.h, since 4.6): the
/// stack pointer, the next instruction, flags, and the segments, which are the same for all 64-bit
/// code.
inline constexpr std::uint64_t kSignalSegments = 0x002b'0000'0000'0033;
inline constexpr std::size_t kSignalStackPointer = 3;  // so many words before the segments

/// The calling convention of compiled code (System V AMD64 ABI 3.2.2 and 3.2.3): integers and
/// pointers, in their order; further ones lie on the stack.
inline constexpr std::array<Register, 6> kArgumentRegisters = {&Registers::rdi, &Registers::rsi,
                                                               &Registers::rdx, &Registers::rcx,
                                                               &Registers::r8,  &Registers::r9};
inline constexpr Register kReturnRegister = &Registers::rax;

/// At a function's first instruction the stack pointer leads to the return address; the arguments
/// that are in no register follow it, a word each.
inline constexpr std::uint32_t kStackWord = 8;
inline constexpr std::uint32_t kFirstStackArgument = kStackWord;

/// A frame pointer points to this: the caller's frame pointer, then the return address.
struct FrameRecord {
  std::uint64_t frame_pointer, return_address;
};

/// Registers by their numbers in DWARF (System V AMD64 ABI, figure 3.36). The last one stands for
/// the return address.
inline constexpr std::array<Register, 17> kByDwarf = {
    &Registers::rax, &Registers::rdx, &Registers::rcx, &Registers::rbx, &Registers::rsi,
    &Registers::rdi, &Registers::rbp, &Registers::rsp, &Registers::r8,  &Registers::r9,
    &Registers::r10, &Registers::r11, &Registers::r12, &Registers::r13, &Registers::r14,
    &Registers::r15, &Registers::rip};
inline constexpr unsigned kDwarfFramePointer = 6, kDwarfStackPointer = 7, kDwarfReturnAddress = 16;

/// The code that a signal handler returns to, also where the C library gives it no unwind table:
/// rt_sigreturn is system call 15 ("mov $15, %rax; syscall").
inline constexpr std::array<std::uint8_t, 9> kSignalReturn = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
                                                              0x00, 0x00, 0x0f, 0x05};
/// At that place the stack pointer leads to struct ucontext (arch/x86/include/uapi/asm/ucontext.h
/// and sigcontext.h; the same in every version), which has the interrupted registers from this
/// offset on, a word each, in this order.
inline constexpr std::uint64_t kSignalContext = 40;
inline constexpr std::array<std::uint8_t, 17> kSignalDwarfNumbers = {
    8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};

/// Where Linux maps its own image, and after it its modules: the top of every address space
/// (arch/x86/include/asm/page_64_types.h).
inline constexpr GuestVirt kKernelImage{0xffff'ffff'8000'0000};  // __START_KERNEL_map
/// KERNEL_IMAGE_SIZE: modules begin there. The smaller one is that without CONFIG_RANDOMIZE_BASE.
inline constexpr std::uint64_t kKernelImageSize = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kSmallKernelImageSize = std::uint64_t{512} << 20;

}  // namespace ringside::arch
