// In this file, top to bottom: files, trap points, arming, restoring, stepping aside, notices.
#include "providers/trap_points/user_point_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/check.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/shim_facts.h"

namespace ringside::providers {
namespace {

using guest_linux::FileIdentity, guest_linux::FilePages, guest_linux::FileRange;

constexpr std::uint64_t kTextPage = arch::kPageSize;
/// A process that reads or writes the file is given so much time for each of its calls.
constexpr auto kAway = std::chrono::seconds(5);
/// take_out(): how often, and how far apart.
constexpr unsigned kTakeOutTries = 200;
constexpr auto kTakeOutWait = std::chrono::milliseconds(10);
/// How often it is looked whether all are there.
constexpr auto kLook = std::chrono::seconds(1);
constexpr std::array kInt3{arch::kBreakpoint};

void append(std::vector<vmm::CodeWrite>& writes, GuestPhys at, std::span<const std::byte> bytes) {
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    writes.push_back({at.wrapping_add(n), std::to_integer<std::uint8_t>(bytes[n])});
  }
}

Result<void> write_in_order(vmm::PausedMachine& machine, std::vector<vmm::CodeWrite>& writes) {
  std::ranges::sort(writes, {}, &vmm::CodeWrite::at);
  const auto is_same = [](const auto& one, const auto& next) { return one.at == next.at; };
  writes.erase(std::unique(writes.begin(), writes.end(), is_same), writes.end());
  return writes.empty() ? Result<void>() : machine.write_code(writes);
}

}  // namespace

UserPointTable::UserPointTable(vmm::Machine& machine, vmm::TrapTable* shim,
                               guest_linux::Kernel& kernel, guest_linux::HostFiles* host)
    : machine_(machine),
      shim_(shim),
      kernel_(kernel),
      standing_(guest_linux::UserStanding::prepare(machine.memory(), kernel)),
      points_(machine.memory(), kernel, host) {}

void UserPointTable::name_file(GuestVirt inode, std::string path) {
  const std::lock_guard lock(lock_);
  guest_.set_path(inode, std::move(path));
}

void UserPointTable::note_name(GuestVirt inode, std::string name) {
  const std::lock_guard lock(lock_);
  if (const auto file = files_.find(inode); file != files_.end()) {
    file->second.name = std::move(name);
  }
}

std::span<const guest_linux::StaticProbe> UserPointTable::static_probes_of(GuestVirt inode,
                                                                           Servers servers) {
  const std::lock_guard lock(lock_);
  return guest_.static_probes_of(inode, servers);
}

const guest_linux::FileFunctions* UserPointTable::functions_of(GuestVirt inode, Servers servers) {
  const std::lock_guard lock(lock_);
  const auto file = points_.find_file(inode, servers);
  return file ? &(*file)->known.functions : nullptr;
}

Result<guest_linux::FunctionTypes> UserPointTable::types_of(
    GuestVirt inode, const guest_linux::FileFunction& function, TypeGraph& graph) {
  const std::lock_guard lock(lock_);
  File* const file = TRY(points_.find_file(inode));
  return guest_.types_of(file->known, function, graph);
}

std::optional<guest_linux::FilePiece> UserPointTable::piece_at(GuestVirt inode,
                                                               std::uint64_t offset) {
  const std::lock_guard lock(lock_);
  const auto file = points_.find_file(inode);
  return file ? guest_.piece_at((*file)->known, offset) : std::nullopt;
}

std::size_t UserPointTable::read(GuestVirt inode, std::uint64_t offset,
                                 std::span<std::byte> out) const {
  const std::lock_guard lock(lock_);
  return points_.read(inode, offset, out);
}

Result<void> UserPointTable::begin() {
  if (has_begun_) return {};
  CHECK(shim_ != nullptr);
  const auto facts = guest_linux::find_fetch_facts(machine_.memory(), kernel_);
  if (!facts) {
    return fail(ErrorCode::Unsupported, "the kernel does not tell where it maps its RAM");
  }
  TRY(shim_->serve_processes(*facts));
  has_begun_ = true;
  return {};
}

Result<UserPoint*> UserPointTable::find_point(GuestVirt inode, std::uint64_t offset) {
  if (standing_) return points_.find_point(inode, offset);
  return fail(ErrorCode::Unsupported, "the kernel's types do not tell where its threads are");
}

Result<void> UserPointTable::examine(GuestVirt inode, std::uint64_t offset) {
  const std::lock_guard lock(lock_);
  TRY(find_point(inode, offset));
  return {};
}

