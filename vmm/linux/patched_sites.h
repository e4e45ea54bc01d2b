// Where the kernel's text is not ours to touch: bytes that the kernel rewrites itself, and
// instructions whose faults it looks up by address. Read from its own tables:
//   struct jump_entry        { s32 code, target; long key; }  16 bytes, code relative to itself
//   struct static_call_site  { s32 addr, key; }                8 bytes, addr relative to itself
//   struct exception_table_entry { s32 insn, fixup, data; }   12 bytes, insn relative to itself
// (x86-64: jump labels since 4.19, static calls since 5.10, exception table since 5.7... data
// names the handler). Used by Kernel, for vmlinux and for each module.
// Hostile input: entries that do not point into text are left out (init text is freed).
// Fire context: no.
#pragma once

#include <span>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

inline constexpr std::uint64_t kJumpEntryBytes = 16;
inline constexpr std::uint64_t kStaticCallSiteBytes = 8;
inline constexpr std::uint64_t kExceptionEntryBytes = 12;
/// More entries than this no kernel has; 6.12 has 9,000 jump labels.
inline constexpr std::uint64_t kMaxTableEntries = 1 << 20;

/// The text that the entries must point into, and a reader of its bytes.
struct TextBounds {
  const GuestReader* reader;
  Kernel::AddressRange text;
};

/// Each appends the sites of one table, given as a copy at its own address; a rest that is no whole
/// entry is ignored.
void collect_jump_labels(const ImageView& table, const TextBounds& bounds,
                         std::vector<Kernel::PatchedSite>& sites);
void collect_static_calls(const ImageView& table, const TextBounds& bounds,
                          std::vector<Kernel::PatchedSite>& sites);
void collect_exceptions(const ImageView& table, const TextBounds& bounds,
                        std::vector<Kernel::PatchedSite>& sites);

/// The trampolines __SCT__name, whose jump the kernel rewrites.
void collect_static_call_trampolines(std::span<const Symbol> symbols, const TextBounds& bounds,
                                     std::vector<Kernel::PatchedSite>& sites);

/// Init text is freed once the kernel has booted; before that it is text like any other.
enum class InitText : std::uint8_t { Forbidden, Allowed };

/// Ranges of vmlinux text that must not carry an int3, by the symbols that bound them; those that
/// this kernel does not have are left out.
std::vector<Kernel::AddressRange> forbidden_ranges(const SymbolTable& symbols,
                                                   InitText init = InitText::Forbidden);

}  // namespace ringside::guest_linux
