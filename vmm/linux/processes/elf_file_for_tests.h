// An ELF file for tests, with text, and a symbol table of its functions; a fake guest has it in its
// page cache, or it is only bytes.
// Not linked into the product.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vmm/arch/x86_64/elf_header.h"
#include "vmm/linux/processes/file_bytes.h"
#include "vmm/linux/processes/file_functions.h"
#include "vmm/linux/processes/page_cache_fakes_for_tests.h"

namespace ringside::guest_linux::fakes {

class ElfFile {
 public:
  static constexpr std::uint64_t kLinkedAt = 0x400000;  // of the file's first byte

  /// So many bytes of text at this offset, both in whole pages.
  ElfFile(std::uint64_t text, std::uint64_t bytes) : text_(text), text_bytes_(bytes) {
    bytes_.resize(text + bytes);
  }

  std::byte& byte(std::uint64_t offset) { return bytes_.at(offset); }
  void add_function(std::string name, std::uint64_t offset, std::uint64_t size,
                    unsigned char type = STT_FUNC) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(names_.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
    symbol.st_shndx = 1;
    symbol.st_value = kLinkedAt + offset;
    symbol.st_size = size;
    symbols_.push_back(symbol);
    names_ += name + '\0';
  }
  /// A note of a static probe; addresses are offsets in the file, `semaphore` 0: none.
  void add_static_probe(std::string_view provider, std::string_view name,
                        std::string_view arguments, std::uint64_t offset,
                        std::uint64_t semaphore = 0, std::uint64_t base = 0) {
    std::string text;
    for (const std::uint64_t address :
         {kLinkedAt + offset, kLinkedAt + base, semaphore == 0 ? 0 : kLinkedAt + semaphore}) {
      text.append(reinterpret_cast<const char*>(&address), sizeof address);
    }
    for (const std::string_view each : {provider, name, arguments}) text.append(each) += '\0';
    add_note("stapsdt", 3, text);
  }
  void add_note(std::string_view owner, Elf64_Word type, std::string text) {
    const Elf64_Nhdr header{static_cast<Elf64_Word>(owner.size() + 1),
                            static_cast<Elf64_Word>(text.size()), type};
    const auto pad = [](std::string bytes) {
      bytes.resize((bytes.size() + 3) / 4 * 4);
      return bytes;
    };
    notes_.append(reinterpret_cast<const char*>(&header), sizeof header);
    notes_ += pad(std::string(owner) + '\0') + pad(std::move(text));
  }
  bool is_forgotten(std::uint64_t offset) const { return forgotten_.contains(offset / 4096); }
  void forget_page(std::uint64_t offset) { forgotten_.insert(offset / 4096); }

  /// As ReadFile.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const {
    std::size_t done = 0;
    while (done < out.size() && offset + done < bytes_.size() &&
           !forgotten_.contains((offset + done) / 4096)) {
      out[done] = bytes_[offset + done];
      ++done;
    }
    return done;
  }