Result<GuestVirt> UserPointTable::add(GuestVirt inode, std::uint64_t offset,
                                      std::optional<std::uint64_t> semaphore) {
  const std::lock_guard lock(lock_);
  Point& point = *TRY(find_point(inode, offset));
  if (semaphore && point.semaphore && *semaphore != *point.semaphore) {
    return fail(ErrorCode::Unsupported,
                "another static probe at the same place has another semaphore");
  }
  const bool is_guarded_now = semaphore && !std::exchange(point.semaphore, semaphore);
  if (point.name.raw() == 0) {
    TRY(begin());
    point.name = TRY(point.is_expected ? shim_->reserve_user_point()
                                       : shim_->add_user_point(UserPoints::describe(inode, point)));
    names_[point.name] = {inode, offset};
  } else if (is_guarded_now) {
    TRY(shim_->note_semaphore(point.name, *semaphore));
  }
  const bool is_first = point.users++ == 0;
  if (point.semaphore && (is_first || is_guarded_now)) {
    semaphores_.add_user(inode, *point.semaphore);
  }
  return point.name;
}

void UserPointTable::expect(GuestVirt inode, std::uint64_t offset) {
  const std::lock_guard lock(lock_);
  const auto file = points_.find_file(inode);
  const auto kernel = guest_.reader();
  const auto pages = file && expects_pages_ ? guest_.pages_of(kernel, inode) : std::nullopt;
  if (pages && !pages->frame(offset / kTextPage)) (*file)->expected.insert(offset);
}

/// Once it was told to be at the function's first byte, it stays there.
std::uint64_t UserPointTable::entry_of(GuestVirt inode, const guest_linux::FileFunction& function) {
  const std::lock_guard lock(lock_);
  const auto file = points_.find_file(inode);
  const auto kernel = guest_.reader();
  const auto pages = file ? guest_.pages_of(kernel, inode) : std::nullopt;
  if (pages && !(*file)->expected.contains(function.offset)) {
    const bool is_there = pages->frame(function.offset / kTextPage).has_value();
    if (is_there || !expects_pages_) return user_entry(points_.reader_of(inode), function);
    (*file)->expected.insert(function.offset);
  }
  return function.offset;
}

/// Its page has come: examines its text, and tells the stub of it. NotFound: another page is
/// needed, too, which is not in memory.
Result<void> UserPointTable::settle(const FilePages& pages, File& file, Point& point) {
  const GuestVirt inode = pages.inode();
  const std::uint64_t first = point.site.offset;
  const std::uint64_t entry = user_entry(points_.reader_of(inode), {.name = {}, .offset = first});
  if (entry != first && file.points.contains(entry)) {
    return fail(ErrorCode::Unsupported, "another probe stands at its first instruction");
  }
  Point found = point;
  found.site = TRY(points_.site_at(inode, file, entry));
  if (found.page() != point.page()) {
    return fail(ErrorCode::Unsupported, "its first instruction lies in another page");
  }
  TRY(points_.find_slot(inode, file, found));
  TRY(shim_->describe_user_point(found.name, UserPoints::describe(inode, found)));
  TRY(shim_->enable_user_points({&found.name, 1}));
  found.is_expected = false, found.is_linked = true;
  point = std::move(found);
  return {};
}

/// A page that may not be written now is looked at later.
bool UserPointTable::is_settled(const FilePages& pages, File& file, Point& point) {
  if (!point.is_expected) return true;
  if (!guest_.check_page(pages, point.page())) return false;
  const auto done = settle(pages, file, point);
  if (done) return true;
  if (done.error().code == ErrorCode::NotFound) return false;
  point.is_lost = true;
  if (unsettled_++ == 0) why_unsettled_ = done.error().message;
  return false;
}

std::size_t UserPointTable::worth() const {
  constexpr std::size_t kEach = 15;  // 98 bytes, where slots are shared 6.5
  return kEach * points_.examined();
}

