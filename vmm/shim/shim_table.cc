// In this file, top to bottom: our own copy, the shared table, questions, a table that was left.
#include "vmm/shim/shim_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/check.h"
#include "vmm/base/numbers.h"

namespace ringside::vmm {
namespace {

/// Our own copy is an open-addressed hash table. An entry is the address's low half, the offset of
/// its slot, and a byte that says whether it records, and by which list.
constexpr std::uint32_t kHash = 0x9e3779b1;
constexpr unsigned kSlotShift = 32, kRecordingShift = 56;
constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << (kRecordingShift - kSlotShift)) - 1;
static_assert(kLargeShimBytes <= kSlotMask + 1);
/// More than any layout has room for.
constexpr std::size_t kSmallBuckets = std::size_t{1} << 17, kLargeBuckets = std::size_t{1} << 18;

/// As many as the entries of the largest table and their blocks have.
constexpr std::size_t kMostLeftWords = 2 * kLargeBuckets;
constexpr std::uint32_t kSlotUnits = (1U << SHIM_ENTRY_SLOT_BITS) - 1;
constexpr unsigned kPagesShift = SHIM_TABLE_SHIFT - SHIM_PAGE_SHIFT;  // from pages to their part
constexpr std::uint64_t kPagesBytes = SHIM_PAGES_WORDS * sizeof(std::uint16_t);

std::uint32_t key_of(GuestVirt address) {
  return static_cast<std::uint32_t>(address.raw());
}
std::uint32_t key_of(std::uint64_t entry) {
  return static_cast<std::uint32_t>(entry);
}
std::uint32_t page_of(GuestVirt address) {
  return key_of(address) >> SHIM_PAGE_SHIFT;
}
/// The high half of an address is all ones, because kernel text lies in the top 2 GiB.
GuestVirt address_of(std::uint32_t key) {
  return GuestVirt(static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(key)}));
}
std::uint64_t slot_of_entry(std::uint64_t entry) {
  return entry >> kSlotShift & kSlotMask;
}

/// The address in its page, as an entry of a block begins with it.
std::uint32_t place_in_page(GuestVirt address) {
  return key_of(address) << SHIM_ENTRY_SLOT_BITS;
}

template <class Words>
std::span<const std::byte> bytes_of(const Words& words) {
  return std::as_bytes(std::span(words));
}

/// The entry for an address among a block's words; its end if there is none.
template <class Words>
auto find_word(Words& words, GuestVirt address) {
  const std::uint32_t place = place_in_page(address);
  const auto first = words.begin() + (words.empty() ? 0 : 1);
  const auto at = std::lower_bound(first, words.end(), place);
  return at != words.end() && (*at & ~kSlotUnits) == place ? at : words.end();
}

}  // namespace

ShimTable::ShimTable(ShimRegion& region, const ShimPresence& presence, ShimSlots& slots,
                     const ShimLayout& layout)
    : region_(region),
      presence_(presence),
      slots_(slots),
      layout_(layout),
      entries_(layout.shares_slots() ? kSmallBuckets : kLargeBuckets) {}

/// The address's own bucket, or the empty one that it would get.
ShimTable::Bucket ShimTable::bucket_for(GuestVirt address) const {
  const std::uint32_t hash = key_of(address) * kHash;
  auto bucket = static_cast<Bucket>(std::uint64_t{hash} * entries_.size() >> 32);
  while (entry(bucket) != 0 && key_of(entry(bucket)) != key_of(address)) {
    bucket = (bucket + 1) % static_cast<Bucket>(entries_.size());
  }  // ends: a quarter of the buckets is always empty
  return bucket;
}

std::optional<ShimTable::Bucket> ShimTable::bucket_of(GuestVirt address) const {
  if (!has_key(address)) return std::nullopt;
  const Bucket bucket = bucket_for(address);
  return entry(bucket) == 0 ? std::nullopt : std::optional(bucket);
}

Result<void> ShimTable::insert(GuestVirt address, std::uint64_t slot_offset) {
  CHECK((slot_offset - layout_.slots) % layout_.slot_unit() == 0);
  const std::uint64_t fresh = key_of(address) | slot_offset << kSlotShift;
  if (presence_.state() != ShimState::There) return region_gone();
  if (const auto known = bucket_of(address)) {
    if (is_enabled(address)) {
      return fail(ErrorCode::Invalid, fmt::format("{:#x} is a trap point already", address.raw()));
    }
    entries_[*known].store(fresh, std::memory_order_release);
    return {};
  }
  if (count_ >= entries_.size() / 4 * 3) {
    return fail(ErrorCode::Limit, fmt::format("{} trap points are the most that fit: enable fewer "
                                              "probes",
                                              count_));
  }
  TRY(reserve(address));
  entries_[bucket_for(address)].store(fresh, std::memory_order_release);
  ++count_;
  return {};
}

