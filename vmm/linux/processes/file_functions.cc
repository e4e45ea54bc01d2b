#include "vmm/linux/processes/file_functions.h"

#include <elf.h>

#include <algorithm>
#include <utility>

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kMostSymbols = 1 << 20, kMostStrings = 64 << 20;
constexpr std::size_t kLongestFunctionName = 4096;

bool prints(char c) {
  return c > ' ' && c < 0x7f && c != '`' && c != ':';
}

}  // namespace

FileFunctions FileFunctions::read(const FilePages& file) {
  FileFunctions found;
  const auto elf = FileElf::read(file);
  if (!elf) return found;
  for (const Elf64_Phdr& each : elf->segments()) {
    if ((each.p_flags & PF_X) != 0) found.text_.push_back({each.p_offset, each.p_filesz});
  }
  found.is_of_go_ = elf->section(".gopclntab") != nullptr;
  for (const Table& table : tables_in(*elf)) {
    if (!found.read_table(file, *elf, table)) continue;
    found.source_ = table.source;
    break;
  }
  return found;
}

/// The one with more functions first.
std::vector<FileFunctions::Table> FileFunctions::tables_in(const FileElf& elf) {
  std::vector<Table> tables;
  for (const Elf64_Shdr& each : elf.sections()) {
    if (each.sh_type != SHT_SYMTAB && each.sh_type != SHT_DYNSYM) continue;
    if (each.sh_link >= elf.sections().size()) continue;
    const Elf64_Shdr& strings = elf.sections()[each.sh_link];
    const bool is_all = each.sh_type == SHT_SYMTAB;
    const Table table{is_all ? Source::Symbols : Source::DynamicSymbols, each.sh_offset,
                      each.sh_size, strings.sh_offset, strings.sh_size};
    tables.insert(is_all ? tables.begin() : tables.end(), table);
  }
  return tables;
}

/// False where none of it is in memory.
bool FileFunctions::read_table(const FilePages& file, const FileElf& elf, const Table& table) {
  const std::uint64_t count = std::min(table.bytes / sizeof(Elf64_Sym), kMostSymbols);
  const auto symbols = read_all<Elf64_Sym>(file, table.offset, count);
  names_.resize(std::min(table.string_bytes, kMostStrings));
  names_.resize(file.read(table.strings, std::as_writable_bytes(std::span(names_))));
  is_whole_ = symbols.size() == count && names_.size() == table.string_bytes;
  functions_.clear();
  for (const Elf64_Sym& symbol : symbols) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names_.size()) {
      continue;
    }
    const auto rest =
        std::string_view(names_.data(), names_.size()).substr(symbol.st_name, kLongestFunctionName);
    const std::size_t length = rest.find('\0');
    const auto offset = elf.offset_of(symbol.st_value, PF_X);
    if (!offset || length == 0 || length == rest.npos) continue;
    const auto name = rest.substr(0, length);
    if (std::ranges::all_of(name, prints)) functions_.push_back({name, *offset, symbol.st_size});
  }
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
