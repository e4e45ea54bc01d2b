// In this file, top to bottom: the header, segments and sections, the PVH note, symbols, reading.
#include "vmm/kernel_file/elf_file.h"

#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kLongestName = 512;
constexpr std::uint32_t kPhys32Entry = 18;
constexpr std::array kXen{'X', 'e', 'n', '\0'};

tl::unexpected<Error> bad(std::string why) {
  return fail(ErrorCode::Invalid, std::move(why));
}

tl::unexpected<Error> cut_short(std::span<const std::byte> bytes) {
  return bad(fmt::format("the ELF file is cut short after {} bytes: copy it again", bytes.size()));
}

std::shared_ptr<Elf> open_elf(std::span<const std::byte> bytes) {
  if (elf_version(EV_CURRENT) == EV_NONE) return nullptr;
  // SAFETY: char may alias any bytes. libelf takes a pointer to what may change, and changes
  // nothing in a file that is not updated.
  auto* image = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  return {elf_memory(image, bytes.size()), [](Elf* elf) { elf_end(elf); }};
}

}  // namespace

Result<ElfFile> ElfFile::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return bad("it is no ELF file");
  }
  ElfFile file(bytes, open_elf(bytes));
  GElf_Ehdr header;
  if (!file.elf_ || gelf_getehdr(file.elf_.get(), &header) == nullptr) return cut_short(bytes);
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) return bad("it is a big-endian ELF file");
  file.entry_ = header.e_entry;
  TRY(file.read_segments());
  file.read_sections();
  return file;
}

std::span<const std::byte> ElfFile::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
  return bytes_.subspan(offset, size);
}

Result<void> ElfFile::read_segments() {
  GElf_Ehdr header;
  std::size_t count = 0;
  gelf_getehdr(elf_.get(), &header);
  if (header.e_phnum > kMaxSegments) {
    return bad(fmt::format("{} program headers are too many", header.e_phnum));
  }
  if (header.e_phnum == 0) return bad("no segment to load: is it a kernel?");
  if (header.e_phentsize != gelf_fsize(elf_.get(), ELF_T_PHDR, 1, EV_CURRENT)) {
    return bad("its program headers have a size of their own");
  }
  if (elf_getphdrnum(elf_.get(), &count) != 0) return cut_short(bytes_);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr program;
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &program) == nullptr) {
      return cut_short(bytes_);
    }
    if (program.p_type != PT_LOAD && program.p_type != PT_NOTE) continue;
    const auto bytes = part(program.p_offset, program.p_filesz);
    if (bytes.size() != program.p_filesz) return cut_short(bytes_);
    if (program.p_type == PT_NOTE || program.p_memsz == 0) continue;
    if (program.p_filesz > program.p_memsz) {
      return bad("a segment is larger in the file than in memory");
    }
    if (program.p_memsz > UINT64_MAX - program.p_vaddr) return bad("an ELF segment wraps around");
    segments_.push_back(
        {program.p_vaddr, program.p_paddr, program.p_memsz, bytes, (program.p_flags & PF_X) != 0});
  }
  if (segments_.empty()) return bad("no segment to load: is it a kernel?");
  return {};
}

void ElfFile::read_sections() {
  std::size_t count = 0, names = 0;
  if (elf_getshdrnum(elf_.get(), &count) != 0 || count > kMaxSections) return;
  const bool named = elf_getshdrstrndx(elf_.get(), &names) == 0;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Shdr header;
    if (gelf_getshdr(elf_getscn(elf_.get(), i), &header) == nullptr) return;
    Section& s = sections_.emplace_back();
    s.type = header.sh_type;
    s.flags = header.sh_flags;
    s.address = header.sh_addr;
    s.size = header.sh_size;
    if (s.type != SHT_NOBITS) s.bytes = part(header.sh_offset, header.sh_size);
    if (named) s.name = string_at(names, header.sh_name);
  }
}

std::optional<std::uint32_t> ElfFile::pvh_entry() const {
  std::size_t count = 0;
  if (!elf_ || elf_getphdrnum(elf_.get(), &count) != 0) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr program;
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &program) == nullptr) break;
    const auto bytes = part(program.p_offset, program.p_filesz);
    if (program.p_type != PT_NOTE || bytes.empty()) continue;
    Elf_Data* data =
        elf_getdata_rawchunk(elf_.get(), static_cast<std::int64_t>(program.p_offset), bytes.size(),
                             program.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    if (data == nullptr) continue;
    GElf_Nhdr note;
    std::size_t name = 0, value = 0;
    for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &value)) != 0;) {
      // The value has 4 or 8 bytes; the address is below 4 GiB in either.
      if (note.n_type == kPhys32Entry && note.n_namesz == kXen.size() && note.n_descsz >= 4 &&
          std::memcmp(bytes.data() + name, kXen.data(), kXen.size()) == 0) {
        return load_within<std::uint32_t>(bytes, value);
      }
    }
  }
  return std::nullopt;
}

