// Where the kernel's text is not ours to touch: bytes that the kernel rewrites itself, and
// instructions whose faults it looks up by address. Read from its own tables:
//   struct jump_entry        { s32 code, target; long key; }  16 bytes, code relative to itself
//   struct static_call_site  { s32 addr, key; }                8 bytes, addr relative to itself
//   struct exception_table_entry { s32 insn, fixup, data; }   12 bytes, insn relative to itself
// (x86-64: jump labels since 4.19, static calls since 5.10, exception table since 5.7... data
// names the handler). Used by Kernel, for vmlinux and for each module.
// A part that a kernel has but that cannot be found or read is an error: nothing may be probed as
// if it were not there. Hostile input: entries that do not point into text are left out (init text
// is freed). Fire context: no.
#pragma once

#include <optional>
#include <span>
#include <string_view>
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

/// What lies between two symbols of vmlinux. A kernel that has the symbol `shown_by` has it: so a
/// kernel too old for it is told from one whose symbol table says less than it should.
struct BoundedPart {
  std::string_view begin, end, shown_by;
  std::string_view what;  // for messages
};

// Since 2.6.37, 5.10 and always; the functions that serve them are never configured away alone.
inline constexpr BoundedPart kJumpLabels{"__start___jump_table", "__stop___jump_table",
                                         "arch_jump_label_transform", "jump labels"};
inline constexpr BoundedPart kStaticCalls{"__start_static_call_sites", "__stop_static_call_sites",
                                          "__static_call_update", "static calls"};
inline constexpr BoundedPart kExceptionTable{"__start___ex_table", "__stop___ex_table",
                                             "search_exception_tables", "exception table"};

/// Where the part lies; empty when this kernel has none.
/// Error (Unsupported): it has one, but its symbols do not say where.
Result<std::optional<Kernel::AddressRange>> find_part(const SymbolTable& symbols,
                                                      const BoundedPart& part);

/// Init text is freed once the kernel has booted; before that it is text like any other.
enum class InitText : std::uint8_t { Forbidden, Allowed };

/// Ranges of vmlinux text that must not carry an int3, in order; errors as above.
Result<std::vector<Kernel::AddressRange>> forbidden_ranges(const SymbolTable& symbols,
                                                           InitText init = InitText::Forbidden);

}  // namespace ringside::guest_linux
