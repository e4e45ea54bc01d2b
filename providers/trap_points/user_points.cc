// In this file, top to bottom: files, making points, slots, how the stub knows them.
#include "providers/trap_points/user_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "vmm/base/numbers.h"
#include "vmm/linux/shim_facts.h"

namespace ringside::providers {
namespace {

using guest_linux::FilePages;

/// Lays what stood at `from` over those bytes of `out`, which begins at `offset`.
void overlay(std::span<std::byte> out, std::uint64_t offset, std::uint64_t from,
             std::span<const std::byte> bytes) {
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const std::uint64_t at = from + n - offset;
    if (at < out.size()) out[at] = bytes[n];
  }
}

}  // namespace

UserPoints::UserPoints(vmm::GuestMemory& memory, const guest_linux::Kernel& kernel,
                       guest_linux::HostFiles* host)
    : memory_(memory), kernel_(kernel), guest_(memory, kernel, host) {}

/// Functions of which something was made stay as they are.
Result<UserPoints::File*> UserPoints::find_file(GuestVirt inode, Servers servers) {
  const auto kernel = guest_.reader();
  const auto pages = guest_.pages_of(kernel, inode);
  if (!pages) return fail(ErrorCode::Unsupported, "the file cannot be found in the guest's memory");
  const auto known = files_.find(inode);
  if (known != files_.end() && known->second.known.identity == pages->identity()) {
    File& file = known->second;
    const bool is_new = servers == Servers::Asked && file.known.servers == Servers::NotAsked;
    const bool is_used = !file.pages.empty() || !file.points.empty();
    if (!is_new || file.known.functions.has_all() || is_used) return &file;
  }
  if (known != files_.end() && !known->second.points.empty()) {
    return fail(ErrorCode::Unsupported, "the file has changed since it was looked at");
  }
  File fresh{.known = guest_.read(*pages, servers), .pages = {}, .points = {}};
  return &files_.insert_or_assign(inode, std::move(fresh)).first->second;
}

std::size_t UserPoints::read(GuestVirt inode, std::uint64_t offset,
                             std::span<std::byte> out) const {
  const auto kernel = guest_.reader();
  const auto pages = guest_.pages_of(kernel, inode);
  const std::size_t length = pages ? pages->read(offset, out) : 0;
  const auto file = files_.find(inode);
  if (file == files_.end()) return length;
  const auto& points = file->second.points;
  for (auto each = points.lower_bound(round_down(offset, arch::kPageSize));
       each != points.end() && each->second.page() * arch::kPageSize < offset + length; ++each) {
    const UserPoint& point = each->second;
    const auto part = out.first(length);
    if (point.is_written) overlay(part, offset, point.slot_offset(), point.before);
    if (point.is_armed) {
      overlay(part, offset, point.site.offset, std::span(point.site.instruction).first(1));
    }
  }
  return length;
}

Result<UserSite> UserPoints::site_at(GuestVirt inode, const File& file,
                                     std::uint64_t offset) const {
  UserSite site =
      TRY(examine_user_site(reader_of(inode), offset, file.known.functions.fixed_address(offset)));
  if (site.calls && TRY(guest_linux::has_user_shadow_stacks(memory_, kernel_))) {
    return fail(ErrorCode::Unsupported,
                "a displaced call jumps, which shadow stacks forbid: the guest's processor has "
                "them for processes (CET)");
  }
  return site;
}

Result<UserPoint> UserPoints::make_point(GuestVirt inode, const File& file, std::uint64_t offset,
                                         bool is_in_memory) const {
  UserPoint point{.site = {.offset = offset, .instruction = {}}, .code = {}, .before = {}};
  point.is_expected = !is_in_memory && file.expected.contains(offset);
  if (!point.is_expected) point.site = TRY(site_at(inode, file, offset));
  return point;
}

Result<UserPoint> UserPoints::make_go_point(GuestVirt inode, File& file, std::uint64_t offset) {
  const ReadFile text = reader_of(inode);
  if (!file.spare_return) file.spare_return = find_spare_return(text, file.known.functions);
  UserPoint point{
      .site = TRY(examine_go_site(text, offset, file.spare_return)), .code = {}, .before = {}};
  if (know_by_text(inode, point)) return point;
  return fail(ErrorCode::Unsupported, "its page cannot be told from other pages with probes");
}

