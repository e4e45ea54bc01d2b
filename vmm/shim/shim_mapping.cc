// In this file, top to bottom: the user half's table, free entries, writing them.
#include "vmm/shim/shim_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/page_walk.h"

namespace ringside::vmm {
namespace {

namespace pte = arch::pte;

constexpr std::uint64_t kLargePage = kShimLargePage;
constexpr unsigned kDirectory = 2;  // level

tl::unexpected<Error> not_as_linux_isolates(std::string_view what) {
  return fail(ErrorCode::Unsupported,
              fmt::format("the guest isolates its page tables (PTI), but {}: nothing was put into "
                          "it; a guest that is started with pti=off can be traced",
                          what));
}

/// By the tables, not by the CPU's flag alone: some old distributions switch at run time.
Result<std::optional<PageTable>> find_user_table(const GuestMemory& memory,
                                                 const ShimKernelFacts& facts) {
  const PageTable& kernel = facts.kernel_table;
  PageTable user = kernel;
  user.root = GuestPhys(kernel.root.raw() | arch::kUserHalf);
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
bool is_free(TableCopies& tables, const PageTable& table, GuestVirt at) {
  return tables.entry(table, at, kDirectory) == 0;
}

/// A run of `wanted` free entries in [from, to), the first one in the user half, too. Empty when
/// there is none.
std::optional<GuestVirt> find_free_run(const GuestMemory& memory, const PageTable& kernel,
                                       const std::optional<PageTable>& user, std::uint64_t from,
                                       std::uint64_t to, std::uint64_t wanted) {
  TableCopies tables(memory);
  std::uint64_t run = 0;
  for (std::uint64_t at = from; at < to && at >= from; at += kLargePage) {
    run = is_free(tables, kernel, GuestVirt(at)) ? run + 1 : 0;
    if (run < wanted) continue;
    const GuestVirt first(at - (wanted - 1) * kLargePage);
    if (!user || is_free(tables, *user, first)) return first;
  }
  return std::nullopt;
}

/// Where the search begins. A place that was set aside at start is the only one that its guest ever
/// has. Of the first megabyte another part may be free the next time, and a TLB may still hold what
/// was mapped the last time (the header says more).
std::uint64_t start_of(const ShimLayout& layout, std::uint64_t from, std::uint64_t to) {
  if (layout.page_bytes == kLargePage || from >= to) return from;
  const std::uint64_t choice = layout.place.wrapping_add(layout.bytes).raw() / arch::kPageSize;
  return from + choice % ((to - from) / kLargePage) * kLargePage;
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
  const std::uint64_t first = std::min(start_of(layout, after_image, end), end);
  auto home = search(first, end);
  if (!home) home = search(after_image, end);
  if (!home) home = search(start, std::min(after_image, end));
  if (home) return *home;
  return fail(ErrorCode::Unsupported, fmt::format("no {} MiB of free addresses beside the kernel "
                                                  "image",
                                                  wanted * kLargePage >> 20));
}

}  // namespace

bool lead_to_the_same(const GuestMemory& memory, const PageTable& one, GuestVirt at,
                      const PageTable& other, GuestVirt there) {
  const auto first = translate(memory, one, at), second = translate(memory, other, there);
  return first && second && first->address == second->address;
}

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
std::uint64_t ShimMapping::page_entry(std::uint64_t offset) const {
  std::uint64_t value = layout_.place.wrapping_add(offset).raw() | pte::kPresent | pte::kAccessed |
                        pte::kDirty | (is_isolated() ? 0 : pte::kGlobal);
  if (layout_.page_bytes == kLargePage) value |= pte::kLarge;
  if (layout_.is_data(offset)) value |= pte::kWritable | (no_execute_ ? pte::kNoExecute : 0);
  return value;
}

/// Fills the page tables of small pages. Nothing leads to them yet.
bool ShimMapping::fill_page_tables(GuestMemory& memory) const {
  std::vector<std::uint64_t> entries(layout_.directories() * (kLargePage / layout_.page_bytes));
  for (std::uint64_t offset = 0; offset < layout_.bytes; offset += layout_.page_bytes) {
    entries[offset / layout_.page_bytes] = page_entry(offset);
  }
  return memory.write(layout_.page_tables, std::as_bytes(std::span(entries)));
}

/// The first page and nothing else: by a page table of its own, since what lies beside it is not
/// ours to show.
bool ShimMapping::fill_user_page_table(GuestMemory& memory) const {
  std::vector<std::uint64_t> entries(arch::kPageSize / sizeof(std::uint64_t));
  entries[0] = page_entry(0);
  return memory.write(layout_.user_page_table, std::as_bytes(std::span(entries)));
}

/// The entries of page middle directories that lead here, where they belong; the user's last. Empty
/// when the guest's tables do not reach that far any more.
std::optional<std::vector<ShimMapping::Entry>> ShimMapping::entries(
    const GuestMemory& memory) const {
  const bool large = layout_.page_bytes == kLargePage;
  std::vector<Entry> all;
  for (std::uint64_t n = 0; n < layout_.directories(); ++n) {
    const auto at = entry_address(memory, kernel_, home_.wrapping_add(n * kLargePage), kDirectory);
    if (!at) return std::nullopt;
    const std::uint64_t table = layout_.page_tables.wrapping_add(n * kShimSmallPage).raw();
    all.push_back(
        {*at, large ? page_entry(n * kLargePage)
                    : table | pte::kPresent | pte::kWritable | pte::kAccessed | pte::kDirty});
  }
  if (!user_) return all;
  const auto at = entry_address(memory, *user_, home_, kDirectory);
  if (!at) return std::nullopt;
  const std::uint64_t table = layout_.user_page_table.raw();
  all.push_back({*at, large ? page_entry(0) : table | pte::kPresent | pte::kAccessed});
  return all;
}

Result<void> ShimMapping::write(GuestMemory& memory, bool no_execute) {
  no_execute_ = no_execute;
  const bool small = layout_.page_bytes != kLargePage;
  if (small && !(fill_page_tables(memory) && (!user_ || fill_user_page_table(memory)))) {
    return fail(ErrorCode::Io, "the shim's page tables cannot be written");
  }
  const auto all = entries(memory);
  if (!all) return fail(ErrorCode::Io, "the guest's page table changed under the installer");
  for (const Entry& entry : *all) {
    if (!memory.store64(entry.at, entry.value)) {
      return fail(ErrorCode::Io, "the guest's page tables cannot be written");
    }
  }
  return {};
}

/// Whoever died while it wrote them has left some out.
bool ShimMapping::are_ours(const GuestMemory& memory) const {
  const auto all = entries(memory);
  return all && std::ranges::all_of(*all, [&memory](const Entry& entry) {
           const auto now = memory.load64(entry.at);
           return now == entry.value || now == 0;
         });
}

Result<ShimMapping> ShimMapping::find_written(const GuestMemory& memory,
                                              const ShimKernelFacts& facts,
                                              const ShimLayout& layout, GuestVirt home) {
  ShimMapping found(facts.kernel_table, TRY(find_user_table(memory, facts)), home, layout);
  for (const bool no_execute : {true, false}) {
    found.no_execute_ = no_execute;
    if (found.are_ours(memory)) return found;
  }
  return fail(ErrorCode::Invalid, "the guest's page tables lead elsewhere than it says");
}

Result<void> ShimMapping::clear(GuestMemory& memory) const {
  const auto all = entries(memory);
  if (!all || !are_ours(memory)) {
    return fail(ErrorCode::Invalid, "the guest has changed its page tables where the shim is");
  }
  for (const Entry& entry : *all) {
    if (!memory.store64(entry.at, 0)) {
      return fail(ErrorCode::Io, "the guest's page tables cannot be written");
    }
  }
  return {};
}

}  // namespace ringside::vmm
