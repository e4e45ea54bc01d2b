// Translation in a guest's memory, and the reader over it. Tables and the walk: vmm/arch.
// Fire context: yes.
#include "vmm/page_walk.h"

#include <algorithm>
#include <span>

#include "vmm/base/numbers.h"

namespace ringside::vmm {
namespace {

using arch::kPageSize;

/// Reads of more than this are worth copies of page tables.
constexpr std::size_t kLongRead = 8 * kPageSize;

std::optional<arch::PageEntry> find(const GuestMemory& memory, const PageTable& table, GuestVirt at,
                                    unsigned last) {
  return arch::walk([&memory](GuestPhys entry) { return memory.load64(entry); }, table, at, last);
}

/// A large read, a table of the kernel's or its text: whole pages of whatever size, by copies of
/// the page tables. Fault: where the first page begins, or what is left of it, that cannot be read.
Result<void, Fault> read_pages(const GuestMemory& memory, const PageTable& table, GuestVirt at,
                               std::span<std::byte> out) {
  TableCopies tables(memory);
  while (!out.empty()) {
    const auto page = tables.translate(table, at);
    const auto unreadable = Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
    if (!page) return unreadable;
    const std::uint64_t left = page->page_size - at.offset_from(GuestVirt(page->page_base));
    const std::size_t length = std::min<std::uint64_t>(out.size(), left);
    if (!memory.read(page->address, out.first(length))) return unreadable;
    out = out.subspan(length);
    at = at.wrapping_add(length);
  }
  return {};
}

}  // namespace

std::optional<Translation> translate(const GuestMemory& memory, const PageTable& table,
                                     GuestVirt at) {
  return arch::translation(find(memory, table, at, 1), at);
}

std::optional<Translation> translate_writable(const GuestMemory& memory, const PageTable& table,
                                              GuestVirt at) {
  const auto found = find(memory, table, at, 1);
  if (!found || !arch::is_users_data(*found)) return std::nullopt;
  return arch::translation(found, at);
}

std::optional<Translation> translate_mapped(const GuestMemory& memory, const PageTable& table,
                                            GuestVirt at) {
  auto found = find(memory, table, at, 1);
  if (!found) {  // a large page without access looks like a table that is not there
    found = find(memory, table, at, 2);
    if (found && (found->value & arch::pte::kLarge) == 0) return std::nullopt;
  }
  if (!found) return std::nullopt;
  found->value = arch::with_access(found->value) & ~table.encryption_mask;
  return arch::translation(found, at);
}

std::optional<GuestPhys> entry_address(const GuestMemory& memory, const PageTable& table,
                                       GuestVirt at, unsigned level) {
  if (level < 1 || level > table.levels) return std::nullopt;
  const auto found = find(memory, table, at, level);
  if (!found || found->level != level) return std::nullopt;
  return found->at;
}

std::optional<GuestPhys> PageTableReader::lookup(std::uint64_t page) const {
  Cached& cached = cache_[(page / kPageSize) % kCached];
  if (cached.tag == (page | firing_)) return GuestPhys(cached.physical);
  const auto found = translate(*memory_, table_, GuestVirt(page));
  if (!found) return std::nullopt;
  cached = {page | firing_, found->address.raw()};
  return found->address;
}

Result<void, Fault> PageTableReader::read(GuestVirt at, std::span<std::byte> out) const {
  const std::uint64_t offset = at.raw() % kPageSize;
  if (out.size() <= kPageSize - offset) [[likely]] {  // nearly every load lies in one page
    const auto page = lookup(at.raw() - offset);
    if (page && memory_->read(page->wrapping_add(offset), out)) [[likely]]
      return {};
  }
  return read_pieces(at, out);
}

/// The long way: page by page, and byte by byte in the piece that fails, to name the first byte
/// that is not there (RAM need not end at a page boundary).
Result<void, Fault> PageTableReader::read_pieces(GuestVirt at, std::span<std::byte> out) const {
  if (out.size() > kLongRead) {
    const auto done = read_pages(*memory_, table_, at, out);
    if (done) return done;
    // The long way from there on: to name the first byte that is not there.
    const std::uint64_t copied = done.error().address - at.raw();
    at = GuestVirt(done.error().address);
    out = out.subspan(copied);
  }
  std::uint64_t from = at.raw();
  while (!out.empty()) {
    const std::uint64_t offset = from % kPageSize;
    const std::size_t length = std::min<std::size_t>(out.size(), kPageSize - offset);
    const auto page = lookup(from - offset);
    if (!page) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, from});
    const GuestPhys piece = page->wrapping_add(offset);
    if (!memory_->read(piece, out.first(length))) {
      std::size_t good = 0;
      while (good < length && memory_->read(piece.wrapping_add(good), out.subspan(good, 1))) {
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
  if (++firing_ <= kLastFiring) [[likely]]
    return;
  cache_.fill({});
  firing_ = 1;
}

std::optional<std::uint64_t> TableCopies::load64(GuestPhys at) {
  const GuestPhys table(round_down(at.raw(), kPageSize));
  auto copy = std::ranges::find(copies_, std::optional(table), &Copy::at);
  if (copy == copies_.end()) {
    copy = copies_.begin() + static_cast<std::ptrdiff_t>(next_++ % kKept);
    const bool is_there = memory_->read(table, std::as_writable_bytes(std::span(copy->entries)));
    copy->at = is_there ? std::optional(table) : std::nullopt;
    if (!is_there) return std::nullopt;
  }
  return copy->entries[at.raw() % kPageSize / sizeof(std::uint64_t)];
}

std::optional<Translation> TableCopies::translate(const PageTable& table, GuestVirt at) {
  return arch::translation(
      arch::walk([this](GuestPhys entry) { return load64(entry); }, table, at, 1), at);
}

std::optional<std::uint64_t> TableCopies::entry(const PageTable& table, GuestVirt at,
                                                unsigned level) {
  if (level < 1 || level > table.levels) return std::nullopt;
  const auto found =
      arch::walk([this](GuestPhys entry) { return load64(entry); }, table, at, level);
  if (!found || found->level != level) return std::nullopt;
  return found->value;
}

}  // namespace ringside::vmm
