// A fake guest whose one process has a stack to walk: images with unwind tables, mapped from files
// in the page cache.
// Not linked into the product.
#pragma once

#include <elf.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/arch/x86_64/elf_header.h"
#include "vmm/linux/processes/eh_frame_fakes_for_tests.h"
#include "vmm/linux/processes/page_cache_fakes_for_tests.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"
#include "vmm/linux/processes/user_unwind.h"

namespace ringside::guest_linux::fakes {

inline constexpr std::uint64_t kVdsoOffset = 0x20;  // in struct mm_struct: the kernel's copy

inline UserUnwindLayout user_unwind_layout() {
  UserUnwindLayout layout{process_layout(), page_cache_layout(), {}, {}, {}};
  layout.mm_vdso_image = static_cast<std::uint32_t>(kVdsoOffset);
  layout.vdso_data = 0, layout.vdso_size = {8, 8};
  return layout;
}

/// An image as linkers lay it out: headers, code at 0x1000, tables at 0x3000, all in one file.
struct UnwindImage {
  static constexpr std::uint64_t kCode = 0x1000, kTables = 0x3000;

  std::uint64_t linked_at = 0;
  std::vector<EhFrameWriter::Function> functions;  // by the image's own addresses
  bool has_index = true;
  bool has_sections = false;       // headers of those that the tables are
  std::vector<std::uint8_t> code;  // from kCode on

  std::vector<std::byte> file() const {
    Bytes out;
    Elf64_Ehdr header = arch::elf_header(linked_at == 0 ? ET_DYN : ET_EXEC);
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = has_index ? 4 : 3;
    const Bytes tables = EhFrameWriter::write(linked_at + kTables, functions);
    if (has_sections) {
      header.e_shoff = kTables + round_up(tables.size(), 64UL);
      header.e_shentsize = sizeof(Elf64_Shdr);
      header.e_shnum = 4;
      header.e_shstrndx = 3;
    }
    out.add(header);
    const auto add = [&](std::uint32_t type, std::uint32_t flags, std::uint64_t at,
                         std::uint64_t size) {
      out.add(Elf64_Phdr{type, flags, at, linked_at + at, linked_at + at, size, size, 0x1000});
    };
    add(PT_LOAD, PF_R, 0, 0x1000);
    add(PT_LOAD, PF_R | PF_X, kCode, kTables - kCode);
    add(PT_LOAD, PF_R, kTables, tables.size());
    if (has_index) add(PT_GNU_EH_FRAME, PF_R, kTables, tables.size());
    out.align(0x1000);
    for (const std::uint8_t each : code) out.add(each);
    while (out.size() < kTables) out.add(std::uint8_t{0x90});
    out.add_bytes(tables.bytes());
    if (has_sections) add_sections(out, tables.size());
    return out.bytes();
  }

 private:
  void add_sections(Bytes& out, std::uint64_t tables) const {
    const std::uint64_t index = 12 + functions.size() * 8;
    out.align(64);
    const std::uint64_t names = out.size() + 4 * sizeof(Elf64_Shdr);
    out.add(Elf64_Shdr{});
    out.add(
        Elf64_Shdr{1, SHT_PROGBITS, SHF_ALLOC, linked_at + kTables, kTables, index, 0, 0, 4, 0});
    out.add(Elf64_Shdr{15, SHT_PROGBITS, SHF_ALLOC, linked_at + kTables + index, kTables + index,
                       tables - index, 0, 0, 8, 0});
    out.add(Elf64_Shdr{0, SHT_STRTAB, 0, 0, names, 25, 0, 0, 1, 0});
    for (const char c : std::string_view("\0.eh_frame_hdr\0.eh_frame\0", 25)) {
      out.add(static_cast<std::uint8_t>(c));
    }
  }
};

class UnwindGuest {
 public:
  static constexpr std::uint64_t kStack = 0x7ffe'0000'0000;

  explicit UnwindGuest(std::size_t pages = 64) : files(kernel, pages), processes(kernel) {}

  /// Has the process map an image's file at `base`, with all its pages in the page cache. Returns
  /// its inode.
  std::uint64_t map(const UnwindImage& image, std::uint64_t base) {
    const std::vector<std::byte> bytes = image.file();
    const std::uint64_t inode = files.whole(bytes), file = processes.file("image");
    files.open(file, inode);
    areas_.push_back({base, base + 0x1000, 0, file});
    areas_.push_back({base + 0x1000, base + 0x3000, 1, file});
    areas_.push_back({base + 0x3000, base + round_up(bytes.size(), 0x1000UL), 3, file});
    return inode;
  }
  void map_vdso(const UnwindImage& image, std::uint64_t base) {
    const std::vector<std::byte> bytes = image.file();
    constexpr std::uint64_t kStructure = kKernel + 0x3000, kCopy = kKernel + 0x200'0000;
    kernel.put(kStructure, kCopy);
    kernel.put(kStructure + 8, std::uint64_t{bytes.size()});
    for (std::size_t n = 0; n < bytes.size(); ++n) kernel.put(kCopy + n, bytes[n]);
    vdso_ = base;
    vdso_structure_ = kStructure;
    areas_.push_back({base, base + round_up(bytes.size(), 0x1000UL), 0, 0});
  }
  /// The process's memory, after all was mapped; in the order of addresses.
  GuestVirt finish() {
    mm_ = GuestVirt(processes.memory(processes.small_tree(areas_), 0x5000, vdso_));
    kernel.put(mm_.raw() + kVdsoOffset, vdso_structure_);
    return mm_;
  }
  /// Puts words on the stack, from its top on; the thread stands at `pc`.
  void stand_at(std::uint64_t pc, const std::vector<std::uint64_t>& words) {
    registers.rip = pc;
    registers.rsp = kStack;
    std::uint64_t at = kStack;
    for (const std::uint64_t word : words) {
      memory.put(at, word);
      at += 8;
    }
  }
  std::vector<std::uint64_t> walk(UserUnwinder& unwinder, std::size_t most = 100) {
    std::vector<std::uint64_t> frames(most);
    frames.resize(unwinder.walk({kernel, memory, mm_}, registers, frames));
    return frames;
  }

  PagedGuest kernel, memory;  // the kernel's memory, and the process's
  PageCacheWriter files;
  ProcessWriter processes;
  Registers registers;

 private:
  std::vector<std::array<std::uint64_t, 4>> areas_;
  std::uint64_t vdso_ = 0, vdso_structure_ = 0;
  GuestVirt mm_;
};

}  // namespace ringside::guest_linux::fakes
