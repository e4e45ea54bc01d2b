#include "vmm/linux/processes/dwarf_image.h"

#include <elfutils/libdw.h>
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "vmm/arch/x86_64/elf_header.h"
#include "vmm/base/numbers.h"

namespace ringside::guest_linux {
namespace {

constexpr std::array<std::string_view, 9> kDwarfSections = {
    ".debug_info",        ".debug_abbrev", ".debug_str",      ".debug_line_str", ".debug_addr",
    ".debug_str_offsets", ".debug_ranges", ".debug_rnglists", ".debug_types"};
constexpr std::uint64_t kZerosAfterSection = 64;
constexpr std::uint64_t kMostAltLink = 4096;
constexpr Elf64_Word kPackedByZstd = 2;  // ELFCOMPRESS_ZSTD, which <elf.h> of Debian 12 lacks

/// A section on its way from the file into the image.
struct DwarfPart {
  std::string_view name;
  const Elf64_Shdr* header = nullptr;  // in the file
  std::optional<Elf64_Chdr> packing{};
  std::uint64_t size = 0;    // unpacked
  std::uint64_t offset = 0;  // in the image
};

Result<DwarfPart> part_of(const FileBytes& file, std::string_view name, const Elf64_Shdr& header) {
  DwarfPart part{.name = name, .header = &header, .size = header.sh_size};
  if ((header.sh_flags & SHF_COMPRESSED) == 0) return part;
  const auto packing = read_all<Elf64_Chdr>(file, header.sh_offset, 1);
  if (packing.empty() || header.sh_size < sizeof(Elf64_Chdr)) {
    return fail(ErrorCode::NotFound, fmt::format("{} is not in memory", name));
  }
  part.packing = packing.front();
  part.size = part.packing->ch_size;
  return part;
}

/// The sections that the file has, with their places in the image.
Result<std::vector<DwarfPart>> parts_of(const FileBytes& file, const FileElf& elf,
                                        std::uint64_t most) {
  std::vector<DwarfPart> parts;
  std::uint64_t end = sizeof(Elf64_Ehdr), packed = 0;
  for (const std::string_view name : kDwarfSections) {
    const Elf64_Shdr* const header = elf.section(name);
    if (header == nullptr || header->sh_type == SHT_NOBITS || header->sh_size == 0) continue;
    DwarfPart part = TRY(part_of(file, name, *header));
    if (part.size > most - std::min(most, end) || header->sh_size > most - packed) {
      return fail(ErrorCode::Limit, fmt::format("its DWARF has more than {} MiB", most >> 20));
    }
    part.offset = end;
    packed += header->sh_size;
    end = round_up(end + part.size + kZerosAfterSection, 16);
    parts.push_back(part);
  }
  const auto has = [&parts](std::string_view name) {
    return std::ranges::find(parts, name, &DwarfPart::name) != parts.end();
  };
  if (!has(".debug_info") || !has(".debug_abbrev")) {
    return fail(ErrorCode::NotFound, "it has no DWARF (compile it with -g)");
  }
  return parts;
}

bool unpack_section(const Elf64_Chdr& packing, std::span<const std::byte> packed,
                    std::span<std::byte> out) {
  if (packing.ch_type == ELFCOMPRESS_ZLIB) {
    uLongf size = out.size();
    // SAFETY: zlib's bytes are unsigned char, which may alias.
    return uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(packed.data()), packed.size()) == Z_OK &&
           size == out.size();
  }
  return packing.ch_type == kPackedByZstd &&
         ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size()) == out.size();
}

Result<void> read_section(const FileBytes& file, const DwarfPart& part, std::span<std::byte> out) {
  const auto read = [&](std::span<std::byte> bytes) -> Result<void> {
    const std::size_t there = file.read(part.header->sh_offset, bytes);
    if (there == bytes.size()) return {};
    return fail(ErrorCode::NotFound, fmt::format("only {} of {} bytes of {} are in memory", there,
                                                 bytes.size(), part.name));
  };
  if (!part.packing) return read(out);
  std::vector<std::byte> packed(part.header->sh_size);
  TRY(read(packed));
  if (unpack_section(*part.packing, std::span(packed).subspan(sizeof(Elf64_Chdr)), out)) return {};
  return fail(ErrorCode::Invalid, fmt::format("{} cannot be unpacked", part.name));
}

