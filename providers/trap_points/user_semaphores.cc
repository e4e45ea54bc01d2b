#include "providers/trap_points/user_semaphores.h"

#include <algorithm>
#include <array>
#include <optional>

#include "vmm/code_writer.h"

namespace ringside::providers {

using guest_linux::FileRange;

namespace {

constexpr std::uint64_t kBytes = sizeof(std::uint16_t);

std::optional<unsigned> read_counter(const vmm::GuestMemory& memory, GuestPhys at) {
  std::array<std::byte, kBytes> bytes{};
  if (!memory.read(at, bytes)) return std::nullopt;
  return std::to_integer<unsigned>(bytes[0]) | std::to_integer<unsigned>(bytes[1]) << 8U;
}

}  // namespace

/// Who says so may be the guest.
void UserSemaphores::take_over(GuestVirt inode, std::uint64_t offset) {
  if (offset % kBytes != 0) return;
  all_[{inode, offset}] = {.users = 0, .is_raised = true, .is_in_file = true};
}

std::vector<FileRange> UserSemaphores::ranges_of(std::span<const Key> keys) {
  std::vector<FileRange> ranges;
  for (const auto& [inode, offset] : keys) ranges.push_back({inode, offset, offset + kBytes});
  return ranges;
}

UserSemaphores::Places UserSemaphores::copies_of(const Find& find, std::span<const Key> keys) {
  const auto ranges = ranges_of(keys);
  Places places = find(ranges, Copies::Too);
  const Places of_files = find(ranges, Copies::Left);
  std::erase_if(places, [&](const auto& each) { return std::ranges::count(of_files, each) != 0; });
  return places;
}

/// One that is 0 is not lowered: whoever took it down has done so for us.
Result<void> UserSemaphores::move(vmm::PausedMachine& machine, const Places& places, Step step) {
  std::vector<vmm::CodeWrite> writes;
  for (const auto& place : places) {
    const auto now = read_counter(machine.memory(), place.at);
    const bool stays = !now || (step == Step::Down ? *now == 0
                                : step == Step::Up ? *now == UINT16_MAX
                                                   : *now != 0);
    if (stays) continue;
    const unsigned then = step == Step::Down ? *now - 1 : *now + 1;
    writes.push_back({place.at, static_cast<std::uint8_t>(then)});
    writes.push_back({place.at.wrapping_add(1), static_cast<std::uint8_t>(then >> 8U)});
  }
  return writes.empty() ? Result<void>() : machine.write_code(writes);
}

Result<void> UserSemaphores::raise(vmm::PausedMachine& machine, const Find& find,
                                   const MayWrite& may_write) {
  std::vector<Key> fresh, back;
  for (auto& [key, semaphore] : all_) {
    if (semaphore.users == 0) continue;
    if (semaphore.is_in_file || !may_write(key.first, key.second)) continue;
    (semaphore.is_raised ? back : fresh).push_back(key);
  }
  TRY(move(machine, find(ranges_of(fresh), Copies::Too), Step::Up));
  TRY(move(machine, copies_of(find, back), Step::UpFromZero));
  TRY(move(machine, find(ranges_of(back), Copies::Left), Step::Up));
  for (const auto* keys : {&fresh, &back}) {
    for (const Key& key : *keys) all_[key].is_raised = all_[key].is_in_file = true;
  }
  return {};
}

Result<void> UserSemaphores::lower(vmm::PausedMachine& machine, const Find& find, Which which) {
  std::vector<Key> everywhere, in_copies;
  for (const auto& [key, semaphore] : all_) {
    const bool is_meant = which == Which::All || semaphore.users == 0;
    const bool is_late = which == Which::All && !semaphore.lowered.empty();
    if (!is_meant || !(semaphore.is_raised || is_late)) continue;
    (semaphore.is_in_file ? everywhere : in_copies).push_back(key);
  }
  TRY(lower(machine, find(ranges_of(everywhere), Copies::Too), everywhere, which));
  TRY(lower(machine, copies_of(find, in_copies), in_copies, which));
  for (const auto* keys : {&everywhere, &in_copies}) {
    for (const Key& key : *keys) all_[key].is_raised = all_[key].is_in_file = false;
  }
  return {};
}

/// Each place once: what stands there afterwards is somebody else's.
Result<void> UserSemaphores::lower(vmm::PausedMachine& machine, Places places,
                                   std::span<const Key> keys, Which which) {
  std::erase_if(places,
                [&](const auto& each) { return all_[keys[each.range]].lowered.contains(each.at); });
  TRY(move(machine, places, Step::Down));
  if (which != Which::All) return {};
  for (const auto& place : places) all_[keys[place.range]].lowered.insert(place.at);
  return {};
}

Result<std::size_t> UserSemaphores::step_aside(vmm::PausedMachine& machine, const Find& find,
                                               GuestVirt inode, std::uint64_t begin,
                                               std::uint64_t end) {
  std::vector<Key> away;
  for (auto& [key, semaphore] : all_) {
    const bool is_there = key.first == inode && key.second < end && key.second + kBytes > begin;
    if (is_there && std::exchange(semaphore.is_in_file, false)) away.push_back(key);
  }
  TRY(move(machine, find(ranges_of(away), Copies::Left), Step::Down));
  return away.size();
}

void UserSemaphores::note_missing(vmm::GuestMemory& memory, const Find& find) {
  std::vector<Key> keys;
  for (const auto& [key, semaphore] : all_) {
    if (semaphore.is_in_file) keys.push_back(key);
  }
  for (const auto& place : find(ranges_of(keys), Copies::Left)) {
    const auto now = read_counter(memory, place.at);
    if (now && *now == 0) all_[keys[place.range]].is_in_file = false;
  }
}

bool UserSemaphores::stands_in(GuestVirt inode, std::uint64_t begin, std::uint64_t end) const {
  for (auto each = all_.lower_bound({inode, begin}); each != all_.end(); ++each) {
    if (each->first.first != inode || each->first.second >= end) break;
    if (each->second.is_in_file) return true;
  }
  return false;
}

bool UserSemaphores::wants_raising(const MayWrite& may_write) const {
  for (const auto& [key, semaphore] : all_) {
    if (semaphore.users != 0 && !semaphore.is_in_file && may_write(key.first, key.second)) {
      return true;
    }
  }
  return false;
}

}  // namespace ringside::providers