/// All of a description may be anything: what it leads to is written only where an int3 and the
/// beginning of its slot stand. A page that is not in the page cache may still be in copies.
void UserPointTable::take_over(std::span<const vmm::ShimRemains::UserPoint> left) {
  const std::lock_guard lock(lock_);
  const auto kernel = guest_.reader();
  for (const auto& [point, replaced] : left) {
    const GuestVirt inode(point.inode);
    const std::uint64_t end = point.slot + std::uint64_t{point.slot_bytes};
    const std::uint64_t known_from = std::max(point.slot, point.code);
    const bool has_slot = point.slot_bytes != 0;
    const bool is_whole =
        has_slot ? point.code + kKnownBytes >= end && known_from < end : point.mask != 0;
    if (!arch::in_kernel_half(inode) || !is_whole) continue;
    // The stub knows the end of a slot that is longer.
    const std::uint64_t bytes = point.bytes & point.mask;
    const auto known =
        has_slot
            ? std::as_bytes(std::span(&bytes, 1)).subspan(known_from - point.code, end - known_from)
            : std::span<const std::byte>();
    const auto before = std::as_bytes(std::span(point.before)).first(point.slot_bytes);
    const std::uint64_t offset = point.page * kTextPage + point.offset;
    Point& taken = files_[inode].points[offset];
    taken.site.offset = offset;
    taken.site.instruction = {replaced};
    taken.slot = point.slot;
    taken.code.assign(known.begin(), known.end());
    taken.code_from = has_slot ? static_cast<std::uint16_t>(known_from) : point.code;
    if (!has_slot) taken.mask = point.mask, taken.bytes = bytes;
    taken.before.assign(before.begin(), before.end());
    taken.is_linked = true;
    const auto pages = guest_.pages_of(kernel, inode);
    const auto frame = pages ? pages->frame(point.page) : std::nullopt;
    taken.is_armed = frame && has_point({&taken, *frame});
    // Only where the trap point proves that it is the same file.
    if (!taken.is_armed || point.semaphore == 0) continue;
    files_[inode].known.identity = pages->identity();
    semaphores_.take_over(inode, point.semaphore);
  }
}

void UserPointTable::release(GuestVirt name) {
  const std::lock_guard lock(lock_);
  const auto [inode, offset] = names_.at(name);
  Point& point = files_.at(inode).points.at(offset);
  CHECK(point.users > 0);
  --point.users;
  if (point.semaphore && point.users == 0) semaphores_.release(inode, *point.semaphore);
}

bool UserPointTable::owns(GuestVirt name) const {
  const std::lock_guard lock(lock_);
  return names_.contains(name);
}

/// As far as they lie in the page.
bool UserPointTable::stand(GuestPhys frame, std::uint16_t at,
                           std::span<const std::byte> bytes) const {
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), kTextPage - at));
  std::vector<std::byte> there(bytes.size());
  return machine_.memory().read(frame.wrapping_add(at), there) && std::ranges::equal(there, bytes);
}

std::optional<std::uint64_t> UserPointTable::load_word(GuestPhys at) const {
  std::uint64_t word = 0;
  const bool is_read = machine_.memory().read(at, std::as_writable_bytes(std::span(&word, 1)));
  return is_read ? std::optional(word) : std::nullopt;
}

/// Whether the page has the text as it was before.
bool UserPointTable::has_text(const Place& place) const {
  const Point& point = *place.point;
  return stand(place.frame, point.in_page(), point.site.instruction) &&
         stand(place.frame, point.slot, point.before);
}

/// Or the text that it is known by.
bool UserPointTable::has_slot(const Place& place) const {
  if (place.point->has_no_slot()) {
    const auto there = load_word(place.frame.wrapping_add(place.point->code_from));
    return there && (*there & place.point->mask) == place.point->bytes;
  }
  return stand(place.frame, place.point->code_from, place.point->code);
}

/// Whether it has the int3 and the slot.
bool UserPointTable::has_point(const Place& place) const {
  return stand(place.frame, place.point->in_page(), kInt3) && has_slot(place);
}

/// Whether it has the text that was examined, with the slot or without.
bool UserPointTable::is_ready(const Place& place) const {
  Point& point = *place.point;
  if (has_point(place)) {
    point.is_written = point.is_armed = true;  // it was away, and has come back
    return false;
  }
  if (has_text(place)) {
    point.is_written = false;  // the page may have been read anew
    return true;
  }
  point.is_lost = !point.is_written || !has_slot(place) ||
                  !stand(place.frame, point.in_page(), point.site.instruction);
  return !point.is_lost;
}

bool UserPointTable::may_be_armed(const GuestReader& kernel, GuestVirt inode, File& file) {
  if (keeps_out_ || file.is_gone || file.points.empty()) return false;
  return Clock::now() >= file.away_until && !guest_.is_written_to(kernel, inode) &&
         !guest_.may_be_swapped(kernel, inode);
}

void UserPointTable::add_ready(const FilePages& pages, File& file, Point& point,
                               std::vector<Place>& ready) {
  if (point.users == 0 || point.is_armed || point.is_lost) return;
  if (!point.is_linked && !point.is_expected) return;
  const auto frame = pages.frame(point.page());
  if (!frame || !is_settled(pages, file, point)) return;
  if (is_ready({&point, *frame})) ready.push_back({&point, *frame});
  // The guest runs: that may have been the page of somebody else by then.
  if (point.is_lost && pages.frame(point.page()) != frame) point.is_lost = false;
}

