#include "vmm/linux/processes/host_unwind_tables.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "vmm/linux/processes/file_elf.h"
#include "vmm/linux/processes/host_files.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostTableBytes = 256 << 20;

}  // namespace

std::size_t HostUnwindTables::Tables::read(std::uint64_t offset, std::span<std::byte> out) const {
  for (const Section& each : sections_) {
    const std::uint64_t from = offset - each.offset;
    if (from >= each.bytes.size()) continue;
    const auto there = std::span(each.bytes).subspan(from);
    const std::size_t length = std::min(there.size(), out.size());
    std::ranges::copy(there.first(length), out.begin());
    return length;
  }
  return 0;
}

std::optional<const HostUnwindTables::Tables*> HostUnwindTables::tables_of(
    const FileIdentity& file) const {
  for (const Place& place : places_) {
    const State state = place.state.load(std::memory_order_acquire);
    if (state == State::Free) return std::nullopt;
    if (state == State::Taken || place.file != file) continue;
    return state == State::Found ? &place.tables : nullptr;
  }
  return nullptr;  // there is no room for more
}

/// Two vCPUs may ask for one file at a time, which then has two places.
void HostUnwindTables::want(const FileIdentity& file, const FilePathPlace& path) {
  for (Place& place : places_) {
    State state = State::Free;
    if (!place.state.compare_exchange_strong(state, State::Taken, std::memory_order_acquire)) {
      continue;
    }
    place.file = file;
    place.path = path;
    place.state.store(State::Wanted, std::memory_order_release);
    return;
  }
}

bool HostUnwindTables::is_asked() const {
  return std::ranges::any_of(places_, [](const Place& place) {
    return place.state.load(std::memory_order_relaxed) == State::Wanted;
  });
}

void HostUnwindTables::serve(HostFiles& host, const Open& open) {
  for (Place& place : places_) {
    const State state = place.state.load(std::memory_order_acquire);
    if (state == State::Free) return;
    if (state != State::Wanted) continue;
    const auto file = open(place.file, place.path);
    const bool is_it = file && file->pages.identity() == place.file;
    if (is_it) place.tables = read_tables(host, *file);
    place.state.store(place.tables.sections_.empty() ? State::Missing : State::Found,
                      std::memory_order_release);
  }
}

/// A file that was split off for debuggers has these sections' headers alone (SHT_NOBITS).
HostUnwindTables::Tables HostUnwindTables::read_tables(HostFiles& host, const Opened& file) {
  Tables found;
  const auto elf = FileElf::read(file.pages);
  if (!elf) return found;
  (void)host.visit({file.pages, *elf, file.path}, [&](const HostFiles::Copy& copy) {
    for (const char* const name : {".eh_frame_hdr", ".eh_frame"}) {
      const Elf64_Shdr* const section = copy.elf.section(name);
      if (section == nullptr || section->sh_type == SHT_NOBITS) continue;
      const auto offset = elf->offset_of(section->sh_addr, 0);
      if (!offset || section->sh_size > kMostTableBytes - bytes_) continue;
      auto bytes = read_all<std::byte>(copy.file, section->sh_offset, section->sh_size);
      bytes_ += bytes.size();
      found.sections_.push_back({*offset, std::move(bytes)});
    }
    return !found.sections_.empty();
  });
  return found;
}

}  // namespace ringside::guest_linux
