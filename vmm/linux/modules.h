// The kernel's module list: each loaded module's text, symbols, types and patched sites.
// Layouts come from the kernel's own types (struct module, mod_kallsyms, btf_module, btf), because
// they differ by version and configuration; Elf64_Sym is the ELF standard's.
// Used by Kernel. Hostile input: the list may be cyclic, endless or torn by a concurrent load;
// walks are bounded and whatever cannot be read is left out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

inline constexpr std::size_t kMaxModules = 4096;
inline constexpr std::uint32_t kMaxModuleSymbols = 1 << 20;

/// The memory that all modules together may take of ours: a hostile list of thousands of modules
/// that all name the same large table must not multiply it. All of Debian's modules take a tenth.
struct ModuleBudget {
  std::uint64_t symbols = 1 << 20;
  std::uint64_t name_bytes = 64 << 20;
  std::uint64_t sites = 1 << 20;
  std::uint64_t btf_bytes = 32 << 20;
  std::uint64_t orc_entries = 8 << 20;

  /// Takes `wanted` from `left`; false, and takes nothing, when there is less.
  static bool take(std::uint64_t& left, std::uint64_t wanted) {
    if (wanted > left) return false;
    left -= wanted;
    return true;
  }
};

/// Offsets in struct module and its companions, in bytes.
struct ModuleLayout {
  std::uint32_t list, name, state, kallsyms;
  std::uint32_t text_base, text_size;  // core_layout (4.5 to 6.3) or mem[MOD_TEXT] (since 6.4)
  bool text_size_is_64 = false;
  std::uint32_t symtab, num_symtab, strtab;
  std::optional<std::uint32_t> typetab;  // since 5.2
  struct Table {
    std::uint32_t pointer, count;
  };
  std::optional<Table> jump_labels, static_calls, exceptions;
  struct BtfList {
    std::uint32_t list, module, btf, data, data_size;
  };
  std::optional<BtfList> btf;

  /// Empty when the kernel's types do not describe its modules.
  static std::optional<ModuleLayout> from(const TypeGraph& types);
};

/// The facts that identify a module and are cheap to read, to see whether the list changed.
struct ModuleHead {
  GuestVirt address;  // of struct module
  std::string name;
  GuestVirt text_base;
  std::uint64_t text_size = 0;
  bool operator==(const ModuleHead&) const = default;
};

/// A module that is being loaded, whose init has not run yet, or one that is live. Invalid for what
/// cannot be one.
Result<ModuleHead> read_coming_module(const GuestReader& kernel, const ModuleLayout& layout,
                                      GuestVirt module);

struct ModuleSymbols {
  std::shared_ptr<const std::string> names;  // the symbols' names view into it
  std::vector<Symbol> symbols;               // in the module's own order
  bool left_out = false;                     // they were more than the budget has left
};

/// The modules that are loaded and live, in list order. Invalid when the list cannot be walked.
Result<std::vector<ModuleHead>> list_modules(const GuestReader& kernel, const ModuleLayout& layout,
                                             GuestVirt modules);

/// The module's symbols as /proc/kallsyms shows them, without names that are not printable. Empty
/// when they cannot be read, or are more than `budget` has left.
ModuleSymbols read_module_symbols(const GuestReader& kernel, const ModuleLayout& layout,
                                  const ModuleHead& module, ModuleBudget& budget);

/// The split BTF of a module.
struct ModuleBtf {
  GuestVirt module;                                     // its struct module
  std::shared_ptr<const std::vector<std::byte>> bytes;  // null: more than the budget has left
};
/// All that `btf_modules`, the kernel's list of that name, has.
std::vector<ModuleBtf> read_module_btf(const GuestReader& kernel, const ModuleLayout& layout,
                                       GuestVirt btf_modules, ModuleBudget& budget);

}  // namespace ringside::guest_linux