  /// The whole file: headers, text, .symtab and .strtab, notes, their headers. A second segment, of
  /// as many bytes as `data` says, has the end of the text as data, too.
  std::vector<std::byte> encode() const {
    std::vector<std::byte> file = bytes_;
    const auto append = [&file](std::span<const std::byte> more) {
      const std::uint64_t at = file.size();
      file.insert(file.end(), more.begin(), more.end());
      return at;
    };
    Elf64_Shdr sections[6] = {};
    sections[1].sh_type = table_type;
    sections[1].sh_link = 2;
    sections[1].sh_offset = append(std::as_bytes(std::span(symbols_)));
    sections[1].sh_size = symbols_.size() * sizeof(Elf64_Sym);
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = append(std::as_bytes(std::span(names_)));
    sections[2].sh_size = names_.size();
    const std::string_view section_names("\0.note.stapsdt\0.stapsdt.base\0", 29);
    sections[3].sh_type = SHT_STRTAB;
    sections[3].sh_offset = append(std::as_bytes(std::span(section_names)));
    sections[3].sh_size = section_names.size();
    sections[4].sh_name = 1;
    sections[4].sh_type = SHT_NOTE;
    sections[4].sh_offset = append(std::as_bytes(std::span(notes_)));
    sections[4].sh_size = notes_.size();
    sections[5].sh_name = 15;
    sections[5].sh_type = SHT_PROGBITS;
    sections[5].sh_addr = kLinkedAt + probes_base;
    Elf64_Ehdr header = arch::elf_header(file_type);
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 4;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 6;
    header.e_shstrndx = 3;
    header.e_shoff = append(std::as_bytes(std::span(sections)));
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_X;
    segment.p_offset = text_;
    segment.p_vaddr = kLinkedAt + text_;
    segment.p_filesz = segment.p_memsz = text_bytes_;
    std::memcpy(file.data(), &header, sizeof header);
    std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
    segment.p_flags = PF_R | PF_W;
    segment.p_offset += text_bytes_ - data;
    segment.p_vaddr += text_bytes_ - data;
    segment.p_filesz = segment.p_memsz = data;
    std::memcpy(file.data() + sizeof header + sizeof segment, &segment, sizeof segment);
    segment.p_type = unwind_index == 0 ? PT_NULL : PT_GNU_EH_FRAME;
    segment.p_vaddr = kLinkedAt + unwind_index;
    std::memcpy(file.data() + sizeof header + 2 * sizeof segment, &segment, sizeof segment);
    if (!build_id.empty()) write_build_id(file);
    if (is_split_off) std::memset(file.data() + sizeof header, 0, 3 * sizeof segment);
    return file;
  }

  /// As they are read from a guest that has all of the file in memory.
  FileFunctions functions() const {
    PagedGuest guest;
    PageCacheWriter cache(guest);
    const PageCacheLayout layout = page_cache_layout();
    const GuestVirt inode(cache.whole(encode()));
    const auto pages = FilePages::of_inode(cache.memory(), guest, layout, inode);
    return pages ? FileFunctions::read(*pages) : FileFunctions();
  }

  Elf64_Half file_type = ET_DYN;
  Elf64_Word table_type = SHT_SYMTAB;
  std::uint64_t data = 0;          // bytes
  std::uint64_t unwind_index = 0;  // where .eh_frame_hdr is, as an offset in the file; 0: nowhere
  std::uint64_t probes_base = 0;   // where .stapsdt.base is, as an offset in the file
  std::string build_id;            // of at most 20 bytes; empty: none
  std::uint64_t build_id_at = 0x300;
  bool is_split_off = false;  // for debuggers: it loads nothing

 private:
  void write_build_id(std::vector<std::byte>& file) const {
    const Elf64_Nhdr note{4, static_cast<Elf64_Word>(build_id.size()), NT_GNU_BUILD_ID};
    Elf64_Phdr segment{};
    segment.p_type = PT_NOTE;
    segment.p_offset = build_id_at;
    segment.p_filesz = sizeof note + 4 + (build_id.size() + 3) / 4 * 4;
    segment.p_align = 4;
    std::memcpy(file.data() + sizeof(Elf64_Ehdr) + 3 * sizeof segment, &segment, sizeof segment);
    std::byte* const at = file.data() + build_id_at;
    std::memcpy(at, &note, sizeof note);
    std::memcpy(at + sizeof note, "GNU", 4);
    std::memcpy(at + sizeof note + 4, build_id.data(), build_id.size());
  }

  std::uint64_t text_, text_bytes_;
  std::vector<std::byte> bytes_;
  std::vector<Elf64_Sym> symbols_ = {{}};
  std::string names_ = std::string(1, '\0'), notes_;
  std::set<std::uint64_t> forgotten_;
};

/// The bytes of such a file, without the pages that it has forgotten.
class MemoryFile final : public FileBytes {
 public:
  explicit MemoryFile(const ElfFile& file) : bytes_(file.encode()) {
    for (std::uint64_t at = 0; at < bytes_.size(); at += 4096) {
      if (file.is_forgotten(at)) forgotten_.insert(at / 4096);
    }
  }
  explicit MemoryFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::size_t done = 0;
    while (done < out.size() && offset + done < bytes_.size() &&
           !forgotten_.contains((offset + done) / 4096)) {
      out[done] = bytes_[offset + done];
      ++done;
    }
    return done;
  }

 private:
  std::vector<std::byte> bytes_;
  std::set<std::uint64_t> forgotten_;
};

}  // namespace ringside::guest_linux::fakes
