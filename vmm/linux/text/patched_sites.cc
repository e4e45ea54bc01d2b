#include "vmm/linux/text/patched_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint8_t kTrampolineBytes = 8;  // jmp rel32 or ret, then ud1 as its mark
constexpr std::uint64_t kKeyFlags = 3;  // the low bits of a key's place, which say other things

/// The address that a T at `offset` in the table names, relative to itself.
template <class T>
GuestVirt relative_at(const ImageView& table, std::uint64_t offset) {
  const auto distance = static_cast<std::int64_t>(load_at<T>(table.bytes, offset));
  return table.base.wrapping_add(offset + static_cast<std::uint64_t>(distance));
}
GuestVirt without_flags(GuestVirt key) {
  return GuestVirt(key.raw() & ~kKeyFlags);
}

/// Calls `found` with the address that the first s32 of each entry names, relative to itself, and
/// with the entry's offset in the table.
template <class Found>
void for_each_target(const ImageView& table, std::uint64_t entry_bytes, const TextBounds& bounds,
                     Found found) {
  const std::uint64_t count =
      std::min<std::uint64_t>(table.bytes.size() / entry_bytes, kMaxTableEntries);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = i * entry_bytes;
    const GuestVirt target = relative_at<std::int32_t>(table, at);
    if (target != table.base.wrapping_add(at) && bounds.text.contains(target)) found(target, at);
  }
}

std::array<std::uint8_t, 2> bytes_at(const TextBounds& bounds, GuestVirt at) {
  std::array<std::uint8_t, 2> bytes{};
  // Bytes that cannot be read stay zero, for which the callers assume the longest form.
  if (!bounds.reader->read(at, std::as_writable_bytes(std::span(bytes)))) bytes = {};
  return bytes;
}

struct ForbiddenPart : BoundedPart {
  bool is_init = false;
};

// Entry code runs before the per-cpu base is right; noinstr text (with asm_exc_int3, both since
// 5.8) is called from it and from the int3 path; cpuidle text (since 4.9) pairs sti with hlt; init
// text is freed; the static calls' trampolines are rewritten.
constexpr std::array kForbidden = {
    ForbiddenPart{{"__entry_text_start", "__entry_text_end", "entry_SYSCALL_64", "entry text"}},
    ForbiddenPart{{"__noinstr_text_start", "__noinstr_text_end", "asm_exc_int3", "noinstr text"}},
    ForbiddenPart{{"__cpuidle_text_start", "__cpuidle_text_end", "cpu_in_idle", "cpuidle text"}},
    ForbiddenPart{{"__static_call_text_start", "__static_call_text_end", "__static_call_update",
                   "static calls' text"}},
    ForbiddenPart{{"__init_begin", "__init_end", "start_kernel", "init memory"}, true},
    ForbiddenPart{{"_sinittext", "_einittext", "start_kernel", "init text"}, true},
};

}  // namespace

void collect_jump_labels(const ImageView& table, const TextBounds& bounds,
                         std::vector<Kernel::PatchedSite>& sites) {
  for_each_target(table, kJumpEntryBytes, bounds, [&](GuestVirt at, std::uint64_t entry) {
    // Two-byte sites (since 5.14) are jmp rel8 or its nop, 66 90.
    constexpr std::byte kShortNop{0x66};
    const std::byte opcode{bytes_at(bounds, at)[0]};
    const std::uint8_t length = opcode == arch::kShortJump || opcode == kShortNop ? 2 : 5;
    const GuestVirt target = relative_at<std::int32_t>(table, entry + 4);
    const GuestVirt key = without_flags(relative_at<std::int64_t>(table, entry + 8));
    sites.push_back({at, length, "jump label", target, key});
  });
}