const ElfFile::Section* ElfFile::section(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::string_view ElfFile::string_at(std::size_t section, std::size_t offset) const {
  const char* text = elf_strptr(elf_.get(), section, offset);  // a NUL follows in the section
  if (text == nullptr) return {};
  const std::size_t size = ::strnlen(text, kLongestName);
  return size == kLongestName ? std::string_view() : std::string_view(text, size);
}

char ElfFile::letter(std::uint8_t info, std::uint16_t section) const {
  char type = 'd';
  if (section < sections_.size()) {
    const Section& in = sections_[section];
    if ((in.flags & SHF_EXECINSTR) != 0) {
      type = 't';
    } else if (in.type == SHT_NOBITS) {
      type = 'b';
    } else if ((in.flags & SHF_WRITE) == 0) {
      type = 'r';
    }
  }
  // A label without a type may precede data or 16-bit code, so it does not count as a function.
  if (type == 't' && GELF_ST_TYPE(info) == STT_NOTYPE) return 'n';
  const unsigned binding = GELF_ST_BIND(info);
  if (binding == STB_WEAK) return type == 't' ? 'W' : 'V';
  const bool local = binding == STB_LOCAL;
  return local ? type : static_cast<char>(std::toupper(static_cast<unsigned char>(type)));
}

std::vector<ElfFile::Symbol> ElfFile::symbols() const {
  const auto table = std::find_if(sections_.begin(), sections_.end(), [](const Section& section) {
    return section.type == SHT_SYMTAB;
  });
  if (table == sections_.end()) return {};
  Elf_Scn* section = elf_getscn(elf_.get(), static_cast<std::size_t>(table - sections_.begin()));
  GElf_Shdr header;
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || gelf_getshdr(section, &header) == nullptr) return {};
  const std::size_t count =
      std::min(data->d_size / gelf_fsize(elf_.get(), ELF_T_SYM, 1, EV_CURRENT), kMaxSymbols);
  std::vector<Symbol> symbols;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    if (GELF_ST_TYPE(symbol.st_info) > STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
    if (symbol.st_shndx == SHN_ABS) continue;  // a number that the assembler knew, no place
    const std::string_view name = string_at(header.sh_link, symbol.st_name);
    if (name.empty() || name.starts_with(".L")) continue;
    symbols.push_back(
        {name, symbol.st_value, symbol.st_size, letter(symbol.st_info, symbol.st_shndx)});
  }
  return symbols;
}

const ElfFile::Segment* ElfFile::segment_of(std::uint64_t at) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return at - segment.address < segment.size;  // huge below it
  });
  return found == segments_.end() ? nullptr : &*found;
}

Result<void, Fault> ElfFile::read(std::uint64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const Segment* segment = segment_of(at);
    if (segment == nullptr) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at});
    const std::uint64_t offset = at - segment->address;
    const std::size_t size = std::min<std::uint64_t>(out.size(), segment->size - offset);
    const std::size_t in_file = offset < segment->bytes.size()
                                    ? std::min<std::uint64_t>(size, segment->bytes.size() - offset)
                                    : 0;
    if (in_file != 0) std::memcpy(out.data(), segment->bytes.data() + offset, in_file);
    std::fill_n(out.data() + in_file, size - in_file, std::byte{0});
    out = out.subspan(size);
    at += size;
  }
  return {};
}

std::optional<std::span<const std::byte>> ElfFile::bytes_at(std::uint64_t at,
                                                            std::uint64_t size) const {
  const Segment* segment = segment_of(at);
  if (segment == nullptr) return std::nullopt;
  const std::uint64_t offset = at - segment->address;
  if (offset > segment->bytes.size() || size > segment->bytes.size() - offset) return std::nullopt;
  return segment->bytes.subspan(offset, size);
}

void ElfFile::forget_bytes() {
  bytes_ = {};
  elf_ = nullptr;
  sections_ = {};
  for (Segment& segment : segments_) segment.bytes = {};
}

std::optional<std::uint64_t> ElfFile::physical(std::uint64_t address) const {
  const Segment* segment = segment_of(address);
  if (segment == nullptr) return std::nullopt;
  return segment->physical + (address - segment->address);
}

}  // namespace ringside::vmm
