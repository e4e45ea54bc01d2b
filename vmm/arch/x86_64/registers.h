// A snapshot of one x86-64 vCPU's registers, as named fields, and their numbers elsewhere. The
// table is registers.def. Values come from the guest: hostile.
// Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringside::arch {

struct Registers {
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) std::uint64_t field = 0;
#define ARCH_SEGMENT(field, D, n, saved, w, gdb, b, kvm) std::uint64_t field = 0;
#define ARCH_BASE(field, D, n, gdb, b, kvm) std::uint64_t field = 0;
#define ARCH_CONTROL(field, gdb, b, kvm) std::uint64_t field = 0;
#include "vmm/arch/x86_64/registers.def"

  bool in_user_mode() const {
    return (cs & 3) == 3;
  }
  bool operator==(const Registers&) const = default;
};

/// One of the registers; null where a numbering has a number for which there is none.
using Register = std::uint64_t Registers::*;

inline constexpr Register kStackPointer = &Registers::rsp;
inline constexpr Register kFramePointer = &Registers::rbp;
inline constexpr Register kProgramCounter = &Registers::rip;
/// One of them has the base of the CPU's per-cpu data: gs_base, or kernel_gs_base while gs_base is
/// the user's (swapgs).
inline constexpr std::array kPerCpuBases = {&Registers::gs_base, &Registers::kernel_gs_base};

namespace detail {
inline constexpr unsigned kNone = UINT32_MAX;

template <std::size_t kCount>
struct Numbering {
  std::array<Register, kCount> registers{};
  constexpr void set(unsigned number, Register which) {
    if (number != kNone) registers.at(number) = which;  // no number beyond the table compiles
  }
};
}  // namespace detail

/// By their numbers in instructions: 0 is rax, 1 is rcx... 15 is r15.
inline constexpr std::array<Register, 16> kByEncoding = [] {
  using detail::kNone;
  detail::Numbering<16> by;
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) by.set(code, &Registers::field);
#include "vmm/arch/x86_64/registers.def"
  return by.registers;
}();

/// Their names in the same order, as in assembly.
inline constexpr std::array<std::string_view, 16> kNamesByEncoding = [] {
  using detail::kNone;
  std::array<std::string_view, 16> names;
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) \
  if (code != kNone) names.at(code) = #field;
#include "vmm/arch/x86_64/registers.def"
  return names;
}();

/// By their indices in D's regs[] and uregs[]; null for what a trap does not keep.
inline constexpr std::array<Register, 28> kByDNumber = [] {
  detail::Numbering<28> by;
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) by.set(n, &Registers::field);
#define ARCH_SEGMENT(field, D, n, saved, w, gdb, b, kvm) by.set(n, &Registers::field);
#define ARCH_BASE(field, D, n, gdb, b, kvm) by.set(n, &Registers::field);
#define ARCH_UNKEPT(D, n) by.set(n, nullptr);
#include "vmm/arch/x86_64/registers.def"
  return by.registers;
}();

}  // namespace ringside::arch

namespace ringside {
using arch::Registers;  // every layer above speaks of them
}
