// In this file, top to bottom: the tables, copying those of a guest.
#include "vmm/linux/stacks/stack_tables.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/bytes.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
namespace {

using Base = OrcEntry::Base;
using Kind = OrcEntry::Kind;

/// The frame that the kernel assumes where it knows nothing: push %rbp; mov %rsp,%rbp.
constexpr OrcEntry kFramePointer{
    .sp_offset = 16, .bp_offset = -16, .sp = Base::Bp, .bp = Base::PreviousSp, .kind = Kind::Call};

}  // namespace

void StackTables::add(Kernel::AddressRange text, const ImageView& addresses,
                      std::span<const std::byte> entries) {
  if (text.end <= text.begin || text.end.offset_from(text.begin) > UINT32_MAX) return;
  Section& section = *sections_.emplace(section_after(text.begin));
  section.text = text;
  const auto form = recognize_orc(entries);
  if (!form) return;
  struct Row {
    std::uint32_t offset;
    OrcEntry entry;
  };
  std::vector<Row> rows;
  const std::size_t count =
      std::min({entries.size() / kOrcEntryBytes, addresses.bytes.size() / kOrcAddressBytes,
                std::size_t{kMaxOrcEntries}});
  rows.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const auto place = static_cast<std::uint64_t>(
        std::int64_t{load_at<std::int32_t>(addresses.bytes, n * kOrcAddressBytes)});
    const GuestVirt pc = addresses.base.wrapping_add(n * kOrcAddressBytes + place);
    if (!text.contains(pc)) continue;  // init text, freed long ago
    rows.push_back(
        {static_cast<std::uint32_t>(pc.offset_from(text.begin)),
         decode_orc(entries.subspan(n * kOrcEntryBytes).first<kOrcEntryBytes>(), *form)});
  }
  // Of two entries for one pc the one that ends the function before it comes first, and find()
  // takes the last.
  const auto order = [](const Row& row) {
    return std::pair(row.offset, row.entry.kind != Kind::Undefined);
  };
  const auto before = [&](const Row& a, const Row& b) { return order(a) < order(b); };
  if (!std::is_sorted(rows.begin(), rows.end(), before)) {
    std::stable_sort(rows.begin(), rows.end(), before);
  }
  section.offsets.reserve(rows.size());
  section.entries.reserve(rows.size());
  for (const Row& row : rows) {
    section.offsets.push_back(row.offset);
    section.entries.push_back(row.entry);
  }
}

void StackTables::erase(const Kernel::AddressRange& text) {
  std::erase_if(sections_, [&](const Section& section) {
    return section.text.begin < text.end && text.begin < section.text.end;
  });
}

void StackTables::set_moved(std::vector<Moved> moved) {
  moved_ = std::move(moved);
  std::sort(moved_.begin(), moved_.end(),
            [](const Moved& a, const Moved& b) { return a.begin < b.begin; });
}

StackTables::Position StackTables::original(Position at, const GuestReader& stack) const {
  if (moved_.empty() || is_text(at.pc)) return at;
  const auto after =
      std::upper_bound(moved_.begin(), moved_.end(), at.pc,
                       [](std::uint64_t pc, const Moved& m) { return pc < m.begin.raw(); });
  if (after == moved_.begin()) return at;
  const Moved& moved = *std::prev(after);
  const std::uint64_t offset = at.pc - moved.begin.raw();
  if (offset >= moved.size) return at;
  if (moved.words == 0) {
    return {moved.original.wrapping_add(offset == 0 ? 0 : moved.length).raw(), at.sp};
  }
  const auto back = ringside::load<std::uint64_t>(stack, GuestVirt(at.sp));
  if (!back) return at;
  return {*back - moved.length, at.sp + sizeof(std::uint64_t) * moved.words};
}

std::size_t StackTables::entry_count() const {
  std::size_t count = 0;
  for (const Section& section : sections_) count += section.entries.size();
  return count;
}

std::vector<StackTables::Section>::const_iterator StackTables::section_after(GuestVirt pc) const {
  return std::ranges::upper_bound(sections_, pc, {},
                                  [](const Section& section) { return section.text.begin; });
}

const StackTables::Section* StackTables::section_of(std::uint64_t pc) const {
  const auto after = section_after(GuestVirt(pc));
  if (after == sections_.begin()) return nullptr;
  const Section& section = *std::prev(after);
  return section.text.contains(GuestVirt(pc)) ? &section : nullptr;
}

std::optional<OrcEntry> StackTables::find(std::uint64_t pc) const {
  const Section* section = section_of(pc);
  if (section == nullptr) return std::nullopt;
  if (section->offsets.empty()) return kFramePointer;
  const auto offset = static_cast<std::uint32_t>(pc - section->text.begin.raw());
  const auto after = std::upper_bound(section->offsets.begin(), section->offsets.end(), offset);
  if (after == section->offsets.begin()) return std::nullopt;
  return section->entries[static_cast<std::size_t>(after - section->offsets.begin()) - 1];
}

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
