// Program headers and notes of ELF kernels.
#include "vmm/kvm/boot/elf_image.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "vmm/base/bytes.h"
#include "vmm/kvm/boot/boot_data.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint32_t kPhys32Entry = 18;
constexpr unsigned kMostProgramHeaders = 256;  // a vmlinux has five
constexpr std::array kXen{'X', 'e', 'n', '\0'};

std::optional<std::span<const std::byte>> part(std::span<const std::byte> file, std::uint64_t at,
                                               std::uint64_t size) {
  if (at > file.size() || size > file.size() - at) return std::nullopt;
  return file.subspan(at, size);
}

/// The PVH entry point among the notes; each step goes forward by 12 bytes at least.
std::optional<std::uint32_t> find_pvh_entry(std::span<const std::byte> notes,
                                            std::uint64_t alignment) {
  const auto align = [&](std::uint64_t size) { return (size + alignment - 1) & ~(alignment - 1); };
  std::uint64_t at = 0;
  while (const auto note = load_within<Elf64_Nhdr>(notes, at)) {
    const std::uint64_t name = at + sizeof *note;
    const std::uint64_t value = at + align(sizeof *note + note->n_namesz);
    const bool xen = note->n_namesz == kXen.size() && name + kXen.size() <= notes.size() &&
                     std::memcmp(notes.data() + name, kXen.data(), kXen.size()) == 0;
    // 4 or 8 bytes; the address is below 4 GiB in either.
    if (xen && note->n_type == kPhys32Entry && note->n_descsz >= 4)
      return load_within<std::uint32_t>(notes, value);
    at = value + align(note->n_descsz);
  }
  return std::nullopt;
}

template <class Header, class ProgramHeader>
Result<ElfImage> read(std::span<const std::byte> file, std::string_view name) {
  const auto invalid = [&](std::string_view what) {
    return fail(ErrorCode::Invalid, fmt::format("{}: {}", name, what));
  };
  const auto cut_short = [&] {
    return invalid(
        fmt::format("the ELF file is cut short after {} bytes: copy it again", file.size()));
  };
  const auto header = load_within<Header>(file, 0);
  if (!header) return cut_short();
  if (header->e_phnum != 0 && header->e_phentsize != sizeof(ProgramHeader))
    return invalid("its program headers have a size of their own");
  if (header->e_phnum > kMostProgramHeaders)
    return invalid(fmt::format("{} program headers are too many", header->e_phnum));
  ElfImage image;
  image.entry = header->e_entry;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto program = load_within<ProgramHeader>(
        file, std::uint64_t{header->e_phoff} + std::uint64_t{i} * sizeof(ProgramHeader));
    if (!program) return cut_short();
    if (program->p_type != PT_LOAD && program->p_type != PT_NOTE) continue;
    const auto bytes = part(file, program->p_offset, program->p_filesz);
    if (!bytes) return cut_short();
    if (program->p_type == PT_NOTE) {
      if (!image.pvh_entry) image.pvh_entry = find_pvh_entry(*bytes, program->p_align == 8 ? 8 : 4);
      continue;
    }
    if (program->p_memsz == 0) continue;
    if (program->p_filesz > program->p_memsz)
      return invalid("a segment is larger in the file than in memory");
    image.segments.push_back({program->p_vaddr, program->p_paddr, program->p_memsz, *bytes});
  }
  if (image.segments.empty()) return invalid("no segment to load: is it a kernel?");
  return image;
}

std::uint64_t physical_entry(const ElfImage& image) {
  for (const ElfSegment& segment : image.segments) {
    const std::uint64_t offset = image.entry - segment.vaddr;  // huge when it lies below
    if (offset < segment.memory_size) return segment.paddr + offset;
  }
  return image.entry;
}

}  // namespace

KernelRoom ElfImage::room() const {
  KernelRoom room;
  for (const ElfSegment& segment : segments)
    room.pieces.push_back({GuestPhys(segment.paddr), segment.memory_size});
  return room;
}

Result<ElfImage> read_elf_image(std::span<const std::byte> file, std::string_view name) {
  const auto identity = load_within<std::array<unsigned char, EI_NIDENT>>(file, 0);
  const bool is_64 = identity && (*identity)[EI_CLASS] == ELFCLASS64;
  ElfImage image = is_64 ? TRY((read<Elf64_Ehdr, Elf64_Phdr>(file, name)))
                         : TRY((read<Elf32_Ehdr, Elf32_Phdr>(file, name)));
  image.entry = physical_entry(image);

  auto pieces = image.room().pieces;
  std::sort(pieces.begin(), pieces.end(),
            [](const auto& a, const auto& b) { return a.base < b.base; });
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (pieces[i + 1].base.raw() - pieces[i].base.raw() < pieces[i].size) {
      return fail(ErrorCode::Invalid,
                  fmt::format("{}: two segments overlap at {:#x}", name, pieces[i + 1].base.raw()));
    }
  }
  return image;
}

Result<void> check_entry(const ElfImage& image, std::uint64_t entry, std::string_view name) {
  for (const ElfSegment& segment : image.segments) {
    if (entry >= segment.paddr && entry - segment.paddr < segment.memory_size) return {};
  }
  return fail(ErrorCode::Invalid,
              fmt::format("{}: its entry point {:#x} lies in no segment", name, entry));
}

Result<void> load_segments(const ElfImage& image, GuestMemory& memory) {
  for (const ElfSegment& segment : image.segments)
    TRY(put(memory, segment.paddr, segment.bytes, "the kernel"));
  return {};
}

}  // namespace ringside::vmm::kvm
