#include "vmm/linux/stacks/load_stack_tables.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

namespace {

/// A copy of [at, at + size); empty when it is not all there.
std::vector<std::byte> copy(const GuestReader& reader, GuestVirt at, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  if (!reader.read(at, bytes)) bytes.clear();
  return bytes;
}

/// Adds each of the texts that one table describes. False when there is no room for the table:
/// frames of those texts are walked by frame pointers.
bool add_table(const GuestReader& reader, StackTables& tables,
               std::span<const Kernel::AddressRange> texts, GuestVirt addresses, GuestVirt entries,
               std::uint64_t count, ModuleBudget& budget) {
  const bool fits = ModuleBudget::take(budget.orc_entries, count);
  const std::uint64_t bounded = fits ? count : 0;
  const auto address_bytes = copy(reader, addresses, bounded * kOrcAddressBytes);
  const auto entry_bytes = copy(reader, entries, bounded * kOrcEntryBytes);
  for (const auto& text : texts) tables.add(text, {addresses, address_bytes}, entry_bytes);
  return fits;
}

/// Empty where symbols do not tell of it.
Kernel::AddressRange init_text(const SymbolTable& symbols) {
  const Symbol* const begin = symbols.find("_sinittext", "vmlinux");
  const Symbol* const end = symbols.find("_einittext", "vmlinux");
  if (begin == nullptr || end == nullptr) return {};
  return {begin->address, end->address};
}

void add_vmlinux(const GuestReader& reader, Kernel& kernel, StackTables& tables,
                 ModuleBudget& budget) {
  const SymbolTable& symbols = kernel.symbols();
  const Module& vmlinux = symbols.modules()[0];
  // Init text is freed when the kernel has booted, but the first idle task returns into it for
  // ever.
  const std::array texts{Kernel::AddressRange::of(vmlinux.text_base, vmlinux.text_size),
                         init_text(symbols)};
  const auto symbol = [&](std::string_view name) { return symbols.find(name, "vmlinux"); };
  const Symbol* addresses = symbol("__start_orc_unwind_ip");
  const Symbol* stop = symbol("__stop_orc_unwind_ip");
  const Symbol* entries = symbol("__start_orc_unwind");
  if (addresses == nullptr || stop == nullptr || entries == nullptr ||
      stop->address <= addresses->address) {
    for (const auto& text : texts) tables.add(text, {}, {});
    return;
  }
  const std::uint64_t count = stop->address.offset_from(addresses->address) / kOrcAddressBytes;
  if (!add_table(reader, tables, texts, addresses->address, entries->address, count, budget)) {
    kernel.note_omission("vmlinux: its unwinding table is too large, so stacks may be short");
  }
}

/// Adds a module's table, of which struct module tells.
bool add_module(const GuestReader& reader, const OrcLayout& layout, GuestVirt structure,
                const Kernel::AddressRange& text, StackTables& tables, ModuleBudget& budget) {
  const auto word = [&](std::optional<std::uint32_t> offset) -> std::uint64_t {
    if (!offset) return 0;
    return load_field<std::uint64_t>(reader, structure, *offset).value_or(0);
  };
  const std::uint64_t count = word(layout.count) & UINT32_MAX;
  return add_table(reader, tables, {&text, 1}, GuestVirt(word(layout.addresses)),
                   GuestVirt(word(layout.entries)), count, budget);
}

void add_modules(const GuestReader& reader, Kernel& kernel, const OrcLayout& layout,
                 StackTables& tables, ModuleBudget& budget) {
  const Symbol* list = kernel.symbols().find("modules", "vmlinux");
  if (!layout.module || list == nullptr) return;
  const auto heads = list_modules(reader, *layout.module, list->address);
  if (!heads) return;
  for (const ModuleHead& head : *heads) {
    const auto text = Kernel::AddressRange::of(head.text_base, head.text_size);
    const bool fits = add_module(reader, layout, head.address, text, tables, budget);
    if (!fits) {
      kernel.note_omission("module " + head.name +
                           ": its unwinding table is too large, so stacks may be short");
    }
  }
}

}  // namespace

OrcLayout OrcLayout::from(const TypeGraph& types) {
  return {ModuleLayout::from(types), offset_of(types, "module", {"arch", "num_orcs"}),
          offset_of(types, "module", {"arch", "orc_unwind_ip"}),
          offset_of(types, "module", {"arch", "orc_unwind"})};
}

void put_module(StackTables& tables, const GuestReader& reader, const OrcLayout& layout,
                GuestVirt structure, const Kernel::AddressRange& text) {
  tables.erase(text);
  ModuleBudget budget;
  budget.orc_entries -= std::min<std::uint64_t>(budget.orc_entries, tables.entry_count());
  (void)add_module(reader, layout, structure, text, tables, budget);  // else by frame pointers
}

StackTables load_stack_tables(const GuestReader& reader, Kernel& kernel, const OrcLayout& layout) {
  StackTables tables;
  ModuleBudget budget;
  if (!kernel.symbols().modules().empty()) add_vmlinux(reader, kernel, tables, budget);
  add_modules(reader, kernel, layout, tables, budget);
  return tables;
}

}  // namespace ringside::guest_linux
