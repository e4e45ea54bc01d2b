#include "vmm/linux/processes/page_cache.h"

#include <algorithm>
#include <array>
#include <bit>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/load_numbers.h"

namespace ringside::guest_linux {
namespace {

using arch::kPageSize;

constexpr std::uint64_t kMostNodeSlots = 64;  // XA_CHUNK_SIZE; 16 with CONFIG_BASE_SMALL
constexpr std::size_t kFolioBytes = 64;       // of struct folio, in which all is that we look at

/// The forms of an entry. Internal entries beyond the first page of addresses are nodes.
constexpr bool is_internal(std::uint64_t entry) {
  return (entry & 3) == 2;
}
constexpr bool is_node(std::uint64_t entry) {
  return is_internal(entry) && entry > kPageSize;
}
constexpr bool is_pointer(std::uint64_t entry) {
  return entry != 0 && (entry & 3) == 0;
}

/// The number of slots of a node, if it is a power of two that kernels use.
std::optional<std::uint32_t> slot_bits(const TypeGraph& types) {
  const auto node = types.find(TypeKind::Struct, "xa_node");
  const auto slots = node ? types.find_member(*node, "slots") : std::nullopt;
  if (!slots) return std::nullopt;
  const Type& array = types[types.resolve(slots->type)];
  if (array.kind != TypeKind::Array || !std::has_single_bit(array.count)) return std::nullopt;
  if (array.count < 2 || array.count > kMostNodeSlots) return std::nullopt;
  return static_cast<std::uint32_t>(std::countr_zero(array.count));
}

/// The first of these members that the structure has.
std::optional<NumberMember> one_of(
    const TypeGraph& types, std::string_view structure,
    std::initializer_list<std::initializer_list<std::string_view>> paths) {
  for (const auto& path : paths) {
    if (const auto found = number_of(types, structure, path)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<PageCacheLayout> PageCacheLayout::from(const TypeGraph& types,
                                                     const SymbolTable& symbols) {
  PageCacheLayout layout;
  bool all = true;
  const auto take = [&](std::uint32_t& offset, std::string_view structure,
                        std::initializer_list<std::string_view> path) {
    const auto found = offset_of(types, structure, path);
    all = all && found.has_value();
    offset = found.value_or(0);
  };
  const std::string_view folio = types.find(TypeKind::Struct, "folio") ? "folio" : "page";
  take(layout.file_inode, "file", {"f_inode"});
  take(layout.inode_mapping, "inode", {"i_mapping"});
  take(layout.inode_number, "inode", {"i_ino"});
  take(layout.mapping_pages, "address_space", {"i_pages", "xa_head"});
  take(layout.node_shift, "xa_node", {"shift"});
  take(layout.node_slots, "xa_node", {"slots"});
  take(layout.folio_flags, folio, {"flags"});
  take(layout.folio_mapping, folio, {"mapping"});
  take(layout.folio_index, folio, {"index"});
  const auto size = number_of(types, "inode", {"i_size"});
  const auto slots = slot_bits(types);
  const auto pages = PageArray::from(types, symbols);
  const auto up_to_date = types.find_enumerator("PG_uptodate");
  if (!all || !size || !slots || !pages || !up_to_date) return std::nullopt;
  for (const std::uint32_t at : {layout.folio_flags, layout.folio_mapping, layout.folio_index}) {
    if (at > kFolioBytes - sizeof(std::uint64_t)) return std::nullopt;
  }
  layout.inode_size = *size;
  layout.node_slot_bits = *slots;
  layout.pages = *pages;
  layout.page_mapped = offset_of(types, "page", {"_mapcount"});
  if (up_to_date->second < 0 || up_to_date->second > 63) return std::nullopt;
  layout.is_up_to_date = std::uint64_t{1} << up_to_date->second;
  for (const std::string_view name : {"PG_dirty", "PG_writeback"}) {
    const auto bit = types.find_enumerator(name);
    if (!bit || bit->second < 0 || bit->second > 63) return std::nullopt;
    layout.is_unsaved |= std::uint64_t{1} << bit->second;
  }
  // To 6.6, 6.7 to 6.10, since 6.11.
  layout.inode_changed =
      one_of(types, "inode", {{"i_mtime", "tv_sec"}, {"__i_mtime", "tv_sec"}, {"i_mtime_sec"}});
  layout.inode_changed_part =
      one_of(types, "inode", {{"i_mtime", "tv_nsec"}, {"__i_mtime", "tv_nsec"}, {"i_mtime_nsec"}});
  return layout;
}

std::optional<FilePages> FilePages::of_inode(const vmm::GuestMemory& memory,
                                             const GuestReader& kernel,
                                             const PageCacheLayout& layout, GuestVirt inode) {
  constexpr NumberMember kNone;
  const auto numbers = load_numbers<5>(kernel, inode,
                                       {{{layout.inode_mapping, 8},
                                         {layout.inode_number, 8},
                                         layout.inode_size,
                                         layout.inode_changed.value_or(kNone),
                                         layout.inode_changed_part.value_or(kNone)}});
  if (!numbers) return std::nullopt;
  const auto [mapping, number, size, changed, changed_part] = *numbers;
  if (mapping == 0) return std::nullopt;
  return FilePages(memory, kernel, layout, {inode.raw(), number, size, changed, changed_part},
                   GuestVirt(mapping));
}

std::optional<FilePages> FilePages::of_file(const vmm::GuestMemory& memory,
                                            const GuestReader& kernel,
                                            const PageCacheLayout& layout, GuestVirt file) {
  const auto inode = load_field<std::uint64_t>(kernel, file, layout.file_inode);
  if (!inode || *inode == 0) return std::nullopt;
  return of_inode(memory, kernel, layout, GuestVirt(*inode));
}

std::optional<GuestPhys> FilePages::frame(std::uint64_t index) const {
  const auto page = find(index);
  return page ? std::optional(page->frame) : std::nullopt;
}

bool FilePages::is_unsaved(std::uint64_t index) const {
  const auto page = find(index);
  if (!page) return false;
  const auto flags = load_field<std::uint64_t>(*kernel_, page->folio, layout_->folio_flags);
  return !flags || (*flags & layout_->is_unsaved) != 0;
}

/// The kernel counts from -1 on.
bool FilePages::is_mapped(std::uint64_t index) const {
  const auto page = find(index);
  if (!page) return false;
  if (!layout_->page_mapped) return true;
  const GuestVirt at = page->folio.wrapping_add((index - page->first) * layout_->pages.page_bytes);
  const auto count = load_field<std::int32_t>(*kernel_, at, *layout_->page_mapped);
  return !count || *count >= 0;
}

std::size_t FilePages::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset >= size()) return 0;
  out = out.first(std::min<std::uint64_t>(out.size(), size() - offset));
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t at = offset + done;
    const std::size_t length = std::min<std::size_t>(out.size() - done, arch::left_in_page(at));
    const std::uint64_t index = at / kPageSize;
    const auto copy = [&] {
      const GuestPhys from = last_->page.frame.wrapping_add(at % kPageSize);
      return memory_->read(from, out.subspan(done, length)) && holds(last_->page);
    };
    if (!last_ || last_->index != index || !copy()) {
      const auto page = find(index);
      last_ = page ? std::optional(Found{index, *page}) : std::nullopt;
      if (!last_ || !copy()) break;
    }
    done += length;
  }
  return done;
}

std::optional<FilePages::Page> FilePages::find(std::uint64_t index) const {
  if (index >= divide_up(size(), kPageSize)) return std::nullopt;
  auto page = look_up(index);
  if (!page || !holds(*page)) return std::nullopt;
  const auto begin = layout_->pages.begin(*kernel_);
  const auto first = begin ? layout_->pages.number_of(page->folio, *begin) : std::nullopt;
  if (!first) return std::nullopt;
  const std::uint64_t number = *first + (index - page->first);
  if (number > UINT64_MAX / kPageSize) return std::nullopt;
  page->frame = GuestPhys(number * kPageSize);
  if (!memory_->is_ram(page->frame, kPageSize)) return std::nullopt;
  return page;
}

std::optional<FilePages::Page> FilePages::look_up(std::uint64_t index) const {
  const std::uint64_t slots = std::uint64_t{1} << layout_->node_slot_bits;
  auto entry = load_field<std::uint64_t>(*kernel_, mapping_, layout_->mapping_pages);
  if (!entry) return std::nullopt;
  if (!is_node(*entry)) {  // the only page, at index 0
    if (index != 0 || !is_pointer(*entry)) return std::nullopt;
    return Page{GuestVirt(*entry), 0, {}};
  }
  for (unsigned above = 64; is_node(*entry);) {
    const GuestVirt node(*entry - 2);
    const auto shift = load_field<std::uint8_t>(*kernel_, node, layout_->node_shift);
    // A node's slots span less than one slot of the node above it.
    if (!shift || *shift + layout_->node_slot_bits > above) return std::nullopt;
    if (above == 64 && index >> *shift >= slots) return std::nullopt;
    above = *shift;
    const auto slot_at = [&](std::uint64_t slot) {
      return load_field<std::uint64_t>(*kernel_, node, layout_->node_slots + slot * 8);
    };
    std::uint64_t slot = (index >> above) & (slots - 1);
    entry = slot_at(slot);
    if (entry && is_internal(*entry) && !is_node(*entry)) {
      const std::uint64_t sibling = *entry >> 2;
      if (sibling >= slot) return std::nullopt;  // no sibling: the slot is changed right now
      slot = sibling;
      entry = slot_at(slot);
      if (entry && !is_pointer(*entry)) return std::nullopt;
    }
    if (!entry) return std::nullopt;
    if (is_pointer(*entry)) {
      const std::uint64_t in_node = (slots << above) - 1;
      return Page{GuestVirt(*entry), (index & ~in_node) | slot << above, {}};
    }
  }
  return std::nullopt;
}

bool FilePages::holds(const Page& page) const {
  std::array<std::byte, kFolioBytes> folio;
  if (!kernel_->read(page.folio, folio)) return false;
  const auto word = [&](std::uint32_t offset) { return load_at<std::uint64_t>(folio, offset); };
  return (word(layout_->folio_flags) & layout_->is_up_to_date) != 0 &&
         word(layout_->folio_mapping) == mapping_.raw() && word(layout_->folio_index) == page.first;
}

}  // namespace ringside::guest_linux
