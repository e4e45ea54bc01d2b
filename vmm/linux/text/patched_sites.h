// The places in the kernel's text that we must not change: bytes that the kernel rewrites itself,
// and instructions whose faults it looks up by address. From its own tables:
//   struct jump_entry        { s32 code, target; long key; }  16 bytes, code relative to itself
//   struct static_call_site  { s32 addr, key; }                8 bytes, addr relative to itself
//   struct exception_table_entry { s32 insn, fixup, data; }   12 bytes, insn relative to itself
// (x86-64: jump labels since 4.19, static calls since 5.10, exception table since 5.7... data
// names the handler). It is an error if the kernel has a table that cannot be found or read,
// because its places must not be probed.
// Used by Kernel, for vmlinux and for each module. Hostile input: entries that do not point into
// text are skipped (init text is freed).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/modules.h"

namespace ringside::guest_linux {

inline constexpr std::uint64_t kJumpEntryBytes = 16;
inline constexpr std::uint64_t kStaticCallSiteBytes = 8;
inline constexpr std::uint64_t kExceptionEntryBytes = 12;
/// A limit that no kernel comes near: 6.12 has 9,000 jump labels.
inline constexpr std::uint64_t kMaxTableEntries = 1 << 20;

/// The text that the entries must point into, and a reader of its bytes.
struct TextBounds {
  const GuestReader* reader;
  Kernel::AddressRange text;
};

/// Each appends the sites of one table. `table`: a copy of it at its own address; bytes after the
/// last whole entry are ignored.
void collect_jump_labels(const ImageView& table, const TextBounds& bounds,
                         std::vector<Kernel::PatchedSite>& sites);
void collect_static_calls(const ImageView& table, const TextBounds& bounds,
                          std::vector<Kernel::PatchedSite>& sites);
void collect_exceptions(const ImageView& table, const TextBounds& bounds,
                        std::vector<Kernel::PatchedSite>& sites);

/// The trampolines __SCT__name, whose jump the kernel rewrites.
void collect_static_call_trampolines(std::span<const Symbol> symbols, const TextBounds& bounds,
                                     std::vector<Kernel::PatchedSite>& sites);

/// Appends the places in the module's text that the kernel patches or looks up. False when one of
/// the module's tables cannot be read whole, or is more than `budget` has left: then nothing may be
/// written to its text.
[[nodiscard]] bool read_module_sites(const GuestReader& kernel, const ModuleLayout& layout,
                                     const ModuleHead& module,
                                     std::vector<Kernel::PatchedSite>& sites, ModuleBudget& budget);

/// A part of vmlinux between the symbols `begin` and `end`. A kernel with the symbol `shown_by` has
/// the part; this tells a kernel that is too old for it from one whose symbol table lacks its
/// bounds.
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

/// The addresses of the part; empty when this kernel has none. Unsupported when it has one, but no
/// symbols that tell where.
Result<std::optional<Kernel::AddressRange>> find_part(const SymbolTable& symbols,
                                                      const BoundedPart& part);

/// Whether init text counts as forbidden: it is freed once the kernel has booted.
enum class InitText : std::uint8_t { Forbidden, Allowed };

/// Ranges of vmlinux text that must not carry an int3, in order; errors as above.
Result<std::vector<Kernel::AddressRange>> forbidden_ranges(const SymbolTable& symbols,
                                                           InitText init = InitText::Forbidden);

}  // namespace ringside::guest_linux
