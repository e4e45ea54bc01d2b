#include "vmm/linux/low_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/numbers.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kFirst = arch::kPageSize;  // page 0 is the firmware's vectors and data
constexpr std::uint64_t kEnd = 0x9'f000;  // above it the extended BIOS data area, then no RAM
constexpr std::uint64_t kLeast = 64 << 10;
constexpr std::uint64_t kHighMemory = 1 << 20, kMostKept = 64 << 20;

tl::unexpected<Error> unknown(std::string_view what) {
  return fail(ErrorCode::Unsupported,
              fmt::format("no memory was set aside for the shim, and whether the first megabyte is "
                          "free cannot be known: the kernel has no {}",
                          what));
}

/// Looks pages up in the kernel's array of struct page (CONFIG_SPARSEMEM_VMEMMAP, which x86-64
/// has).
class PageFlags {
 public:
  static Result<PageFlags> find(const GuestReader& reader, const Kernel& kernel) {
    const Symbol* base = kernel.symbols().find("vmemmap_base", "vmlinux");
    if (base == nullptr) return unknown("symbol vmemmap_base");
    const auto array = load<std::uint64_t>(reader, base->address);
    if (!array) return unknown("readable vmemmap_base");
    const TypeGraph& types = kernel.types();
    const auto page = types.find(TypeKind::Struct, "page");
    const auto flags = page ? types.find_member(*page, "flags") : std::nullopt;
    const auto reserved = types.find_enumerator("PG_reserved");
    if (!flags || !reserved || reserved->second < 0 || reserved->second > 63) {
      return unknown("type of struct page");
    }
    return PageFlags(*array, types.size_of(*page), flags->bit_offset / 8,
                     std::uint64_t{1} << reserved->second);
  }

  bool is_reserved(const GuestReader& reader, std::uint64_t physical) const {
    const std::uint64_t offset = physical / arch::kPageSize * size_ + flags_at_;
    const auto at = GuestVirt(array_).checked_add(offset);
    const auto flags = at ? load<std::uint64_t>(reader, *at) : Unexpected<Fault>(Fault{});
    return flags && (*flags & reserved_) != 0;
  }

 private:
  PageFlags(std::uint64_t array, std::uint64_t size, std::uint64_t flags_at, std::uint64_t reserved)
      : array_(array), size_(size), flags_at_(flags_at), reserved_(reserved) {}

  std::uint64_t array_, size_, flags_at_, reserved_;
};

/// Where the real-mode trampoline begins, or the end of what is looked at.
Result<std::uint64_t> trampoline(const vmm::GuestMemory& memory, const GuestReader& reader,
                                 const Kernel& kernel) {
  const Symbol* header = kernel.symbols().find("real_mode_header", "vmlinux");
  if (header == nullptr) return unknown("symbol real_mode_header");
  const auto where = load<std::uint64_t>(reader, header->address);
  const auto found =
      where ? vmm::translate(memory, kernel.table(), GuestVirt(*where)) : std::nullopt;
  if (!found) return unknown("readable real_mode_header");
  return std::min(round_down(found->address.raw(), arch::kPageSize), kEnd);
}

bool is_zero(const vmm::GuestMemory& memory, std::uint64_t page) {
  std::array<std::uint64_t, arch::kPageSize / 8> words;
  return memory.read(GuestPhys(page), std::as_writable_bytes(std::span(words))) &&
         std::ranges::all_of(words, [](std::uint64_t word) { return word == 0; });
}

}  // namespace

Result<vmm::GuestMemory::Extent> find_low_memory(const vmm::GuestMemory& memory,
                                                 const Kernel& kernel) {
  const vmm::PageTableReader reader(memory, kernel.table());
  const PageFlags pages = TRY(PageFlags::find(reader, kernel));
  const std::uint64_t end = TRY(trampoline(memory, reader, kernel));
  vmm::GuestMemory::Extent best, run;
  for (std::uint64_t page = kFirst; page < end; page += arch::kPageSize) {
    if (!is_zero(memory, page) || !pages.is_reserved(reader, page)) {
      run = {};
      continue;
    }
    if (run.size == 0) run.base = GuestPhys(page);
    run.size += arch::kPageSize;
    if (run.size > best.size) best = run;
  }
  if (best.size < kLeast) {
    return fail(ErrorCode::Unsupported,
                fmt::format("no memory was set aside for the shim, and the first megabyte has only "
                            "{} KiB in one piece that nobody uses; it takes {}",
                            best.size >> 10, kLeast >> 10));
  }
  return best;
}

Result<void> check_kept(const vmm::GuestMemory& memory, const Kernel& kernel,
                        vmm::GuestMemory::Extent extent) {
  const vmm::PageTableReader reader(memory, kernel.table());
  const PageFlags pages = TRY(PageFlags::find(reader, kernel));
  const std::uint64_t end = TRY(trampoline(memory, reader, kernel));
  const std::uint64_t first = extent.base.raw();
  bool kept = extent.size <= kMostKept && memory.is_ram(extent.base, extent.size) &&
              first >= kFirst && (first + extent.size <= end || first >= kHighMemory);
  for (std::uint64_t page = first; kept && page < first + extent.size; page += arch::kPageSize) {
    kept = pages.is_reserved(reader, page);
  }
  if (kept) return {};
  return fail(ErrorCode::Invalid,
              fmt::format("the {} KiB at {:#x} are not what its kernel leaves alone",
                          extent.size >> 10, first));
}

}  // namespace ringside::guest_linux
