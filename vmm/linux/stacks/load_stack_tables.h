// Copies the ORC tables (stack_tables.h) of a running guest: vmlinux's, which lie between pairs of
// symbols, and a module's, which its struct module names (arch_module's orc_unwind_ip, orc_unwind
// and num_orcs). Hostile input: counts are bounded. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/modules.h"
#include "vmm/linux/stacks/stack_tables.h"

namespace ringside::guest_linux {

/// Where a module's tables are, by the kernel's own types.
struct OrcLayout {
  std::optional<ModuleLayout> module;
  std::optional<std::uint32_t> count, addresses, entries;

  static OrcLayout from(const TypeGraph& types);
};

/// The tables of the running kernel and of the modules that it has now. Those that are too large
/// are left out, and noted by the kernel (Kernel::note_omission).
StackTables load_stack_tables(const GuestReader& reader, Kernel& kernel, const OrcLayout& layout);
inline StackTables load_stack_tables(const GuestReader& reader, Kernel& kernel) {
  return load_stack_tables(reader, kernel, OrcLayout::from(kernel.types()));
}

/// Adds the table of a module that has come since then: text that lay there before is gone.
void put_module(StackTables& tables, const GuestReader& reader, const OrcLayout& layout,
                GuestVirt structure, const Kernel::AddressRange& text);

}  // namespace ringside::guest_linux