/// Only our own copy: the guest sees it once the entry is enabled.
Result<void> ShimTable::set_recording(std::span<const GuestVirt> addresses, std::uint8_t list) {
  CHECK(list < SHIM_LISTS);
  const std::uint64_t recording = std::uint64_t{SHIM_SLOT_RECORDS | list} << kRecordingShift;
  for (const GuestVirt address : addresses) {
    const auto bucket = bucket_of(address);
    if (!bucket || is_enabled(address)) {
      return fail(ErrorCode::Invalid,
                  fmt::format("{:#x} is no trap point, or in use already", address.raw()));
    }
    entries_[*bucket].store(entry(*bucket) | recording, std::memory_order_release);
  }
  return {};
}

/// Whole units: so that another one may follow.
std::uint64_t ShimTable::size_of(std::size_t entries) const {
  return round_up(sizeof(std::uint32_t) * (1 + entries), layout_.block_unit());
}

std::uint16_t ShimTable::units_to(std::uint64_t offset) const {
  return static_cast<std::uint16_t>((offset - layout_.slots) / layout_.block_unit());
}

/// Room for a block that has this address, too. So enabling fails for want of room only where a
/// page's addresses are not enabled together.
Result<void> ShimTable::reserve(GuestVirt address) {
  const auto part = parts_.find(page_of(address) >> kPagesShift);
  const auto page = pages_.find(page_of(address));
  const std::size_t here =
      page == pages_.end() || page->second.words.empty() ? 0 : page->second.words.size() - 1;
  const std::uint32_t waiting = page == pages_.end() ? 1 : page->second.waiting + 1;
  const std::uint64_t reserved = page == pages_.end() ? 0 : page->second.reserved;
  const std::uint64_t wanted = size_of(here + waiting);
  const std::uint64_t for_part = part == parts_.end() ? kPagesBytes : 0;
  if (wanted - reserved + for_part > slots_.room()) return slots_.used_up();
  slots_.reserve(wanted - reserved + for_part);
  parts_[page_of(address) >> kPagesShift];
  Page& now = pages_[page_of(address)];
  now.waiting = waiting;
  now.reserved = wanted;
  return {};
}

bool ShimTable::is_enabled(GuestVirt address) const {
  const auto page = pages_.find(page_of(address));
  if (page == pages_.end()) return false;
  const auto word = find_word(page->second.words, address);
  return word != page->second.words.end() && (*word & kSlotUnits) != 0;
}

/// The words of a page's block with these addresses, sorted ones that lie there, enabled.
ShimTable::Words ShimTable::words_with(const Page& page,
                                       std::span<const GuestVirt> addresses) const {
  Words added, all;
  for (const GuestVirt address : addresses) {
    const std::uint64_t slot = slot_of(address) - layout_.slots;
    added.push_back(place_in_page(address) |
                    static_cast<std::uint32_t>(slot >> layout_.unit_shift));
  }
  const auto place = [](std::uint32_t word) { return word & ~kSlotUnits; };
  const std::span<const std::uint32_t> before =
      page.words.empty() ? std::span<const std::uint32_t>()
                         : std::span<const std::uint32_t>(page.words).subspan(1);
  all.push_back(0);
  // Of equal ones, the first range's come, and those are new.
  std::ranges::set_union(added, before, std::back_inserter(all), {}, place, place);
  all.front() = static_cast<std::uint32_t>(all.size() - 1);
  return all;
}

/// An error of want of room comes before anything is written.
Result<void> ShimTable::enable(std::span<const GuestVirt> addresses) {
  std::vector<GuestVirt> sorted(addresses.begin(), addresses.end());
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (const GuestVirt address : sorted) {
    if (knows(address)) continue;
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is no trap point", address.raw()));
  }
  if (presence_.state() != ShimState::There) return region_gone();
  std::vector<NewBlock> changed, added;
  for (auto rest = std::span<const GuestVirt>(sorted); !rest.empty();) {
    const std::uint32_t number = page_of(rest.front());
    const auto end = std::ranges::find_if(
        rest, [number](GuestVirt address) { return page_of(address) != number; });
    const auto here = rest.first(static_cast<std::size_t>(end - rest.begin()));
    Words words = words_with(pages_.at(number), here);
    auto& blocks = words.size() == pages_.at(number).words.size() ? changed : added;
    blocks.push_back({number, pages_.at(number).block, std::move(words)});
    rest = rest.subspan(here.size());
  }
  TRY(allocate(added));
  for (NewBlock& block : changed) {
    Words& words = pages_.at(block.page).words;
    if (!change(block.at, bytes_of(words), bytes_of(block.words))) return region_gone();
    words = std::move(block.words);
  }
  return add_blocks(std::move(added));
}