std::vector<UserPointTable::Place> UserPointTable::ready_places(const GuestReader& kernel) {
  std::vector<Place> ready;
  for (auto& [inode, file] : files_) {
    if (!may_be_armed(kernel, inode, file)) continue;
    const auto pages = guest_.pages_of(kernel, inode);
    if (!pages || pages->identity().number != file.known.identity.number) {
      file.is_gone = true;
      notices_.push_back(fmt::format("{} is gone from the guest, and its probes with it",
                                     file.name.empty() ? "a file with probes" : file.name));
      continue;
    }
    const bool backed = guest_.has_disk(kernel, inode);
    for (auto& [offset, point] : file.points) {
      if (backed && pages->is_unsaved(point.page())) continue;
      add_ready(*pages, file, point, ready);
    }
  }
  return ready;
}

/// Of pages that come. They are the kernel's copy of the file, also those that it has read before
/// and maps now.
std::vector<UserPointTable::Place> UserPointTable::ready_places(GuestVirt inode, Pages arriving) {
  std::vector<Place> ready;
  const auto kernel = guest_.reader();
  const auto known = files_.find(inode);
  if (known == files_.end() || !may_be_armed(kernel, inode, known->second)) return ready;
  File& file = known->second;
  const auto pages = guest_.pages_of(kernel, inode);
  if (!pages || pages->identity().number != file.known.identity.number) return ready;
  const bool backed = guest_.has_disk(kernel, inode);
  const std::uint64_t end = arriving.first + arriving.count;
  for (auto each = file.points.lower_bound(arriving.first * kTextPage);
       each != file.points.end() && each->second.page() < end; ++each) {
    Point& point = each->second;
    const auto frame = pages->frame(point.page());
    if (!frame || (backed && pages->is_unsaved(point.page()))) continue;
    if (point.is_armed && !has_point({&point, *frame})) point.is_armed = point.is_written = false;
    add_ready(*pages, file, point, ready);
  }
  return ready;
}

bool UserPointTable::wants_pages(GuestVirt inode, Pages pages) {
  const std::lock_guard lock(lock_);
  return !ready_places(inode, pages).empty();
}

Result<void> UserPointTable::arrive(vmm::PausedMachine& machine, GuestVirt inode, Pages pages) {
  const std::lock_guard lock(lock_);
  return write_ready(machine, ready_places(inode, pages));
}

/// The stub knows them from now on.
Result<void> UserPointTable::link() {
  std::vector<GuestVirt> unlinked;
  for (auto& [inode, file] : files_) {
    for (auto& [offset, point] : file.points) {
      if (point.users == 0 || point.is_expected || std::exchange(point.is_linked, true)) continue;
      unlinked.push_back(point.name);
    }
  }
  return unlinked.empty() ? Result<void>() : shim_->enable_user_points(unlinked);
}

Result<void> UserPointTable::write_slots(vmm::PausedMachine& machine) {
  const std::lock_guard lock(lock_);
  TRY(link());
  std::vector<Place> places = ready_places(guest_.reader());
  for (const Place& place : places) place.point->is_written = true;
  for (const Place& copy : copies_where([](const Point& each) { return each.is_written; })) {
    if (has_text(copy)) places.push_back(copy);
  }
  std::vector<vmm::CodeWrite> slots;
  for (const auto& [point, frame] : places)
    append(slots, frame.wrapping_add(point->slot), point->code);
  return write_in_order(machine, slots);
}

Result<void> UserPointTable::arm(vmm::PausedMachine& machine) {
  const std::lock_guard lock(lock_);
  TRY(link());
  swapped_out_ = 0;
  TRY(write_ready(machine));
  TRY(write_copies(machine));
  TRY(raise_semaphores(machine));
  note_swapped_out("have no probes there, so what runs there is not seen");
  return {};
}

/// Where the guest keeps a file's page as it is on a disk, ours would get there, too.
bool UserPointTable::may_write(const GuestReader& kernel, GuestVirt inode,
                               std::uint64_t offset) const {
  const auto file = files_.find(inode);
  if (keeps_out_ || file == files_.end() || file->second.is_gone) return false;
  if (Clock::now() < file->second.away_until || guest_.is_written_to(kernel, inode)) return false;
  if (guest_.may_be_swapped(kernel, inode)) return false;
  const auto pages = guest_.pages_of(kernel, inode);
  return pages && !(guest_.has_disk(kernel, inode) && pages->is_unsaved(offset / kTextPage));
}

