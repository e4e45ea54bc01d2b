// The entries of Linux's ORC tables, which describe the stack frame at each piece of kernel text
// (arch/x86/include/asm/orc_types.h, Documentation/arch/x86/orc-unwinder.rst).
//   __start_orc_unwind_ip[]  s32: pc = address of the entry itself + value, sorted by pc
//   __start_orc_unwind[]     s16 sp_offset, s16 bp_offset, u16 flags; for a module both arrays are
//                            in struct module's arch.{orc_unwind_ip,orc_unwind,num_orcs}
//   flags   bits 0-3 sp register, 4-7 bp register; the rest differs by form (OrcForm):
//           4.14 to 6.2  type 8-9 {call, regs, partial regs}, end 10
//           6.3          type 8-9, signal 10, end 11
//           6.4 to 7.0   type 8-10 {undefined, end, call, regs, partial regs}, signal 11
//           since 7.1    the same with other numbers for registers
// The entries themselves tell the form of a table, never the kernel's version.
// Used by stack_tables.h, which keeps them, and stack_walk.h, which follows them.
// Fire context: the functions no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringside::guest_linux {

inline constexpr std::uint64_t kOrcEntryBytes = 6;
inline constexpr std::uint64_t kOrcAddressBytes = 4;
/// A limit that no kernel comes near: Debian's 6.12 has 700,000.
inline constexpr std::uint64_t kMaxOrcEntries = 8 << 20;

enum class OrcForm : std::uint8_t { Before63, In63, Since64, Since71 };

/// The layout of the frame at a piece of text; the same for every OrcForm.
struct OrcEntry {
  enum class Base : std::uint8_t {
    Undefined,
    PreviousSp,  // of bp only: the end of the frame
    Sp,
    Bp,
    SpIndirect,  // the word at sp, plus the offset
    BpIndirect,  // the word at bp plus the offset
    Ax,
    Dx,
    Di,
    R10,
    R13,
  };
  enum class Kind : std::uint8_t { Undefined, End, Call, Registers, PartialRegisters };
  std::int16_t sp_offset = 0, bp_offset = 0;
  Base sp = Base::Undefined, bp = Base::Undefined;
  Kind kind = Kind::Undefined;
  bool is_signal = false;  // the caller's frame was interrupted; it called nothing
};

/// The form in which most of the entries make sense; empty when there is none.
std::optional<OrcForm> recognize_orc(std::span<const std::byte> entries);
OrcEntry decode_orc(std::span<const std::byte, kOrcEntryBytes> bytes, OrcForm form);

}  // namespace ringside::guest_linux