void collect_static_calls(const ImageView& table, const TextBounds& bounds,
                          std::vector<Kernel::PatchedSite>& sites) {
  for_each_target(table, kStaticCallSiteBytes, bounds, [&](GuestVirt at, std::uint64_t entry) {
    // Conditional tail calls (since 6.3) are jcc rel32, six bytes.
    const auto bytes = bytes_at(bounds, at);
    const bool is_jcc = bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80;
    const GuestVirt key = without_flags(relative_at<std::int32_t>(table, entry + 4));
    sites.push_back({at, static_cast<std::uint8_t>(is_jcc ? 6 : 5), "static call", {}, key});
  });
}

void collect_exceptions(const ImageView& table, const TextBounds& bounds,
                        std::vector<Kernel::PatchedSite>& sites) {
  for_each_target(table, kExceptionEntryBytes, bounds, [&](GuestVirt at, std::uint64_t entry) {
    sites.push_back({at,
                     1,
                     kExceptionTable.what,
                     {},
                     {},
                     relative_at<std::int32_t>(table, entry + 4),
                     load_at<std::uint32_t>(table.bytes, entry + 8)});
  });
}

void collect_static_call_trampolines(std::span<const Symbol> symbols, const TextBounds& bounds,
                                     std::vector<Kernel::PatchedSite>& sites) {
  for (const Symbol& symbol : symbols) {
    if (symbol.name.starts_with("__SCT__") && bounds.text.contains(symbol.address)) {
      sites.push_back({symbol.address, kTrampolineBytes, "static call"});
    }
  }
}

bool read_module_sites(const GuestReader& kernel, const ModuleLayout& layout,
                       const ModuleHead& module, std::vector<Kernel::PatchedSite>& sites,
                       ModuleBudget& budget) {
  const TextBounds bounds{&kernel, Kernel::AddressRange::of(module.text_base, module.text_size)};
  const auto collect = [&](const std::optional<ModuleLayout::Table>& table,
                           std::uint64_t entry_bytes, auto collector) {
    if (!table) return true;  // this kernel's modules have none
    const auto at = load_field<std::uint64_t>(kernel, module.address, table->pointer);
    const auto count = load_field<std::uint32_t>(kernel, module.address, table->count);
    if (!at || !count || !ModuleBudget::take(budget.sites, *count)) return false;
    std::vector<std::byte> bytes(*count * entry_bytes);
    if (!kernel.read(GuestVirt(*at), bytes)) return false;
    collector(ImageView{GuestVirt(*at), bytes}, bounds, sites);
    return true;
  };
  return collect(layout.jump_labels, kJumpEntryBytes, collect_jump_labels) &&
         collect(layout.static_calls, kStaticCallSiteBytes, collect_static_calls) &&
         collect(layout.exceptions, kExceptionEntryBytes, collect_exceptions);
}

Result<std::optional<Kernel::AddressRange>> find_part(const SymbolTable& symbols,
                                                      const BoundedPart& part) {
  const Symbol* begin = symbols.find(part.begin, "vmlinux");
  const Symbol* end = symbols.find(part.end, "vmlinux");
  const bool shown = symbols.find(part.shown_by, "vmlinux") != nullptr;
  if (begin == nullptr && end == nullptr && !shown) return std::optional<Kernel::AddressRange>();
  if (begin == nullptr || end == nullptr || end->address < begin->address) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the guest's kernel has {}, but its symbols do not say where ({}, {}), "
                            "so that it cannot be told where probes are safe",
                            part.what, part.begin, part.end));
  }
  if (begin->address == end->address) return std::optional<Kernel::AddressRange>();
  return std::optional(Kernel::AddressRange{begin->address, end->address});
}

Result<std::vector<Kernel::AddressRange>> forbidden_ranges(const SymbolTable& symbols,
                                                           InitText init) {
  std::vector<Kernel::AddressRange> ranges;
  for (const ForbiddenPart& part : kForbidden) {
    if (part.is_init && init == InitText::Allowed) continue;
    const auto range = TRY(find_part(symbols, part));
    if (range) ranges.push_back(*range);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return ranges;
}

}  // namespace ringside::guest_linux
