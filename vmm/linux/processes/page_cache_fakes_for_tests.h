// Files in a fake guest's page cache for tests: inodes, xarrays and folios in kernel memory, and
// RAM with the pages.
// Not linked into the product.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/guest_memory.h"
#include "vmm/linux/processes/page_cache.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::guest_linux::fakes {

inline constexpr std::uint64_t kVmemmap = 0xffff'ea00'1000'0000;
inline constexpr std::uint64_t kVmemmapBase = kKernel + 0x2000;  // the variable

inline PageCacheLayout page_cache_layout() {
  PageCacheLayout layout;
  layout.file_inode = 0x10;
  layout.inode_mapping = 0, layout.inode_number = 8, layout.inode_size = {16, 8};
  layout.inode_changed = NumberMember{24, 8}, layout.inode_changed_part = NumberMember{32, 4};
  layout.mapping_pages = 8;
  layout.node_shift = 0, layout.node_slots = 16, layout.node_slot_bits = 6;
  layout.folio_flags = 0, layout.folio_mapping = 24, layout.folio_index = 32;
  layout.page_mapped = 48;
  layout.is_up_to_date = 4, layout.is_unsaved = 0x12;
  layout.pages = {.page_bytes = 64, .variable = GuestVirt(kVmemmapBase)};
  return layout;
}

/// Adds the kernel's types that say so to those of processes.
inline void add_page_cache_types(BtfWriter& btf) {
  const std::uint32_t word = btf.integer("long", 8, true), byte = btf.integer("char", 1, false);
  const std::uint32_t nanoseconds = btf.integer("int", 4, true);
  const auto add = [&btf](std::string_view name, std::uint32_t size,
                          std::vector<BtfWriter::Field> fields) {
    for (BtfWriter::Field& field : fields) field.offset *= 8;
    return btf.structure(name, size, std::move(fields));
  };
  const std::uint32_t slots = btf.type(3, "", 0);  // BTF_KIND_ARRAY
  btf.word(word).word(word).word(64);
  const std::uint32_t pages = add("xarray", 8, {{"xa_head", word, 0}});
  add("address_space", 64, {{"i_pages", pages, 8}});
  add("inode", 64,
      {{"i_mapping", word, 0},
       {"i_ino", word, 8},
       {"i_size", word, 16},
       {"i_mtime_sec", word, 24},
       {"i_mtime_nsec", nanoseconds, 32}});
  add("xa_node", 1024, {{"shift", byte, 0}, {"slots", slots, 16}});
  add("folio", 64, {{"flags", word, 0}, {"mapping", word, 24}, {"index", word, 32}});
  add("page", 64, {{"flags", word, 0}, {"_mapcount", nanoseconds, 48}});
  btf.type(6, "pageflags", 4, 3);  // BTF_KIND_ENUM
  btf.word(btf.string("PG_uptodate")).word(2);
  btf.word(btf.string("PG_dirty")).word(4).word(btf.string("PG_writeback")).word(1);
}

/// Writes files by that layout into `guest`, and their pages into RAM of its own.
class PageCacheWriter {
 public:
  explicit PageCacheWriter(PagedGuest& guest, std::size_t pages = 64)
      : ram_(pages * kPage), memory_({{GuestPhys(0), ram_}}), guest_(guest) {
    guest_.put(kVmemmapBase, kVmemmap);
  }

  vmm::GuestMemory& memory() { return memory_; }

  /// A struct inode of a file without pages; its number is unique.
  std::uint64_t inode(std::uint64_t size) {
    const std::uint64_t at = fresh(0x100), mapping = fresh(0x100);
    guest_.put(at, mapping);
    guest_.put(at + 8, ++numbers_);
    guest_.put(at + 16, size);
    guest_.put(at + 24, std::uint64_t{1700000000});
    guest_.put(mapping + 8, std::uint64_t{0});
    return at;
  }
  /// One whose pages are all there, with these bytes.
  std::uint64_t whole(std::span<const std::byte> bytes) {
    const std::uint64_t at = inode(bytes.size());
    for (std::uint64_t page = 0; page * kPage < bytes.size(); ++page) {
      const auto rest = bytes.subspan(page * kPage);
      std::ranges::copy(rest.first(std::min<std::size_t>(rest.size(), kPage)),
                        ram_.begin() + static_cast<std::ptrdiff_t>(put(at, page) * kPage));
    }
    return at;
  }
  /// Has `file`, a struct file, open that inode.
  void open(std::uint64_t file, std::uint64_t inode) { guest_.put(file + 0x10, inode); }

  /// Gives the file a folio of 2^order pages at this index; returns the number of its first frame.
  std::uint64_t put(std::uint64_t inode, std::uint64_t index, unsigned order = 0) {
    const std::uint64_t frame = std::exchange(frames_, frames_ + (std::uint64_t{1} << order));
    const std::uint64_t folio = folio_of(frame), mapping = *load_word(inode);
    for (std::uint64_t page = 0; page < std::uint64_t{1} << order; ++page) {
      guest_.put(folio + page * 64, std::array<std::uint64_t, 8>{});
    }
    guest_.put(folio, std::uint64_t{4});  // up to date
    guest_.put(folio + 24, mapping);
    guest_.put(folio + 32, index);
    std::uint64_t shift = 0;
    while (order >= shift + 6) shift += 6;
    const std::uint64_t slots = slots_for(mapping + 8, index, shift);
    const std::uint64_t first = index >> shift & 63;
    guest_.put(slots + first * 8, folio);
    for (std::uint64_t n = 1; n < std::uint64_t{1} << (order - shift); ++n) {
      guest_.put(slots + (first + n) * 8, first << 2 | 2);
    }
    return frame;
  }
  /// Where the slot of this index is.
  std::uint64_t slot(std::uint64_t inode, std::uint64_t index) {
    return slots_for(*load_word(inode) + 8, index, 0) + (index & 63) * 8;
  }
  std::span<std::byte> page(std::uint64_t frame) {
    return std::span(ram_).subspan(frame * kPage, kPage);
  }
  static std::uint64_t folio_of(std::uint64_t frame) { return kVmemmap + frame * 64; }

 private:
  static constexpr std::uint64_t kPage = 4096;

  std::uint64_t fresh(std::uint64_t size) { return std::exchange(next_, next_ + size); }
  std::optional<std::uint64_t> load_word(std::uint64_t at) const {
    const auto word = load<std::uint64_t>(guest_, GuestVirt(at));
    return word ? std::optional(*word) : std::nullopt;
  }
  std::uint64_t node(std::uint8_t shift) {
    const std::uint64_t at = fresh(0x400);
    guest_.put(at, std::array<std::byte, 0x400>{});
    guest_.put(at, shift);
    return at | 2;
  }
  /// The slots of the node at this shift, which is made with all above it. The tree has three
  /// levels from the beginning, as the kernel's may have.
  std::uint64_t slots_for(std::uint64_t head, std::uint64_t index, std::uint64_t wanted) {
    std::uint64_t at = head;
    for (std::uint64_t shift = 12;; shift -= 6) {
      if (*load_word(at) == 0) guest_.put(at, node(static_cast<std::uint8_t>(shift)));
      const std::uint64_t slots = (*load_word(at) & ~std::uint64_t{3}) + 16;
      if (shift == wanted) return slots;
      at = slots + (index >> shift & 63) * 8;
    }
  }

  std::vector<std::byte> ram_;
  vmm::GuestMemory memory_;
  PagedGuest& guest_;
  std::uint64_t next_ = kKernel + 0x100'0000, numbers_ = 100, frames_ = 1;
};

}  // namespace ringside::guest_linux::fakes