template <class T>
void put_object(std::vector<std::byte>& image, std::uint64_t offset, const T& object) {
  std::memcpy(image.data() + offset, &object, sizeof object);
}

/// Writes the headers: the sections' names and headers begin at `names`, in room for them.
void write_headers(std::vector<std::byte>& image, std::span<const DwarfPart> parts,
                   std::uint64_t names) {
  std::string text(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  const auto add = [&](std::string_view name, Elf64_Word type, std::uint64_t at) -> Elf64_Shdr& {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(text.size());
    header.sh_type = type;
    header.sh_offset = at;
    header.sh_addralign = 1;
    text.append(name) += '\0';
    return headers.emplace_back(header);
  };
  for (const DwarfPart& part : parts) {
    add(part.name, SHT_PROGBITS, part.offset).sh_size = part.size;
  }
  Elf64_Shdr& last = add(".shstrtab", SHT_STRTAB, names);
  last.sh_size = text.size();
  Elf64_Ehdr header = arch::elf_header(ET_EXEC);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  header.e_shoff = round_up(names + text.size(), 16);
  image.resize(header.e_shoff + headers.size() * sizeof(Elf64_Shdr));
  put_object(image, 0, header);
  std::memcpy(image.data() + names, text.data(), text.size());
  std::memcpy(image.data() + header.e_shoff, headers.data(), headers.size() * sizeof(Elf64_Shdr));
}

}  // namespace

void DwarfImage::End::operator()(::Elf* elf) const {
  elf_end(elf);
}

void DwarfImage::End::operator()(::Dwarf* dwarf) const {
  dwarf_end(dwarf);
}

Result<DwarfImage> DwarfImage::build(const FileBytes& file, const FileElf& elf,
                                     std::uint64_t most) {
  const auto parts = TRY(parts_of(file, elf, most));
  const std::uint64_t end = parts.back().offset + parts.back().size + kZerosAfterSection;
  DwarfImage image;
  image.bytes_.reserve(end + 2048);
  image.bytes_.resize(end);
  for (const DwarfPart& part : parts) {
    TRY(read_section(file, part, std::span(image.bytes_).subspan(part.offset, part.size)));
    if (part.name == ".debug_info" || part.name == ".debug_types") image.unit_bytes_ += part.size;
  }
  write_headers(image.bytes_, parts, end);
  if (elf_version(EV_CURRENT) != EV_NONE) {
    // SAFETY: char may alias any bytes.
    auto* const bytes = reinterpret_cast<char*>(image.bytes_.data());
    image.elf_.reset(elf_memory(bytes, image.bytes_.size()));
  }
  if (image.elf_) image.dwarf_.reset(dwarf_begin_elf(image.elf_.get(), DWARF_C_READ, nullptr));
  if (image.dwarf_) return image;
  return fail(ErrorCode::Invalid, fmt::format("libdw: {}", dwarf_errmsg(-1)));
}

std::optional<SharedTypesLink> shared_types_link(const FileBytes& file, const FileElf& elf) {
  const Elf64_Shdr* const link = elf.section(".gnu_debugaltlink");
  if (link == nullptr || link->sh_size > kMostAltLink) return std::nullopt;
  const auto bytes = read_all<char>(file, link->sh_offset, link->sh_size);
  const std::string_view text(bytes.data(), bytes.size());
  const std::size_t name = text.find('\0');
  if (bytes.size() != link->sh_size || name == text.npos || name + 1 == text.size()) {
    return std::nullopt;
  }
  return SharedTypesLink{std::string(text.substr(0, name)), std::string(text.substr(name + 1))};
}

}  // namespace ringside::guest_linux
