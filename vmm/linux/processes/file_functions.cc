#include "vmm/linux/processes/file_functions.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "vmm/linux/processes/user_elf.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostSegments = 64, kMostSections = 256;
constexpr std::uint64_t kMostSymbols = 1 << 20, kMostStrings = 64 << 20;
constexpr std::size_t kLongestFunctionName = 4096;

/// Objects that are one after the other in the file; fewer where not all are in memory.
template <class T>
std::vector<T> read_all(const FilePages& file, std::uint64_t offset, std::size_t count) {
  std::vector<T> found(count);
  const std::size_t bytes = file.read(offset, std::as_writable_bytes(std::span(found)));
  found.resize(bytes / sizeof(T));
  return found;
}

std::optional<Elf64_Ehdr> header_of(const FilePages& file) {
  const auto found = read_all<Elf64_Ehdr>(file, 0, 1);
  if (found.empty()) return std::nullopt;
  const Elf64_Ehdr& header = found.front();
  const bool is_ours = is_elf64(header) && header.e_machine == EM_X86_64;
  return is_ours ? std::optional(header) : std::nullopt;
}

/// `names`: which of them has their names.
bool has_section(const FilePages& file, std::span<const Elf64_Shdr> sections, std::size_t names,
                 std::string_view wanted) {
  constexpr std::uint64_t kMostNames = 64 << 10;
  if (names >= sections.size()) return false;
  const std::uint64_t bytes = std::min(sections[names].sh_size, kMostNames);
  const auto text = read_all<char>(file, sections[names].sh_offset, bytes);
  return std::ranges::any_of(sections, [&](const Elf64_Shdr& each) {
    if (each.sh_name >= text.size()) return false;
    const auto rest = std::string_view(text.data(), text.size()).substr(each.sh_name);
    return rest.substr(0, rest.find('\0')) == wanted;
  });
}

bool prints(char c) {
  return c > ' ' && c < 0x7f && c != '`' && c != ':';
}

}  // namespace

FileFunctions FileFunctions::read(const FilePages& file) {
  FileFunctions found;
  if (!found.read_segments(file)) return found;
  for (const Table& table : found.tables_in(file)) {
    if (!found.read_table(file, table)) continue;
    found.source_ = table.source;
    break;
  }
  return found;
}

bool FileFunctions::read_segments(const FilePages& file) {
  const auto header = header_of(file);
  if (!header) return false;
  const std::size_t count = std::min<std::size_t>(header->e_phnum, kMostSegments);
  for (const Elf64_Phdr& each : read_all<Elf64_Phdr>(file, header->e_phoff, count)) {
    if (each.p_type != PT_LOAD || (each.p_flags & PF_X) == 0) continue;
    const bool fits = each.p_offset <= file.size() && each.p_filesz <= file.size() - each.p_offset;
    if (fits) text_.push_back({each.p_offset, each.p_filesz, each.p_vaddr});
  }
  return !text_.empty();
}

/// The one with more functions first.
std::vector<FileFunctions::Table> FileFunctions::tables_in(const FilePages& file) {
  const auto header = header_of(file);
  std::vector<Table> tables;
  if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return tables;
  const auto sections = read_all<Elf64_Shdr>(file, header->e_shoff,
                                             std::min<std::size_t>(header->e_shnum, kMostSections));
  is_of_go_ = has_section(file, sections, header->e_shstrndx, ".gopclntab");
  for (const Elf64_Shdr& each : sections) {
    if (each.sh_type != SHT_SYMTAB && each.sh_type != SHT_DYNSYM) continue;
    if (each.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[each.sh_link];
    const bool is_all = each.sh_type == SHT_SYMTAB;
    const Table table{is_all ? Source::Symbols : Source::DynamicSymbols, each.sh_offset,
                      each.sh_size, strings.sh_offset, strings.sh_size};
    tables.insert(is_all ? tables.begin() : tables.end(), table);
  }
  return tables;
}

/// False where none of it is in memory.
bool FileFunctions::read_table(const FilePages& file, const Table& table) {
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
    const auto offset = offset_of(symbol.st_value);
    if (!offset || length == 0 || length == rest.npos) continue;
    const auto name = rest.substr(0, length);
    if (std::ranges::all_of(name, prints)) functions_.push_back({name, *offset, symbol.st_size});
  }
  std::ranges::stable_sort(functions_, {}, &FileFunction::offset);
  return !functions_.empty();
}

std::optional<std::uint64_t> FileFunctions::offset_of(std::uint64_t address) const {
  for (const Segment& each : text_) {
    const std::uint64_t distance = address - each.address;
    if (distance < each.bytes) return each.offset + distance;
  }
  return std::nullopt;
}

bool FileFunctions::is_text(std::uint64_t offset) const {
  return std::ranges::any_of(
      text_, [offset](const Segment& each) { return offset - each.offset < each.bytes; });
}

}  // namespace ringside::guest_linux
