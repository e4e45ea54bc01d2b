// The kernel's own symbol table (kernel/kallsyms.c, written by scripts/kallsyms.c), decoded from a
// copy of the kernel's image. All layouts are little-endian:
//   num_syms        u32; names - 8 before 7.0, names - 4 since
//   names           per symbol: length, then that many token numbers; since 6.1 a length with bit 7
//                   set takes a second byte: (b0 & 0x7f) | b1 << 7
//   markers         offset in names of every 256th symbol (u32 since 4.20, before u64)
//   token_table     256 NUL-ended strings; token_index 256 u16 offsets into it. The first
//                   character of an expanded name is nm's type letter
//   addresses       u64 addresses (before 6.11, optional), or u32 offsets with relative_base:
//                   base + offset; "absolute percpu" (x86 SMP before 6.15): offset >= 0 is the
//                   address itself, else base - 1 - offset; place-relative (since 7.0): the
//                   address of the offset itself plus the offset
// The form of a table is found by decoding _stext in each form, never by the kernel's version.
// Used by discover_kernel(), and by code that needs a few symbols before that. Hostile input:
// bounded, never trusted; bytes of a name that do not print become '?'.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/kernel_memory.h"

namespace ringside::guest_linux {

enum class AddressEncoding : std::uint8_t {
  Absolute64,      // kallsyms_addresses
  BaseRelative,    // relative_base + u32
  AbsolutePercpu,  // see above
  PlaceRelative,   // &offsets[i] + s32
};

/// The addresses of the tables, from VMCOREINFO (6.0 and later, and backports) or by their shape. A
/// kernel has either `offsets` or `addresses64`; some have no `relative_base`.
struct KallsymsKeys {
  GuestVirt names, token_table, token_index;
  std::uint32_t count = 0;
  std::optional<GuestVirt> offsets, addresses64, relative_base;
};

struct Kallsyms {
  std::shared_ptr<const std::string> names;  // the symbols' names view into it
  std::vector<Symbol> symbols;               // in the table's order, __pfx_ ones included
  AddressEncoding encoding = AddressEncoding::BaseRelative;
};

/// A table with fewer or more symbols is no kernel's.
inline constexpr std::uint32_t kMinSymbols = 64;
inline constexpr std::uint32_t kMaxSymbols = 1 << 22;

/// Decodes the tables that `keys` names inside `image`. Invalid when they leave the image, are
/// malformed, or no address encoding puts `_stext` at `stext`.
Result<Kallsyms> decode_kallsyms(const ImageView& image, const KallsymsKeys& keys, GuestVirt stext);

/// Finds the tables in a copy of the whole image by their shape and decodes them, for kernels whose
/// VMCOREINFO does not name them (before 6.0). Errors as decode_kallsyms().
Result<Kallsyms> scan_for_kallsyms(const ImageView& image, GuestVirt stext);

/// Reads a kernel's own symbol table out of its image. VMCOREINFO tells the table's place (6.0 and
/// later); otherwise the table is found by its form.
Result<Kallsyms> read_kallsyms(const KernelMemory& memory);

}  // namespace ringside::guest_linux