/// Places for the blocks, and for the pages' words that lead to them.
Result<void> ShimTable::allocate(std::span<NewBlock> blocks) {
  for (NewBlock& block : blocks) {
    std::uint64_t& reserved = pages_.at(block.page).reserved;
    block.at = TRY(slots_.allocate_block(size_of(block.words.size() - 1), reserved));
    reserved = 0;
    Part& part = parts_.at(block.page >> kPagesShift);
    if (part.at == 0) part.at = TRY(slots_.allocate_block(kPagesBytes, kPagesBytes));
  }
  return {};
}

/// Writes bytes of whose words the guest has those of `before`; false where it has others, but for
/// those of `after`. Eight bytes at a time, which nobody sees half done; by copies all at once,
/// because each would be two system calls, and the guest stands still.
bool ShimTable::change(std::uint64_t at, std::span<const std::byte> before,
                       std::span<const std::byte> after) {
  const std::size_t count = divide_up(after.size(), sizeof(std::uint64_t));
  std::vector<std::uint64_t> was(count), wanted(count), now(count);
  std::ranges::copy(before, std::as_writable_bytes(std::span(was)).begin());
  std::ranges::copy(after, std::as_writable_bytes(std::span(wanted)).begin());
  if (!region_.is_mapped()) {
    if (!region_.read(at, std::as_writable_bytes(std::span(now)))) return false;
    for (std::size_t n = 0; n < count; ++n) {
      if (now[n] != was[n] && now[n] != wanted[n]) return false;
    }
    return now == wanted || region_.write(at, std::as_bytes(std::span(wanted)));
  }
  for (std::size_t n = 0; n < count; ++n) {
    if (was[n] == wanted[n]) continue;
    std::uint64_t expected = was[n];
    const std::uint64_t word = at + sizeof(std::uint64_t) * n;
    if (!region_.replace(word, expected, wanted[n]) && expected != wanted[n]) return false;
  }
  return true;
}

/// By page.
Result<void> ShimTable::add_blocks(std::vector<NewBlock> blocks) {
  if (!write_blocks(blocks) || !lead_to(blocks)) return region_gone();
  for (NewBlock& block : blocks) {
    Page& page = pages_.at(block.page);
    const std::size_t before = std::max<std::size_t>(page.words.size(), 1);
    page.waiting -= static_cast<std::uint32_t>(block.words.size() - before);
    page.block = block.at;
    page.words = std::move(block.words);
    if (page.waiting == 0) continue;
    page.reserved = size_of(page.words.size() - 1 + page.waiting);
    slots_.reserve(page.reserved);
  }
  return {};
}

/// Nothing leads there yet. Those that touch are one write.
bool ShimTable::write_blocks(std::span<const NewBlock> blocks) {
  std::vector<std::byte> bytes;
  std::uint64_t begin = 0;
  for (const NewBlock& block : blocks) {
    if (begin + bytes.size() != block.at) {
      if (!bytes.empty() && !region_.write(begin, bytes)) return false;
      bytes.clear();
      begin = block.at;
    }
    const auto words = bytes_of(block.words);
    bytes.insert(bytes.end(), words.begin(), words.end());
    bytes.resize(block.at - begin + size_of(block.words.size() - 1));
  }
  return bytes.empty() || region_.write(begin, bytes);
}

bool ShimTable::lead_to(std::span<const NewBlock> blocks) {
  while (!blocks.empty()) {
    const std::uint32_t number = blocks.front().page >> kPagesShift;
    Part& part = parts_.at(number);
    PageBlocks after = part.blocks;
    for (; !blocks.empty() && blocks.front().page >> kPagesShift == number;
         blocks = blocks.subspan(1)) {
      after[blocks.front().page % SHIM_PAGES_WORDS] = units_to(blocks.front().at);
    }
    const bool is_new = top_[number] == 0;
    const bool led =
        is_new ? add_part(number, after) : change(part.at, bytes_of(part.blocks), bytes_of(after));
    if (!led) return false;
    part.blocks = after;
  }
  return true;
}

bool ShimTable::add_part(std::uint32_t number, const PageBlocks& blocks) {
  const std::uint64_t at = parts_.at(number).at;
  const auto before = top_;
  top_[number] = units_to(at);
  return region_.write(at, bytes_of(blocks)) &&
         change(layout_.slots, bytes_of(before), bytes_of(top_));
}

std::optional<std::uint8_t> ShimTable::list_at(GuestVirt address) const {
  const auto bucket = bucket_of(address);
  const std::uint64_t kind = bucket ? entry(*bucket) >> kRecordingShift : 0;
  if ((kind & SHIM_SLOT_RECORDS) == 0) return std::nullopt;
  return static_cast<std::uint8_t>(kind & ~SHIM_SLOT_RECORDS);
}

