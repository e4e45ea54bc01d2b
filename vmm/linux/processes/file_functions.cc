#include "vmm/linux/processes/file_functions.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "vmm/base/printable.h"

namespace ringside::guest_linux {
namespace {

using Source = FileFunctions::Source;

std::string_view section_of(Source source) {
  return source == Source::Symbols ? ".symtab" : ".dynsym";
}

}  // namespace

FileFunctions FileFunctions::read(const FileBytes& file, HostFiles* host, std::string_view path,
                                  HostFiles::Servers servers) {
  FileFunctions found;
  const auto elf = FileElf::read(file);
  if (!elf) {
    found.searched_ = "it is no program or library for x86-64, or its first page is not in memory";
    return found;
  }
  for (const Elf64_Phdr& each : elf->segments()) {
    if ((each.p_flags & PF_X) != 0) {
      found.text_.push_back({each.p_offset, each.p_filesz, each.p_vaddr});
    }
  }
  found.is_fixed_ = elf->is_fixed();
  found.is_of_go_ = elf->section(".gopclntab") != nullptr;
  found.table_ = best_in(file, *elf, *elf);
  if (found.source() == Source::None && !elf->sections().empty() && elf->symbol_tables().empty()) {
    found.table_.is_whole = true;
    found.searched_ = "it is stripped of symbols";
  } else if (found.source() == Source::None) {
    found.searched_ = elf->sections().empty() ? "its section headers are not in the page cache"
                                              : "no functions in the page cache";
  } else {
    const std::size_t count = found.all().size();
    found.searched_ = fmt::format("{} function{} by {} in the page cache{}", grouped(count),
                                  count == 1 ? "" : "s", section_of(found.source()),
                                  found.is_whole() ? "" : ", which has a part of it");
  }
  if (host != nullptr && host->any() && !found.has_all())
    found.ask_host({file, *elf, path, servers}, *host);
  return found;
}

/// Addresses in its own tables are those in the guest's file, but not the offsets.
void FileFunctions::ask_host(const HostFiles::Wanted& wanted, HostFiles& host) {
  const std::string others = host.visit(wanted, [&](const HostFiles::Copy& copy) {
    is_of_go_ = is_of_go_ || copy.elf.section(".gopclntab") != nullptr;
    Table table = best_in(copy.file, copy.elf, wanted.elf);
    searched_ += table.source == Source::None
                     ? fmt::format(", none by {}", copy.file.name())
                     : fmt::format(", {} by {} of {}", grouped(table.functions.size()),
                                   section_of(table.source), copy.file.name());
    const bool is_better = table.functions.size() > all().size() ||
                           (table.is_whole && table.functions.size() == all().size());
    if (is_better) table_ = std::move(table);
    return has_all();
  });
  if (!has_all()) searched_ += others;
}

/// The first table that names functions.
FileFunctions::Table FileFunctions::best_in(const FileBytes& file, const FileElf& elf,
                                            const FileElf& in_guest) {
  for (const Elf64_Shdr* const each : elf.symbol_tables()) {
    Table table = functions_in(FileSymbols::read(file, elf, *each), in_guest);
    if (table.functions.empty()) continue;
    table.source = each->sh_type == SHT_SYMTAB ? Source::Symbols : Source::DynamicSymbols;
    return table;
  }
  return {};
}

FileFunctions::Table FileFunctions::functions_in(FileSymbols symbols, const FileElf& in_guest) {
  Table table;
  for (const Elf64_Sym& symbol : symbols.symbols) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const auto name = symbols.name_of(symbol);
    const auto offset = in_guest.offset_of(symbol.st_value, PF_X);
    if (name.empty() || !offset || !std::ranges::all_of(name, is_probe_character)) continue;
    table.functions.push_back({name, *offset, symbol.st_size});
  }
  table.names = std::move(symbols.names);
  table.is_whole = symbols.is_whole;
  std::ranges::stable_sort(table.functions, {}, &FileFunction::offset);
  return table;
}

namespace {

std::pair<std::size_t, std::size_t> rank_of(const FileFunction& function) {
  const std::size_t underscores = function.name.find_first_not_of('_');
  return {std::min(underscores, function.name.size()), function.name.size()};
}

}  // namespace

/// Functions do not lie in each other, but for parts that have symbols of their own: so the last
/// ones that begin before the byte are looked at, a few.
const FileFunction* FileFunctions::at(std::uint64_t offset) const {
  constexpr unsigned kMostLookedAt = 64;
  const FileFunction* best = nullptr;
  auto after = std::ranges::upper_bound(table_.functions, offset, {}, &FileFunction::offset);
  for (unsigned n = 0; n < kMostLookedAt && after != table_.functions.begin(); ++n) {
    const FileFunction& one = *--after;
    if (best != nullptr && one.offset != best->offset) break;
    if (one.size != 0 && offset - one.offset >= one.size) continue;
    if (best == nullptr || rank_of(one) < rank_of(*best)) best = &one;
  }
  return best;
}

const FileFunctions::Text* FileFunctions::text_at(std::uint64_t offset) const {
  const auto found = std::ranges::find_if(
      text_, [offset](const Text& each) { return offset - each.offset < each.bytes; });
  return found == text_.end() ? nullptr : &*found;
}

std::optional<GuestVirt> FileFunctions::address_of(std::uint64_t offset) const {
  const Text* const text = text_at(offset);
  if (text == nullptr) return std::nullopt;
  return GuestVirt(text->address).wrapping_add(offset - text->offset);
}

}  // namespace ringside::guest_linux
