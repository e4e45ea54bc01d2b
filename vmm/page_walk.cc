// The page walk. In this file: entry decoding (pure), the walk, the reader over it.
// Layouts: Intel SDM volume 3A, 4.5.4 and 4.5.5 (tables 4-14 to 4-20); AMD64 volume 2, 5.3 and 5.4.
// An entry with a reserved bit set faults in hardware, so here it translates nothing.
// Fire context: yes.
#include "vmm/page_walk.h"

#include <algorithm>

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kPresent = 1 << 0;
constexpr std::uint64_t kWritable = 1 << 1;
constexpr std::uint64_t kUser = 1 << 2;
constexpr std::uint64_t kDirty = 1 << 6;  // in a leaf
constexpr std::uint64_t kLarge = 1 << 7;  // PS; in a PTE (level 1) the same bit is PAT
constexpr std::uint64_t kPat = 1 << 12;   // in a large entry: not part of the address
constexpr std::uint64_t kAddress = 0x000f'ffff'ffff'f000;  // bits 12 to 51
constexpr std::uint64_t kNoExecute = std::uint64_t{1} << 63;
constexpr std::uint64_t kPage = 4096;
constexpr unsigned kLargestLeaf = 3;  // 1 GiB pages; PS is reserved above

constexpr unsigned shift_of(unsigned level) {
  return 12 + 9 * (level - 1);
}
constexpr std::uint64_t bytes_of(unsigned level) {
  return std::uint64_t{1} << shift_of(level);
}

/// The upper bits must repeat the highest translated bit.
bool canonical(std::uint64_t at, unsigned levels) {
  const unsigned unused = 64 - shift_of(levels + 1);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(at << unused) >> unused) == at;
}

struct Found {
  GuestPhys entry_at;
  std::uint64_t entry = 0;
  unsigned level = 0;
  std::uint64_t rights = 0;  // bits that this entry and all above it have
};

/// Follows tables from the root until the entry of `last` level, or an earlier large page; the
/// entry returned has been read once and may be anything when level == last.
std::optional<Found> descend(const GuestMemory& memory, const PageTable& table, std::uint64_t at,
                             unsigned last) {
  if ((table.levels != 4 && table.levels != 5) || !canonical(at, table.levels)) return std::nullopt;
  std::uint64_t base = table.root.raw() & kAddress;
  std::uint64_t rights = ~std::uint64_t{0};
  for (unsigned level = table.levels;; --level) {
    const GuestPhys entry_at(base + ((at >> shift_of(level)) & 511) * sizeof(std::uint64_t));
    const auto loaded = memory.load64(entry_at);
    if (!loaded) return std::nullopt;
    const std::uint64_t entry = *loaded & ~table.encryption_mask;
    const bool large = (entry & kLarge) != 0 && level > 1;
    rights &= entry;
    if (level == last || (large && (entry & kPresent) != 0)) {
      return Found{entry_at, entry, level, rights};
    }
    if ((entry & kPresent) == 0) return std::nullopt;
    base = entry & kAddress;
  }
}

/// What a leaf translates `at` to.
std::optional<Translation> translation(const std::optional<Found>& found, GuestVirt at) {
  if (!found || (found->entry & kPresent) == 0 || found->level > kLargestLeaf) return std::nullopt;
  const std::uint64_t size = bytes_of(found->level);
  std::uint64_t base = found->entry & kAddress;
  if (found->level > 1) base &= ~kPat;
  if (base % size != 0) return std::nullopt;  // reserved bits of a large entry
  const std::uint64_t offset = at.raw() & (size - 1);
  return Translation{GuestPhys(base + offset), size, at.raw() - offset};
}

}  // namespace

std::optional<Translation> translate(const GuestMemory& memory, const PageTable& table,
                                     GuestVirt at) {
  return translation(descend(memory, table, at.raw(), 1), at);
}

std::optional<Translation> translate_writable(const GuestMemory& memory, const PageTable& table,
                                              GuestVirt at) {
  constexpr std::uint64_t kRights = kPresent | kWritable | kUser;
  const auto found = descend(memory, table, at.raw(), 1);
  if (!found || (found->rights & kRights) != kRights) return std::nullopt;
  if ((found->entry & kDirty) == 0 || (found->entry & kNoExecute) == 0) return std::nullopt;
  return translation(found, at);
}

std::optional<GuestPhys> entry_address(const GuestMemory& memory, const PageTable& table,
                                       GuestVirt at, unsigned level) {
  if (level < 1 || level > table.levels) return std::nullopt;
  const auto found = descend(memory, table, at.raw(), level);
  if (!found || found->level != level) return std::nullopt;
  return found->entry_at;
}

std::optional<GuestPhys> PageTableReader::lookup(std::uint64_t page) const {
  Cached& cached = cache_[(page / kPage) % kCached];
  if (cached.page == page) return GuestPhys(cached.physical);
  const auto found = translate(*memory_, table_, GuestVirt(page));
  if (!found) return std::nullopt;
  cached = {page, found->address.raw()};
  return found->address;
}

Result<void, Fault> PageTableReader::read(GuestVirt at, std::span<std::byte> out) const {
  const std::uint64_t offset = at.raw() % kPage;
  if (out.size() <= kPage - offset) [[likely]] {  // nearly every load lies in one page
    const auto page = lookup(at.raw() - offset);
    if (page && memory_->read(GuestPhys(page->raw() + offset), out)) [[likely]]
      return {};
  }
  return read_pieces(at, out);
}

/// The long way: page by page, and byte by byte in the piece that fails, to name the first byte
/// that is not there (RAM need not end at a page boundary).
Result<void, Fault> PageTableReader::read_pieces(GuestVirt at, std::span<std::byte> out) const {
  std::uint64_t from = at.raw();
  while (!out.empty()) {
    const std::uint64_t offset = from % kPage;
    const std::size_t length = std::min<std::size_t>(out.size(), kPage - offset);
    const auto page = lookup(from - offset);
    if (!page) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, from});
    const GuestPhys piece(page->raw() + offset);
    if (!memory_->read(piece, out.first(length))) {
      std::size_t good = 0;
      while (good < length && memory_->read(GuestPhys(piece.raw() + good), out.subspan(good, 1))) {
        ++good;
      }
      if (good < length) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, from + good});
    }
    out = out.subspan(length);
    from += length;
    if (from == 0 && !out.empty()) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, 0});
  }
  return {};
}

void PageTableReader::set_table(PageTable table) {
  table_ = table;
  forget();
}

void PageTableReader::forget() const {
  cache_.fill({});
}

}  // namespace ringside::vmm
