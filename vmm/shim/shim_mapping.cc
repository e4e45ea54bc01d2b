// In this file, top to bottom: the user half's table, free entries, writing them.
#include "vmm/shim/shim_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/align.h"

namespace ringside::vmm {
namespace {

namespace pte = arch::pte;

constexpr std::uint64_t kLargePage = kShimLargePage;
/// The user half's root lies behind the kernel's (PTI_PGTABLE_SWITCH_BIT,
/// arch/x86/include/asm/pgtable.h).
constexpr std::uint64_t kUserHalf = arch::kPageSize;
constexpr unsigned kDirectory = 2;  // level

tl::unexpected<Error> not_as_linux_isolates(std::string_view what) {
  return fail(ErrorCode::Unsupported,
              fmt::format("the guest isolates its page tables (PTI), but {}: nothing was put into "
                          "it; a guest that is started with pti=off can be traced",
                          what));
}

bool lead_to_the_same(const GuestMemory& memory, const PageTable& user, GuestVirt at,
                      const PageTable& kernel, GuestVirt there) {
  const auto by_user = translate(memory, user, at), by_kernel = translate(memory, kernel, there);
  return by_user && by_kernel && by_user->address == by_kernel->address;
}

/// By the tables, not by the CPU's flag alone: some old distributions switch at run time.
Result<std::optional<PageTable>> find_user_table(const GuestMemory& memory,
                                                 const ShimKernelFacts& facts) {
  const PageTable& kernel = facts.kernel_table;
  PageTable user = kernel;
  user.root = GuestPhys(kernel.root.raw() | kUserHalf);
  const bool is_there =
      user.root != kernel.root &&
      lead_to_the_same(memory, user, facts.int3_handler, kernel, facts.int3_handler);
  if (!is_there) {
    if (!facts.page_table_isolation) return std::nullopt;
    return not_as_linux_isolates("its user tables are not where Linux has them");
  }
  if (!lead_to_the_same(memory, user, facts.idt_of_cpus, kernel, facts.idt)) {
    return not_as_linux_isolates("its user tables do not map its interrupt table");
  }
  return user;
}

/// Whether the entry for `at` is there and empty.
bool is_free(const GuestMemory& memory, const PageTable& table, GuestVirt at) {
  const auto entry = entry_address(memory, table, at, kDirectory);
  return entry && memory.load64(*entry) == 0;
}

/// A run of `wanted` free entries in [from, to), the first one in the user half, too. Empty when
/// there is none.
std::optional<GuestVirt> find_free_run(const GuestMemory& memory, const PageTable& kernel,
                                       const std::optional<PageTable>& user, std::uint64_t from,
                                       std::uint64_t to, std::uint64_t wanted) {
  std::uint64_t run = 0;
  for (std::uint64_t at = from; at < to && at >= from; at += kLargePage) {
    run = is_free(memory, kernel, GuestVirt(at)) ? run + 1 : 0;
    if (run < wanted) continue;
    const GuestVirt first(at - (wanted - 1) * kLargePage);
    if (!user || is_free(memory, *user, first)) return first;
    run = wanted - 1;
  }
  return std::nullopt;
}

Result<GuestVirt> find_home(const GuestMemory& memory, const ShimKernelFacts& facts,
                            const std::optional<PageTable>& user, const ShimLayout& layout) {
  const std::uint64_t start = facts.image_region_start.raw(), end = facts.image_region_end.raw();
  const std::uint64_t after_image = round_up(facts.image_end.raw(), kLargePage);
  if (start % kLargePage != 0 || end <= start || after_image < start ||
      end - start > std::uint64_t{4} << 30) {
    return fail(ErrorCode::Invalid,
                fmt::format("the kernel image's region {:#x}..{:#x} makes no sense", start, end));
  }
  const std::uint64_t wanted = layout.directories();
  const auto search = [&](std::uint64_t from, std::uint64_t to) {
    return find_free_run(memory, facts.kernel_table, user, from, to, wanted);
  };
  const auto above = search(after_image, end);
  const auto home = above ? above : search(start, std::min(after_image, end));
  if (home) return *home;
  return fail(ErrorCode::Unsupported, fmt::format("no {} MiB of free addresses beside the kernel "
                                                  "image",
                                                  wanted * kLargePage >> 20));
}

}  // namespace

Result<ShimMapping> ShimMapping::find(const GuestMemory& memory, const ShimKernelFacts& facts,
                                      const ShimLayout& layout) {
  const std::optional<PageTable> user = TRY(find_user_table(memory, facts));
  const GuestVirt home = TRY(find_home(memory, facts, user, layout));
  const auto of_user = user ? entry_address(memory, *user, home, kDirectory) : std::nullopt;
  if (user && of_user == entry_address(memory, facts.kernel_table, home, kDirectory)) {
    return not_as_linux_isolates("the kernel's own tables are the user's there");
  }
  return ShimMapping(facts.kernel_table, user, home, layout);
}

/// The entry that maps the page at `offset`, of whatever size. A global one would outlive the
/// change to the user's tables in the TLB, and let user programs of a processor that needs
/// isolation (Meltdown) read the region.
std::uint64_t ShimMapping::page_entry(std::uint64_t offset, bool no_execute) const {
  std::uint64_t value = layout_.place.wrapping_add(offset).raw() | pte::kPresent | pte::kAccessed |
                        pte::kDirty | (is_isolated() ? 0 : pte::kGlobal);
  if (layout_.page_bytes == kLargePage) value |= pte::kLarge;
  if (layout_.is_data(offset)) value |= pte::kWritable | (no_execute ? pte::kNoExecute : 0);
  return value;
}

/// Fills the page tables of small pages. Nothing leads to them yet.
bool ShimMapping::fill_page_tables(GuestMemory& memory, bool no_execute) const {
  std::vector<std::uint64_t> entries(layout_.directories() * (kLargePage / layout_.page_bytes));
  for (std::uint64_t offset = 0; offset < layout_.bytes; offset += layout_.page_bytes) {
    entries[offset / layout_.page_bytes] = page_entry(offset, no_execute);
  }
  return memory.write(layout_.page_tables, std::as_bytes(std::span(entries)));
}

/// The first page and nothing else: of small pages by a page table of its own, since what lies
/// beside it is not ours to show.
bool ShimMapping::write_for_user(GuestMemory& memory) const {
  const auto entry = entry_address(memory, *user_, home_, kDirectory);
  if (!entry) return false;
  const std::uint64_t page = page_entry(0, false);
  if (layout_.page_bytes == kLargePage) return memory.store64(*entry, page);
  std::vector<std::uint64_t> entries(arch::kPageSize / sizeof(std::uint64_t));
  entries[0] = page;
  return memory.write(layout_.user_page_table, std::as_bytes(std::span(entries))) &&
         memory.store64(*entry, layout_.user_page_table.raw() | pte::kPresent | pte::kAccessed);
}

Result<void> ShimMapping::write(GuestMemory& memory, bool no_execute) const {
  const bool large = layout_.page_bytes == kLargePage;
  if (!large && !fill_page_tables(memory, no_execute)) {
    return fail(ErrorCode::Io, "the shim's page tables cannot be written");
  }
  for (std::uint64_t n = 0; n < layout_.directories(); ++n) {
    const std::uint64_t table = layout_.page_tables.wrapping_add(n * kShimSmallPage).raw();
    const std::uint64_t value =
        large ? page_entry(n * kLargePage, no_execute)
              : table | pte::kPresent | pte::kWritable | pte::kAccessed | pte::kDirty;
    const auto entry =
        entry_address(memory, kernel_, home_.wrapping_add(n * kLargePage), kDirectory);
    if (!entry || !memory.store64(*entry, value)) {
      return fail(ErrorCode::Io, "the guest's page table changed under the installer");
    }
  }
  if (user_ && !write_for_user(memory)) {
    return fail(ErrorCode::Io, "the guest's user page table changed under the installer");
  }
  return {};
}

}  // namespace ringside::vmm