/// Of files that are still those that they were when they were looked at.
UserSemaphores::Find UserPointTable::bytes_finder() {
  return [this](std::span<const FileRange> ranges, Copies copies) {
    const auto kernel = guest_.reader();
    std::map<GuestVirt, bool> is_same;
    for (const FileRange& range : ranges) {
      const auto [known, is_new] = is_same.try_emplace(range.inode);
      if (!is_new) continue;
      const auto file = files_.find(range.inode);
      const auto pages = guest_.pages_of(kernel, range.inode);
      known->second =
          file != files_.end() && pages && pages->identity() == file->second.known.identity;
    }
    // A semaphore looks like any number, so none is sought where the file is not mapped any more.
    auto found = find_bytes(ranges, copies, {});
    std::erase_if(found, [&](const auto& each) { return !is_same[ranges[each.range].inode]; });
    return found;
  };
}

Result<void> UserPointTable::raise_semaphores(vmm::PausedMachine& machine) {
  const auto kernel = guest_.reader();
  return semaphores_.raise(machine, bytes_finder(), [&](GuestVirt inode, std::uint64_t offset) {
    return may_write(kernel, inode, offset);
  });
}

/// The slots before the int3s that lead to them.
Result<void> UserPointTable::write(vmm::PausedMachine& machine, std::span<const Place> places) {
  std::vector<vmm::CodeWrite> slots, int3s;
  for (const auto& [point, frame] : places) {
    append(slots, frame.wrapping_add(point->slot), point->code);
    append(int3s, frame.wrapping_add(point->in_page()), kInt3);
  }
  TRY(write_in_order(machine, slots));
  return write_in_order(machine, int3s);
}

Result<void> UserPointTable::write_ready(vmm::PausedMachine& machine) {
  return write_ready(machine, ready_places(guest_.reader()));
}

Result<void> UserPointTable::write_ready(vmm::PausedMachine& machine,
                                         std::span<const Place> ready) {
  for (const Place& place : ready) place.point->is_written = place.point->is_armed = true;
  return write(machine, ready);
}

/// The places of some points, also in the pages that processes have for themselves.
std::vector<UserPointTable::Place> UserPointTable::copies_where(
    const std::function<bool(const Point&)>& is_meant) {
  std::vector<Place> copies;
  for (auto& [inode, file] : files_) {
    std::vector<Point*> points;
    for (auto& [offset, point] : file.points) {
      if (is_meant(point)) points.push_back(&point);
    }
    if (points.empty()) continue;
    const auto places = places_of(inode, points, Copies::Too);
    copies.insert(copies.end(), places.begin(), places.end());
  }
  return copies;
}

/// Where a process has a page for itself, with the same text.
Result<void> UserPointTable::write_copies(vmm::PausedMachine& machine) {
  std::vector<Place> copies = copies_where([](const Point& each) { return each.is_armed; });
  std::erase_if(copies, [this](const Place& copy) { return has_point(copy); });
  const std::size_t others = std::erase_if(copies, [this](const Place& copy) {
    const bool is_whole = stand(copy.frame, copy.point->in_page(), copy.point->site.instruction);
    return !has_text(copy) && !(is_whole && has_slot(copy));
  });
  if (others != 0) {
    notices_.push_back(
        fmt::format("{} place{} of probes have other text in processes' own copies of the page (a "
                    "debugger's breakpoint, a uprobe, changed code): what runs there is not seen",
                    others, others == 1 ? "" : "s"));
  }
  return write(machine, copies);
}

Result<void> UserPointTable::tend(vmm::PausedMachine& machine) {
  const std::lock_guard lock(lock_);
  TRY(write_ready(machine));
  return raise_semaphores(machine);
}

