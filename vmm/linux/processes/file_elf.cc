#include "vmm/linux/processes/file_elf.h"

#include <cstring>

#include "vmm/base/numbers.h"
#include "vmm/linux/processes/user_elf.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostSegments = 64, kMostSections = 256;
constexpr std::uint64_t kMostNames = 64 << 10;
constexpr std::uint64_t kMostSymbols = 1 << 20, kMostStrings = 64 << 20;
constexpr std::size_t kLongestSymbolName = 4096;  // with its end
constexpr std::uint64_t kMostBuildIdNotes = 64 << 10;
constexpr std::size_t kLongestBuildId = 64;

}  // namespace

std::optional<FileNote> take_note(std::string_view& rest, std::uint64_t alignment) {
  Elf64_Nhdr header{};
  if (rest.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, rest.data(), sizeof header);
  rest.remove_prefix(sizeof header);
  const auto take = [&](std::uint64_t size) {
    const auto part = rest.substr(0, size);
    rest.remove_prefix(std::min<std::uint64_t>(rest.size(), round_up(size, alignment)));
    return part;
  };
  const auto owner = take(header.n_namesz), text = take(header.n_descsz);
  if (text.size() != header.n_descsz) return std::nullopt;
  return FileNote{header.n_type, owner.substr(0, owner.find('\0')), text};
}

std::optional<FileElf> FileElf::read(const FileBytes& file) {
  const auto headers = read_all<Elf64_Ehdr>(file, 0, 1);
  if (headers.empty() || !is_elf64(headers.front())) return std::nullopt;
  if (headers.front().e_machine != EM_X86_64) return std::nullopt;
  return read(file, headers.front());
}

std::optional<FileElf> FileElf::read_shared_types(const FileBytes& file) {
  const auto headers = read_all<Elf64_Ehdr>(file, 0, 1);
  if (headers.empty()) return std::nullopt;
  const Elf64_Ehdr& header = headers.front();
  const bool is_one = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL &&
                      header.e_machine == EM_X86_64;
  return is_one ? std::optional(read(file, header)) : std::nullopt;
}

FileElf FileElf::read(const FileBytes& file, const Elf64_Ehdr& header) {
  FileElf found;
  found.is_fixed_ = header.e_type == ET_EXEC;
  found.segments_ = read_all<Elf64_Phdr>(file, header.e_phoff,
                                         std::min<std::size_t>(header.e_phnum, kMostSegments));
  const std::vector<Elf64_Phdr> all = found.segments_;
  const auto unwinds = std::ranges::find(all, Elf64_Word{PT_GNU_EH_FRAME}, &Elf64_Phdr::p_type);
  if (unwinds != all.end()) found.unwind_index_ = unwinds->p_vaddr;
  std::erase_if(found.segments_, [&file](const Elf64_Phdr& each) {
    return each.p_type != PT_LOAD || each.p_offset > file.size() ||
           each.p_filesz > file.size() - each.p_offset;
  });
  if (header.e_shentsize == sizeof(Elf64_Shdr)) {
    found.sections_ = read_all<Elf64_Shdr>(file, header.e_shoff,
                                           std::min<std::size_t>(header.e_shnum, kMostSections));
  }
  if (header.e_shstrndx < found.sections_.size()) {
    const Elf64_Shdr& names = found.sections_[header.e_shstrndx];
    found.names_ = read_all<char>(file, names.sh_offset, std::min(names.sh_size, kMostNames));
  }
  found.read_build_id(file, all);
  return found;
}

/// A file that has been split off for debuggers keeps the sections of its notes, but its program
/// headers may lead nowhere; of a file that is mapped only the segments are sure to be in memory.
void FileElf::read_build_id(const FileBytes& file, std::span<const Elf64_Phdr> headers) {
  for (const Elf64_Phdr& each : headers) {
    if (each.p_type == PT_NOTE) read_build_id_in(file, each.p_offset, each.p_filesz, each.p_align);
  }
  for (const Elf64_Shdr& each : sections_) {
    if (each.sh_type != SHT_NOTE) continue;
    read_build_id_in(file, each.sh_offset, each.sh_size, each.sh_addralign);
  }
}

void FileElf::read_build_id_in(const FileBytes& file, std::uint64_t offset, std::uint64_t size,
                               std::uint64_t alignment) {
  if (!build_id_.empty() || size > kMostBuildIdNotes) return;
  const auto bytes = read_all<char>(file, offset, size);
  hides_notes_ |= bytes.size() != size;
  std::string_view rest(bytes.data(), bytes.size());
  while (const auto note = take_note(rest, alignment == 8 ? 8 : 4)) {
    const bool is_it = note->type == NT_GNU_BUILD_ID && note->owner == ELF_NOTE_GNU;
    if (!is_it || note->text.empty() || note->text.size() > kLongestBuildId) continue;
    build_id_ = note->text;
    return;
  }
}

std::string_view FileElf::name_of(const Elf64_Shdr& section) const {
  if (section.sh_name >= names_.size()) return {};
  const auto rest = std::string_view(names_.data(), names_.size()).substr(section.sh_name);
  return rest.substr(0, rest.find('\0'));
}

const Elf64_Shdr* FileElf::section(std::string_view name) const {
  const auto found = std::ranges::find_if(
      sections_, [this, name](const Elf64_Shdr& each) { return name_of(each) == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> FileElf::offset_of(std::uint64_t address, Elf64_Word flags) const {
  for (const Elf64_Phdr& each : segments_) {
    const std::uint64_t distance = address - each.p_vaddr;
    if ((each.p_flags & flags) == flags && distance < each.p_filesz) {
      return each.p_offset + distance;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> FileElf::address_of(std::uint64_t offset, Elf64_Word flags) const {
  for (const Elf64_Phdr& each : segments_) {
    const std::uint64_t distance = offset - each.p_offset;
    if ((each.p_flags & flags) == flags && distance < each.p_filesz) {
      return each.p_vaddr + distance;
    }
  }
  return std::nullopt;
}

std::vector<const Elf64_Shdr*> FileElf::symbol_tables() const {
  std::vector<const Elf64_Shdr*> tables;
  for (const Elf64_Word type : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (const Elf64_Shdr& each : sections_) {
      if (each.sh_type == type && each.sh_link < sections_.size()) tables.push_back(&each);
    }
  }
  return tables;
}

FileSymbols FileSymbols::read(const FileBytes& file, const FileElf& elf, const Elf64_Shdr& table) {
  const Elf64_Shdr& strings = elf.sections()[table.sh_link];
  const std::uint64_t count = std::min(table.sh_size / sizeof(Elf64_Sym), kMostSymbols);
  FileSymbols found;
  found.symbols = read_all<Elf64_Sym>(file, table.sh_offset, count);
  found.names = read_all<char>(file, strings.sh_offset, std::min(strings.sh_size, kMostStrings));
  found.is_whole = found.symbols.size() == count && found.names.size() == strings.sh_size;
  return found;
}

std::string_view FileSymbols::name_of(const Elf64_Sym& symbol) const {
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size()) return {};
  const auto rest =
      std::string_view(names.data(), names.size()).substr(symbol.st_name, kLongestSymbolName);
  const std::size_t length = rest.find('\0');
  return length == rest.npos ? std::string_view() : rest.substr(0, length);
}

}  // namespace ringside::guest_linux
