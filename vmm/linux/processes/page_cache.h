// Pages of files that the guest's kernel has in memory: its page cache. A program's text and tables
// lie there, also those that no process has touched yet, which no page table maps.
//
//   struct inode -> i_mapping -> i_pages, an xarray by page index -> struct folio -> page frame
//
// The xarray (include/linux/xarray.h, Documentation/core-api/xarray.rst): a slot has a pointer to a
// folio, or a node with slots of its own (the lowest two bits are 2), or a value (bit 0 is set:
// what was there is gone). A folio of several pages takes several slots; all but its first one name
// that one (a sibling entry). The frame of a page follows from the address of its struct page,
// since all of them are one array, vmemmap. Layouts come from the kernel's types.
//
// FilePages offers, for an inode or an open file:
//   frame(index)        the guest-physical address of the page with this index
//   read(offset, out)   bytes of the file, if their pages are in memory and were read from the disk
// Does not: read from disks, write, or see files that bypass the page cache (DAX).
// Hostile input, and the guest runs meanwhile: walks are bounded. A page is given back only if its
// folio says that it belongs to this file and index. read() asks it again after it has copied,
// because a page may be taken for another file at any time. frame() cannot know what comes later.
// Fire context: FilePages yes; PageCacheLayout::from() no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/page_array.h"
#include "vmm/linux/processes/file_bytes.h"
#include "vmm/linux/symbol_table.h"

namespace ringside::guest_linux {

/// Byte offsets in the kernel's structures, and their array of struct page.
struct PageCacheLayout {
  std::uint32_t file_inode = 0;                                   // file.f_inode
  std::uint32_t inode_mapping = 0, inode_number = 0;              // i_mapping, i_ino
  NumberMember inode_size;                                        // i_size
  std::optional<NumberMember> inode_changed, inode_changed_part;  // i_mtime: s, ns
  std::uint32_t mapping_pages = 0;                                // address_space.i_pages.xa_head
  std::uint32_t node_shift = 0, node_slots = 0, node_slot_bits = 0;  // xa_node; it has 2^bits slots
  std::uint32_t folio_flags = 0, folio_mapping = 0, folio_index = 0;
  PageArray pages;
  std::optional<std::uint32_t> page_mapped = std::nullopt;  // page._mapcount
  std::uint64_t is_up_to_date = 0;                          // in folio.flags: PG_uptodate
  std::uint64_t is_unsaved = 0;  // PG_dirty and PG_writeback, which may be one bit each

  /// Empty when the kernel's types do not describe all of it. Kernels before 5.16 have no folios;
  /// there a page has the same members.
  static std::optional<PageCacheLayout> from(const TypeGraph& types, const SymbolTable& symbols);
};

/// Tells a file's content from another's. Equal: the same content, unless somebody wrote to
/// the file within the same tick of the guest's clock.
struct FileIdentity {
  std::uint64_t inode = 0, number = 0, size = 0, changed = 0, changed_part = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

/// The pages of one file. It keeps references, the addresses that it was made with, and where the
/// last page was. Make a new one for each look.
class FilePages final : public FileBytes {
 public:
  /// Of the struct inode at `inode`. Empty when it cannot be read. `memory`, `kernel` (a reader of
  /// the kernel's memory) and `layout` must outlive the result.
  static std::optional<FilePages> of_inode(const vmm::GuestMemory& memory,
                                           const GuestReader& kernel, const PageCacheLayout& layout,
                                           GuestVirt inode);
  /// The same of the struct file at `file`. On overlayfs, a mapping's file is that below it.
  static std::optional<FilePages> of_file(const vmm::GuestMemory& memory, const GuestReader& kernel,
                                          const PageCacheLayout& layout, GuestVirt file);

  const FileIdentity& identity() const { return identity_; }
  GuestVirt inode() const { return GuestVirt(identity_.inode); }
  std::uint64_t size() const override { return identity_.size; }

  /// Where the page with this index (offset / 4096) is. Empty: not in memory, not read from the
  /// disk yet, or beyond the file's end.
  std::optional<GuestPhys> frame(std::uint64_t index) const;
  /// Whether that page has been changed since it was read from the disk, or is being written there.
  /// Of a file without a disk that says nothing: its pages always are.
  bool is_unsaved(std::uint64_t index) const;
  /// Up to the first page that is not in memory or the file's end.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const override;
  /// Whether a process has that page mapped, as far as it is known.
  bool is_mapped(std::uint64_t index) const;

 private:
  struct Page {
    GuestVirt folio;
    std::uint64_t first = 0;  // index of the folio's first page
    GuestPhys frame;
  };
  FilePages(const vmm::GuestMemory& memory, const GuestReader& kernel,
            const PageCacheLayout& layout, const FileIdentity& identity, GuestVirt mapping)
      : memory_(&memory),
        kernel_(&kernel),
        layout_(&layout),
        identity_(identity),
        mapping_(mapping) {}

  std::optional<Page> find(std::uint64_t index) const;
  /// The folio at this index and the index of its first page, as the xarray has it.
  std::optional<Page> look_up(std::uint64_t index) const;
  /// Whether the folio still holds the pages of this file from that index on.
  bool holds(const Page& page) const;

  const vmm::GuestMemory* memory_;
  const GuestReader* kernel_;
  const PageCacheLayout* layout_;
  FileIdentity identity_;
  GuestVirt mapping_;
  struct Found {
    std::uint64_t index = 0;
    Page page;
  };
  mutable std::optional<Found> last_;  // by read()
};

}  // namespace ringside::guest_linux