std::uint64_t ShimTable::slot_of(GuestVirt address) const {
  const auto bucket = bucket_of(address);
  return bucket ? slot_of_entry(entry(*bucket)) : 0;
}

/// Only the shared word changes: our own copy must stay as it is beside a thread that polls, and a
/// trap that looked its slot up before still waits for an answer.
void ShimTable::disable(GuestVirt address) {
  if (!is_enabled(address) || presence_.state() != ShimState::There) return;
  Page& page = pages_.at(page_of(address));
  const auto word = find_word(page.words, address);
  const std::size_t first = static_cast<std::size_t>(word - page.words.begin()) / 2 * 2;
  const std::size_t size = std::min<std::size_t>(2, page.words.size() - first);
  std::uint64_t before = 0, after = 0;
  std::memcpy(&before, &page.words[first], sizeof(std::uint32_t) * size);
  *word &= ~kSlotUnits;
  std::memcpy(&after, &page.words[first], sizeof(std::uint32_t) * size);
  region_.replace(page.block + sizeof(std::uint32_t) * first, before, after);
}

std::optional<GuestVirt> ShimTable::trap_point_in(std::uint64_t slot_begin,
                                                  std::uint64_t slot_end) const {
  std::optional<GuestVirt> found;
  for (Bucket bucket = 0; bucket < entries_.size(); ++bucket) {
    const std::uint64_t one = entry(bucket);
    const std::uint64_t slot = slot_of_entry(one);
    if (one == 0 || slot < slot_begin || slot >= slot_end) continue;
    if (found) return std::nullopt;
    found = address_of(key_of(one));
  }
  return found;
}

namespace {

/// Reads the guest's words; empty where they do not all lie in the slots.
template <class Word>
std::vector<Word> read_words(const GuestMemory& memory, const ShimLayout& layout, std::uint64_t at,
                             std::size_t count) {
  const std::uint64_t bytes = sizeof(Word) * count;
  if (at < layout.slots || bytes > layout.slots_bytes ||
      at - layout.slots > layout.slots_bytes - bytes) {
    return {};
  }
  std::vector<Word> words(count);
  const bool read =
      memory.read(layout.place.wrapping_add(at), std::as_writable_bytes(std::span(words)));
  return read ? words : std::vector<Word>();
}

/// Adds what a block has, of no more than `left` words: those of honest tables lie apart.
void read_block(const GuestMemory& memory, const ShimLayout& layout, std::uint64_t at,
                GuestVirt page, std::size_t& left, std::vector<LeftEntry>& found) {
  const auto count = read_words<std::uint32_t>(memory, layout, at, 1);
  if (count.empty() || count[0] > SHIM_PAGE || count[0] >= left) {
    left -= std::min<std::size_t>(left, 1);
    return;
  }
  left -= 1 + count[0];
  for (const std::uint32_t word :
       read_words<std::uint32_t>(memory, layout, at + sizeof(std::uint32_t), count[0])) {
    const std::uint64_t distance = std::uint64_t{word & kSlotUnits} << layout.unit_shift;
    if (distance >= layout.slots_bytes) continue;
    const GuestVirt address = page.wrapping_add(word >> SHIM_ENTRY_SLOT_BITS);
    if (!ShimTable::has_key(address)) continue;
    found.push_back({address, distance == 0 ? 0 : layout.slots + distance});
  }
}

}  // namespace

std::vector<LeftEntry> read_table(const GuestMemory& memory, const ShimLayout& layout) {
  const auto place = [&](std::uint16_t units) {
    return layout.slots + units * layout.block_unit();
  };
  std::vector<LeftEntry> found;
  const auto top = read_words<std::uint16_t>(memory, layout, layout.slots, SHIM_TABLE_WORDS);
  std::size_t parts = 0,
              left = std::min(layout.slots_bytes / sizeof(std::uint32_t), kMostLeftWords);
  for (std::uint32_t part = 0; part < top.size(); ++part) {
    if (top[part] == 0 || ++parts * kPagesBytes > layout.slots_bytes) continue;
    const auto blocks =
        read_words<std::uint16_t>(memory, layout, place(top[part]), SHIM_PAGES_WORDS);
    for (std::uint32_t page = 0; page < blocks.size() && left != 0; ++page) {
      if (blocks[page] == 0) continue;
      const std::uint32_t key = part << SHIM_TABLE_SHIFT | page << SHIM_PAGE_SHIFT;
      read_block(memory, layout, place(blocks[page]), address_of(key), left, found);
    }
  }
  return found;
}

}  // namespace ringside::vmm
