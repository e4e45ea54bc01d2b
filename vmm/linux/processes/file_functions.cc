#include "vmm/linux/processes/file_functions.h"

#include <elf.h>

#include <algorithm>
#include <utility>

namespace ringside::guest_linux {
FileFunctions FileFunctions::read(const FilePages& file) {
  FileFunctions found;
  const auto elf = FileElf::read(file);
  if (!elf) return found;
  for (const Elf64_Phdr& each : elf->segments()) {
    if ((each.p_flags & PF_X) != 0) found.text_.push_back({each.p_offset, each.p_filesz});
  }
  found.is_of_go_ = elf->section(".gopclntab") != nullptr;
  for (const Elf64_Shdr* const table : elf->symbol_tables()) {
    if (!found.take(FileSymbols::read(file, *elf, *table), *elf)) continue;
    found.source_ = table->sh_type == SHT_SYMTAB ? Source::Symbols : Source::DynamicSymbols;
    break;
  }
  return found;
}

/// False where it names no function.
bool FileFunctions::take(FileSymbols table, const FileElf& elf) {
  functions_.clear();
  for (const Elf64_Sym& symbol : table.symbols) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const auto name = table.name_of(symbol);
    const auto offset = elf.offset_of(symbol.st_value, PF_X);
    if (name.empty() || !offset || !std::ranges::all_of(name, is_probe_character)) continue;
    functions_.push_back({name, *offset, symbol.st_size});
  }
  names_ = std::move(table.names);  // which the functions' names are in
  is_whole_ = table.is_whole;
  std::ranges::stable_sort(functions_, {}, &FileFunction::offset);
  return !functions_.empty();
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
  auto after = std::ranges::upper_bound(functions_, offset, {}, &FileFunction::offset);
  for (unsigned n = 0; n < kMostLookedAt && after != functions_.begin(); ++n) {
    const FileFunction& one = *--after;
    if (best != nullptr && one.offset != best->offset) break;
    if (one.size != 0 && offset - one.offset >= one.size) continue;
    if (best == nullptr || rank_of(one) < rank_of(*best)) best = &one;
  }
  return best;
}

bool FileFunctions::is_text(std::uint64_t offset) const {
  return std::ranges::any_of(
      text_, [offset](const Text& each) { return offset - each.offset < each.bytes; });
}

}  // namespace ringside::guest_linux