/// By bytes that are as they are whichever probes stand there: those that are `steady`. In Go,
/// places for probes begin with one of the first two; the others are those that many pages have.
bool UserPoints::know_by_text(GuestVirt inode, UserPoint& point,
                              const std::bitset<arch::kPageSize>* steady) {
  constexpr std::byte kTellNothing[] = {std::byte{0x48}, std::byte{0xc3}, std::byte{0xcc},
                                        std::byte{0}};
  constexpr unsigned kFewest = 5;
  const auto page = whole_page(inode, point.page());
  if (!page) return false;
  for (std::uint64_t n = 0; n < arch::kPageSize; n += steady != nullptr ? 1 : kKnownBytes) {
    point.code_from =
        static_cast<std::uint16_t>((point.in_page() + 1 + n) % (arch::kPageSize - kKnownBytes + 1));
    std::array<std::byte, kKnownBytes> mask{}, bytes{};
    unsigned count = 0;
    for (std::size_t at = 0; at < kKnownBytes; ++at) {
      const std::byte one = (*page)[point.code_from + at];
      if (std::ranges::find(kTellNothing, one) != std::end(kTellNothing)) continue;
      if (steady != nullptr && !(*steady)[point.code_from + at]) continue;
      mask[at] = std::byte{0xff}, bytes[at] = one;
      ++count;
    }
    std::memcpy(&point.mask, mask.data(), sizeof point.mask);
    std::memcpy(&point.bytes, bytes.data(), sizeof point.bytes);
    if (count < kFewest || !is_told_apart(inode, point)) continue;
    places_.emplace(point.in_page(), std::pair(inode, point.site.offset));
    return keys_.insert(key_of(describe(inode, point))).second;
  }
  return false;
}

/// From others at the same place in their pages: what is known by its text is looked for there, and
/// must not be found.
bool UserPoints::is_told_apart(GuestVirt inode, const UserPoint& point) const {
  const auto matches = [](const UserPoint& one, std::span<const std::byte> text) {
    std::uint64_t word = 0;
    std::memcpy(&word, &text[one.code_from], sizeof word);
    return one.has_no_slot() && (word & one.mask) == one.bytes;
  };
  std::optional<std::vector<std::byte>> page;  // of the point, once it is compared with another
  const auto [first, last] = places_.equal_range(point.in_page());
  return std::all_of(first, last, [&](const auto& each) {
    const auto& [other_inode, offset] = each.second;
    const auto& points = files_.at(other_inode).points;
    const auto other = points.find(offset);
    if (other == points.end()) return true;
    const bool is_same = other_inode == inode && other->second.page() == point.page();
    if (is_same || (!point.has_no_slot() && !other->second.has_no_slot())) return true;
    if (!page) page = whole_page(inode, point.page());
    const auto text = whole_page(other_inode, other->second.page());
    return page && text && !matches(point, *text) && !matches(other->second, *page);
  });
}

/// Its original text; empty: it is not in memory.
std::optional<std::vector<std::byte>> UserPoints::whole_page(GuestVirt inode,
                                                             std::uint64_t page) const {
  std::vector<std::byte> text(arch::kPageSize);
  if (read(inode, page * arch::kPageSize, text) != text.size()) return std::nullopt;
  return text;
}

Result<UserPoint*> UserPoints::find_point(GuestVirt inode, std::uint64_t offset) {
  File* const file = TRY(find_file(inode));
  if (const auto known = file->points.find(offset); known != file->points.end()) {
    if (known->second.is_lost)
      return fail(ErrorCode::Unsupported, "the guest has changed its text");
    return &known->second;
  }
  const auto kernel = guest_.reader();
  const auto pages = guest_.pages_of(kernel, inode);
  if (!pages || !file->known.functions.is_text(offset)) {
    return fail(ErrorCode::Unsupported, "no text of the file is there");
  }
  const auto spare = file->spare_returns.find(offset / arch::kPageSize);
  if (spare != file->spare_returns.end() && spare->second == offset) {
    return fail(ErrorCode::Unsupported, "returns go on there that cannot be displaced");
  }
  const bool is_in_memory = pages->frame(offset / arch::kPageSize).has_value();
  UserPoint point =
      TRY(file->known.functions.is_of_go() ? make_go_point(inode, *file, offset)
                                           : make_point(inode, *file, offset, is_in_memory));
  TRY(guest_.check_page(*pages, point.page()));
  if (!point.is_expected && !point.has_no_slot()) TRY(find_slot(inode, *file, point));
  ++examined_;
  return &file->points.emplace(offset, std::move(point)).first->second;
}

Result<void> UserPoints::find_slot(GuestVirt inode, File& file, UserPoint& point) {
  if (point.site.slot_bytes > SHIM_USER_SLOT_BYTES) {
    return fail(ErrorCode::Unsupported, "its displaced instruction is too long");
  }
  PageText* const text = TRY(text_of(inode, file, point.page()));
  if (take_slot(inode, point, text->rooms)) return {};
  return let_stub_do(inode, file, point);
}

