#include "vmm/linux/stacks/stack_tables.h"

#include <algorithm>
#include <utility>

#include "vmm/base/bytes.h"

namespace ringside::guest_linux {
namespace {

using Base = OrcEntry::Base;
using Kind = OrcEntry::Kind;

/// The frame that the kernel assumes where it knows nothing: push %rbp; mov %rsp,%rbp.
constexpr OrcEntry kFramePointer{
    .sp_offset = 16, .bp_offset = -16, .sp = Base::Bp, .bp = Base::PreviousSp, .kind = Kind::Call};

}  // namespace

void StackTables::add(Kernel::AddressRange text, const ImageView& addresses,
                      std::span<const std::byte> entries) {
  if (text.end <= text.begin || text.end.offset_from(text.begin) > UINT32_MAX) return;
  Section& section = *sections_.emplace(section_after(text.begin));
  section.text = text;
  const auto form = recognize_orc(entries);
  if (!form) return;
  struct Row {
    std::uint32_t offset;
    OrcEntry entry;
  };
  std::vector<Row> rows;
  const std::size_t count =
      std::min({entries.size() / kOrcEntryBytes, addresses.bytes.size() / kOrcAddressBytes,
                std::size_t{kMaxOrcEntries}});
  rows.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const auto place = static_cast<std::uint64_t>(
        std::int64_t{load_at<std::int32_t>(addresses.bytes, n * kOrcAddressBytes)});
    const GuestVirt pc = addresses.base.wrapping_add(n * kOrcAddressBytes + place);
    if (!text.contains(pc)) continue;  // init text, freed long ago
    rows.push_back(
        {static_cast<std::uint32_t>(pc.offset_from(text.begin)),
         decode_orc(entries.subspan(n * kOrcEntryBytes).first<kOrcEntryBytes>(), *form)});
  }
  // Of two entries for one pc the one that ends the function before it comes first, and find()
  // takes the last.
  const auto order = [](const Row& row) {
    return std::pair(row.offset, row.entry.kind != Kind::Undefined);
  };
  const auto before = [&](const Row& a, const Row& b) { return order(a) < order(b); };
  if (!std::is_sorted(rows.begin(), rows.end(), before)) {
    std::stable_sort(rows.begin(), rows.end(), before);
  }
  section.offsets.reserve(rows.size());
  section.entries.reserve(rows.size());
  for (const Row& row : rows) {
    section.offsets.push_back(row.offset);
    section.entries.push_back(row.entry);
  }
}

void StackTables::erase(const Kernel::AddressRange& text) {
  std::erase_if(sections_, [&](const Section& section) {
    return section.text.begin < text.end && text.begin < section.text.end;
  });
}

void StackTables::set_moved(std::vector<Moved> moved) {
  moved_ = std::move(moved);
  std::sort(moved_.begin(), moved_.end(),
            [](const Moved& a, const Moved& b) { return a.begin < b.begin; });
}

std::uint64_t StackTables::original(std::uint64_t pc) const {
  if (moved_.empty() || is_text(pc)) return pc;
  const auto after =
      std::upper_bound(moved_.begin(), moved_.end(), pc,
                       [](std::uint64_t at, const Moved& m) { return at < m.begin.raw(); });
  if (after == moved_.begin()) return pc;
  const Moved& moved = *std::prev(after);
  const std::uint64_t offset = pc - moved.begin.raw();
  if (offset >= moved.size) return pc;
  return moved.original.wrapping_add(offset == 0 ? 0 : moved.length).raw();
}

std::size_t StackTables::entry_count() const {
  std::size_t count = 0;
  for (const Section& section : sections_) count += section.entries.size();
  return count;
}

std::vector<StackTables::Section>::const_iterator StackTables::section_after(GuestVirt pc) const {
  return std::ranges::upper_bound(sections_, pc, {},
                                  [](const Section& section) { return section.text.begin; });
}

const StackTables::Section* StackTables::section_of(std::uint64_t pc) const {
  const auto after = section_after(GuestVirt(pc));
  if (after == sections_.begin()) return nullptr;
  const Section& section = *std::prev(after);
  return section.text.contains(GuestVirt(pc)) ? &section : nullptr;
}

std::optional<OrcEntry> StackTables::find(std::uint64_t pc) const {
  const Section* section = section_of(pc);
  if (section == nullptr) return std::nullopt;
  if (section->offsets.empty()) return kFramePointer;
  const auto offset = static_cast<std::uint32_t>(pc - section->text.begin.raw());
  const auto after = std::upper_bound(section->offsets.begin(), section->offsets.end(), offset);
  if (after == section->offsets.begin()) return std::nullopt;
  return section->entries[static_cast<std::size_t>(after - section->offsets.begin()) - 1];
}

}  // namespace ringside::guest_linux