/// Where the first bytes of the ranges are: in the file's pages, and with copies in those that
/// processes have for themselves.
UserSemaphores::Places UserPointTable::find_bytes(
    std::span<const FileRange> ranges, Copies copies,
    const guest_linux::UserStanding::Sleepers& sleepers) {
  UserSemaphores::Places found;
  if (ranges.empty()) return found;  // that would look at all processes
  if (copies == Copies::Too && standing_) {
    auto all = standing_->copies(machine_.memory(), kernel_, ranges, sleepers);
    found = std::move(all.places);
    swapped_out_ = std::max(swapped_out_, all.swapped_out);
  }
  const auto kernel = guest_.reader();
  std::optional<FilePages> pages;
  for (std::size_t n = 0; n < ranges.size(); ++n) {
    if (!pages || pages->inode() != ranges[n].inode)
      pages = guest_.pages_of(kernel, ranges[n].inode);
    const auto frame = pages ? pages->frame(ranges[n].begin / kTextPage) : std::nullopt;
    if (frame) found.push_back({n, frame->wrapping_add(ranges[n].begin % kTextPage)});
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<UserPointTable::Place> UserPointTable::places_of(GuestVirt inode,
                                                             std::span<Point* const> points,
                                                             Copies copies) {
  std::vector<FileRange> ranges;
  for (const Point* point : points) {
    ranges.push_back({inode, point->site.offset, point->site.offset + 1});
  }
  std::vector<Place> places;
  for (const auto& copy : find_bytes(ranges, copies, sleepers_)) {
    places.push_back({points[copy.range], GuestPhys(round_down(copy.at.raw(), kTextPage))});
  }
  return places;
}

/// The int3s of these, wherever they still stand with their slots: so no page of another file is
/// touched.
Result<void> UserPointTable::restore(vmm::PausedMachine& machine, GuestVirt inode,
                                     std::span<Point* const> points, Copies copies) {
  std::vector<vmm::CodeWrite> writes;
  for (const Place& place : places_of(inode, points, copies)) {
    if (!has_point(place)) continue;
    append(writes, place.frame.wrapping_add(place.point->in_page()),
           std::span(place.point->site.instruction).first(1));
  }
  TRY(write_in_order(machine, writes));
  for (Point* const point : points) {
    point->is_armed = false;
    point->is_written = point->is_written && !point->has_no_slot();
  }
  return {};
}

/// Those that no int3 in the same page leads to any more, and that nobody is inside of. Whether
/// nobody was inside of any.
bool UserPointTable::restore_slots(vmm::PausedMachine& machine, Copies copies) {
  std::vector<FileRange> ranges;
  std::map<GuestVirt, std::vector<Point*>> points;
  for (auto& [inode, file] : files_) {
    for (auto& [offset, point] : file.points) {
      if (!point.is_linked || point.is_armed || point.has_no_slot()) continue;
      ranges.push_back(point.slot_range(inode));
      points[inode].push_back(&point);
    }
  }
  if (ranges.empty() || !standing_) return true;
  const auto inside = standing_->find(machine, kernel_, ranges, sleepers_);
  if (!inside) return false;
  std::set<const Point*> busy;
  std::size_t n = 0;
  for (const auto& [inode, all] : points) {
    for (Point* const point : all) {
      if ((*inside)[n++]) busy.insert(point);
    }
  }
  std::vector<vmm::CodeWrite> writes;
  for (const auto& [inode, all] : points) {
    for (const Place& place : places_of(inode, all, copies)) {
      const Point& point = *place.point;
      if (busy.contains(&point) || has_point(place) || !has_slot(place)) continue;
      append(writes, place.frame.wrapping_add(point.slot), point.before);
    }
    for (Point* const point : all) point->is_written = busy.contains(point);
  }
  return write_in_order(machine, writes).has_value() && busy.empty();
}

/// Of all whose slots may be taken away.
void UserPointTable::look_ahead() {
  const std::lock_guard lock(lock_);
  std::vector<FileRange> ranges;
  for (const auto& [inode, file] : files_) {
    for (const auto& [offset, point] : file.points) {
      if (point.is_linked && !point.has_no_slot()) ranges.push_back(point.slot_range(inode));
    }
  }
  if (standing_) sleepers_ = standing_->look_ahead(machine_.memory(), kernel_, ranges);
}

/// With all, whatever is thought to stand: a page may have been away, or on its way to another
/// frame, when it was looked for before.
Result<void> UserPointTable::disarm(vmm::PausedMachine& machine, Which which) {
  const std::lock_guard lock(lock_);
  if (which == Which::All) {
    keeps_out_ = true;  // tend() may come once more
    swapped_out_ = 0;   // of an earlier try
  }
  for (auto& [inode, file] : files_) {
    std::vector<Point*> points;
    for (auto& [offset, point] : file.points) {
      const bool is_meant = which == Which::All ? point.is_linked : point.users == 0;
      if (is_meant && (point.is_armed || which == Which::All)) points.push_back(&point);
    }
    if (!points.empty()) TRY(restore(machine, inode, points, Copies::Too));
  }
  return semaphores_.lower(machine, bytes_finder(), which);
}

/// Until no vCPU waits in the stub: it may have made a copy of a page that no process has mapped
/// yet. With nobody who answers, it goes on by itself.
Result<void> UserPointTable::await_stub(const vmm::ShimPlace& stub) {
  for (unsigned n = 0; n < kTakeOutTries; ++n) {
    bool is_inside = false;
    {
      auto paused = TRY(vmm::PausedMachine::pause(machine_));
      for (unsigned vcpu = 0; vcpu < paused.vcpu_count(); ++vcpu) {
        is_inside |= GuestVirt(TRY(paused.registers(vcpu)).rip).is_in(stub.base, stub.bytes);
      }
    }
    if (!is_inside) return {};
    std::this_thread::sleep_for(kTakeOutWait);
  }
  return {};
}

/// An error may be gone the next time, as where the guest's owner has let it run meanwhile.
Result<bool> UserPointTable::take_out(const vmm::ShimPlace& stub) {
  {
    auto paused = TRY(vmm::PausedMachine::pause(machine_));
    (void)disarm(paused, Which::All);
  }
  Result<bool> is_out = false;
  for (unsigned n = 0; n < kTakeOutTries; ++n) {
    std::this_thread::sleep_for(kTakeOutWait);
    if (n == 0) TRY(await_stub(stub));
    look_ahead();
    auto paused = TRY(vmm::PausedMachine::pause(machine_));
    const auto done = disarm(paused, Which::All);
    is_out = done ? Result<bool>(take_out_slots(paused)) : tl::make_unexpected(done.error());
    if (n > 0 && is_out && *is_out) break;
  }
  const std::lock_guard lock(lock_);
  sleepers_ = {};
  note_swapped_out("keep what stands there, and end where they run into a probe");
  if (shim_ != nullptr && is_out && *is_out) {
    for (const auto& [name, place] : names_) shim_->forget_user_point(name);
  }
  return is_out;
}

bool UserPointTable::take_out_slots(vmm::PausedMachine& machine) {
  const std::lock_guard lock(lock_);
  return restore_slots(machine, Copies::Too);
}

void UserPointTable::keep_out() {
  const std::lock_guard lock(lock_);
  keeps_out_ = true;
}

std::size_t UserPointTable::size() const {
  const std::lock_guard lock(lock_);
  return names_.size();
}

std::vector<GuestVirt> UserPointTable::inodes() const {
  const std::lock_guard lock(lock_);
  std::vector<GuestVirt> found;
  for (const auto& [name, place] : names_) {
    if (std::ranges::find(found, place.first) == found.end()) found.push_back(place.first);
  }
  return found;
}

std::size_t UserPointTable::armed() const {
  const std::lock_guard lock(lock_);
  std::size_t count = 0;
  for (const auto& [inode, file] : files_) {
    for (const auto& [offset, point] : file.points) count += point.is_armed ? 1 : 0;
  }
  return count;
}

bool UserPointTable::stands_in(GuestVirt inode, std::uint64_t begin, std::uint64_t end) const {
  const std::lock_guard lock(lock_);
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  const auto& points = file->second.points;
  for (auto each = points.lower_bound(round_down(begin, kTextPage));
       each != points.end() && each->second.page() * kTextPage < end; ++each) {
    if (each->second.is_armed || each->second.is_written) return true;
  }
  return semaphores_.stands_in(inode, round_down(begin, kTextPage), end);
}

/// Restores the trap points in pages with these bytes and lowers the semaphores there, until `away`
/// is over.
Result<UserPointTable::PutAway> UserPointTable::put_away(vmm::PausedMachine& machine,
                                                         GuestVirt inode, File& file,
                                                         std::uint64_t begin, std::uint64_t end,
                                                         Away away) {
  std::vector<Point*> points;
  for (auto& [offset, point] : file.points) {
    const std::uint64_t page = point.page() * kTextPage;
    if (point.is_armed && page < end && page + kTextPage > begin) points.push_back(&point);
  }
  file.away_until = away == Away::ForGood ? Clock::time_point::max()
                                          : std::max(file.away_until, Clock::now() + kAway);
  const std::size_t semaphores = TRY(
      semaphores_.step_aside(machine, bytes_finder(), inode, round_down(begin, kTextPage), end));
  TRY(restore(machine, inode, points, Copies::Left));
  (void)restore_slots(machine, Copies::Left);
  return PutAway{points.size(), semaphores};
}

Result<void> UserPointTable::step_aside(vmm::PausedMachine& machine, GuestVirt inode,
                                        std::uint64_t begin, std::uint64_t end, Away away) {
  const std::lock_guard lock(lock_);
  const auto file = files_.find(inode);
  if (file == files_.end()) return {};
  const auto [points, semaphores] = TRY(put_away(machine, inode, file->second, begin, end, away));
  if (points != 0 && away == Away::ForGood) {
    notices_.push_back(
        fmt::format("a process of the guest passes on pages of a file with probes (splice, "
                    "sendfile): {} of them are away for good",
                    points));
  } else if (points != 0) {
    notices_.push_back(
        fmt::format("a process of the guest reads or writes a file with probes: {} "
                    "of them are away for {} s and more",
                    points, kAway.count()));
  } else if (semaphores != 0) {
    notices_.push_back(
        fmt::format("a process of the guest reads or writes a file with probes: {} of their "
                    "semaphores are down for {} s and more, for processes that start meanwhile",
                    semaphores, kAway.count()));
  }
  return {};
}

bool UserPointTable::stands_in_memory_files() const {
  const std::lock_guard lock(lock_);
  const auto kernel = guest_.reader();
  return std::ranges::any_of(files_, [&](const auto& each) {
    const auto& [inode, file] = each;
    if (file.is_gone || guest_.has_disk(kernel, inode)) return false;
    return semaphores_.stands_in(inode, 0, UINT64_MAX) ||
           std::ranges::any_of(file.points, [](const auto& point) {
             return point.second.is_armed || point.second.is_written;
           });
  });
}

Result<void> UserPointTable::leave_memory_files(vmm::PausedMachine& machine) {
  const std::lock_guard lock(lock_);
  const auto kernel = guest_.reader();
  std::size_t points = 0;
  for (auto& [inode, file] : files_) {
    if (file.is_gone || guest_.has_disk(kernel, inode)) continue;
    points += TRY(put_away(machine, inode, file, 0, UINT64_MAX, Away::ForGood)).points;
  }
  if (points != 0) {
    notices_.push_back(
        fmt::format("the guest turns on swap, to which files that are in memory alone (tmpfs) may "
                    "go: {} probes in such files are away for good",
                    points));
  }
  return {};
}

/// Pages of processes that were not in memory when all copies were looked at.
void UserPointTable::note_swapped_out(std::string_view consequence) {
  if (const std::size_t count = std::exchange(swapped_out_, 0); count != 0) {
    notices_.push_back(
        fmt::format("processes have {} page{} of files with probes for themselves which the guest "
                    "has swapped out: they {}",
                    count, count == 1 ? "" : "s", consequence));
  }
}

/// Those whose page was given back, and read anew without them. If somebody watches pages come,
/// nothing has run there as long as nobody has the page mapped.
void UserPointTable::note_missing(const GuestReader& kernel) {
  std::size_t missing = 0;
  bool lacks_pages = false;
  for (auto& [inode, file] : files_) {
    if (file.is_gone) continue;
    const auto pages = guest_.pages_of(kernel, inode);
    if (!pages) continue;
    for (auto& [offset, point] : file.points) {
      const auto frame = pages->frame(point.page());
      lacks_pages |= !frame && point.users != 0 && !point.is_lost;
      if (!point.is_armed || (frame && has_point({&point, *frame}))) continue;
      point.is_armed = point.is_written = false;
      missing += !expects_pages_ || (frame && pages->is_mapped(point.page())) ? 1 : 0;
    }
  }
  lacks_pages_ = lacks_pages;
  if (missing == 0) return;
  notices_.push_back(
      fmt::format("the guest has given up pages with {} probes of processes: what "
                  "ran there since was not seen",
                  missing));
}

bool UserPointTable::wants_tending() {
  const std::lock_guard lock(lock_);
  if (Clock::now() < next_look_) return false;
  next_look_ = Clock::now() + kLook;
  const auto kernel = guest_.reader();
  note_missing(kernel);
  semaphores_.note_missing(machine_.memory(), bytes_finder());
  return !ready_places(kernel).empty() ||
         semaphores_.wants_raising([&](GuestVirt inode, std::uint64_t offset) {
           return may_write(kernel, inode, offset);
         });
}

void UserPointTable::note_unseen(std::string why) {
  const std::lock_guard lock(lock_);
  ++unseen_;
  why_unseen_ = std::move(why);
}

std::vector<std::string> UserPointTable::take_notices() {
  const std::lock_guard lock(lock_);
  if (const std::size_t count = std::exchange(unseen_, 0); count != 0) {
    notices_.push_back(
        fmt::format("processes have got {} page{} before the probes there stood, so calls were not "
                    "seen: {}",
                    count, count == 1 ? "" : "s", why_unseen_));
  }
  if (const std::size_t count = std::exchange(unsettled_, 0); count != 0) {
    notices_.push_back(
        fmt::format("the guest has read pages with {} more probes, which cannot stand there: {}",
                    count, why_unsettled_));
  }
  return std::exchange(notices_, {});
}

}  // namespace ringside::providers