Result<PageText*> UserPoints::text_of(GuestVirt inode, File& file, std::uint64_t page) {
  const auto known = file.pages.find(page);
  if (known != file.pages.end()) return &known->second;
  auto text = TRY(decode_page(reader_of(inode), file.known.functions, page));
  return &file.pages.emplace(page, std::move(text)).first->second;
}

/// A place in the point's page where its returns may go on: a process may have no other page
/// mapped. A return that is one gets no trap point from now on.
std::optional<std::uint64_t> UserPoints::spare_return_of(GuestVirt inode, File& file,
                                                         const UserPoint& point,
                                                         const PageText& text) {
  const auto known = file.spare_returns.find(point.page());
  if (known != file.spare_returns.end()) return known->second;
  auto found = find_inner_return(reader_of(inode), point.page(), text);
  if (!found) {
    found = find_free_return(reader_of(inode), file.known.functions, point.page(),
                             [&](std::uint64_t offset) {
                               return offset != point.site.offset && !file.points.contains(offset);
                             });
  }
  return file.spare_returns.emplace(point.page(), found).first->second;
}

/// Where there is no room for its displaced instruction.
Result<void> UserPoints::let_stub_do(GuestVirt inode, File& file, UserPoint& point) {
  const PageText* const text = TRY(text_of(inode, file, point.page()));
  const auto spare =
      is_plain_return(point.site) ? spare_return_of(inode, file, point, *text) : std::nullopt;
  const auto done = done_by_stub(point.site, spare);
  if (!done) {
    return fail(
        ErrorCode::Unsupported,
        fmt::format("its page has no {} unused bytes in a row for the displaced instruction",
                    point.site.slot_bytes));
  }
  UserPoint other = point;
  other.site = *done;
  other.slot = 0, other.code.clear(), other.before.clear();
  if (!know_by_text(inode, other, &text->inner)) {
    return fail(ErrorCode::Unsupported,
                "its page has no unused bytes, and cannot be told from other pages with probes");
  }
  point = std::move(other);
  return {};
}

/// The stub tells trap points apart by offsets and slots, so no two may have the same ones.
bool UserPoints::take_slot(GuestVirt inode, UserPoint& point, std::vector<PageRoom>& rooms) {
  const std::size_t size = point.site.slot_bytes;
  if (!is_told_apart(inode, point)) return false;
  for (std::size_t n = 0; n < rooms.size(); ++n) {
    const PageRoom room = rooms[n];
    for (std::size_t at = room.begin; at + size <= room.end; ++at) {
      point.slot = static_cast<std::uint16_t>(at);
      auto code = displace_user_site(point.site, point.slot_offset());
      point.before.resize(size);
      const std::size_t there = read(inode, point.slot_offset(), point.before);
      if (!code || there != size) return false;
      point.code = std::move(*code);
      point.code_from = point.slot;
      if (!keys_.insert(key_of(describe(inode, point))).second) continue;
      const auto end = static_cast<std::uint16_t>(at + size);
      rooms[n].end = point.slot;
      if (end < room.end) rooms.push_back({end, room.end});
      places_.emplace(point.in_page(), std::pair(inode, point.site.offset));
      return true;
    }
  }
  return false;
}

vmm::UserTrapPoint UserPoints::describe(GuestVirt inode, const UserPoint& point) {
  vmm::UserTrapPoint made;
  made.offset = point.in_page();
  made.replaced = point.site.instruction.front();
  made.inode = inode;
  made.page = point.page();
  made.slot = point.slot;
  made.before = point.before;
  made.semaphore = point.semaphore.value_or(0);
  if (point.has_no_slot()) {
    made.code = point.code_from;
    made.mask = point.mask;
    made.bytes = point.bytes;
    made.distance = point.site.goes_on.value_or(0);
    made.down = point.site.down;
    made.makes_frame = point.site.makes_frame;
    return made;
  }
  // The slot's end: the jump back from there tells whose it is.
  const std::uint64_t end = point.slot + point.code.size();
  made.code = static_cast<std::uint16_t>(end - std::min<std::uint64_t>(end, kKnownBytes));
  made.distance = point.slot - point.in_page();
  std::array<std::byte, kKnownBytes> mask{}, bytes{};
  for (std::size_t n = 0; n < point.code.size(); ++n) {
    if (point.slot + n < made.code) continue;
    const std::size_t at = point.slot + n - made.code;
    mask.at(at) = std::byte{0xff};
    bytes.at(at) = point.code[n];
  }
  std::memcpy(&made.mask, mask.data(), sizeof made.mask);
  std::memcpy(&made.bytes, bytes.data(), sizeof made.bytes);
  return made;
}

}  // namespace ringside::providers
