// In this file, top to bottom: the kernel's own words, the list of tasks, the first megabyte, what
// lies above 4 GiB.
#include "vmm/attach/ram/ram_proof.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/symbols/kallsyms.h"
#include "vmm/page_walk.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMostRam = std::uint64_t{1} << 46;
// PAGE_OFFSET where the kernel does not move it (arch/x86/include/asm/page_64_types.h).
constexpr std::uint64_t kDirectMap4 = 0xffff'8880'0000'0000, kDirectMap5 = 0xff11'0000'0000'0000;

constexpr std::uint64_t kTaskSize = 0x2000;  // more than any struct task_struct begins with lists
constexpr std::size_t kFewestTasks = 10;     // threads of the kernel's own are more
constexpr std::size_t kMostTasks = 20'000;   // that are looked at
constexpr int kTries = 5;                    // tasks come and go while we look
constexpr std::chrono::milliseconds kNapBetweenProofs{5};

tl::unexpected<Error> unproven(std::string_view what) {
  return fail(ErrorCode::Unsupported,
              fmt::format("where its guest's memory lies cannot be proven: {}", what));
}

/// How a walk over one list ended.
struct ListWalk {
  std::size_t nodes = 0, high = 0;  // high: above 4 GiB
  bool whole = false;               // it closed, or was longer than we look
};

class ListWalker {
 public:
  ListWalker(const GuestMemory& memory, const guest_linux::KernelMemory& kernel,
             const KernelOutline& outline)
      : reader_(memory, kernel.table()), outline_(&outline) {}

  /// The list whose head is at `head`; not whole when nothing there looks like one.
  ListWalk walk(GuestVirt head) {
    ListWalk walk;
    std::uint64_t previous = head.raw();
    for (auto links = links_at(head.raw()); links; links = links_at(previous)) {
      const std::uint64_t node = links->next;
      if (node == head.raw()) {
        walk.whole = walk.nodes > 0;
        return walk;
      }
      // A node that points back to the one before can be in no cycle that misses the head.
      if (!in_ram(node) || budget_ == 0) return walk;
      --budget_;
      const auto there = links_at(node);
      if (!there || there->previous != previous) return walk;
      walk.high += node - outline_->direct_map >= k4GiB ? 1 : 0;
      if (++walk.nodes == kMostTasks) break;
      previous = node;
    }
    walk.whole = walk.nodes == kMostTasks;
    return walk;
  }

 private:
  /// struct list_head (include/linux/types.h).
  struct Links {
    std::uint64_t next = 0, previous = 0;
  };
  bool in_ram(std::uint64_t at) const {
    return at >= outline_->direct_map && at - outline_->direct_map < outline_->end;
  }
  std::optional<Links> links_at(std::uint64_t at) const {
    const auto links = load<Links>(reader_, GuestVirt(at));
    return links ? std::optional(*links) : std::nullopt;
  }

  PageTableReader reader_;
  const KernelOutline* outline_;
  std::size_t budget_ = 8 * kMostTasks;  // of nodes in all lists: a guest may make any number
};

/// The longest whole list that init_task is in: that of all tasks, or of threads of the kernel.
ListWalk longest_list(const GuestMemory& memory, const guest_linux::KernelMemory& kernel,
                      const KernelOutline& outline) {
  ListWalk best;
  for (int i = 0; i < kTries && best.nodes < kFewestTasks; ++i) {
    if (i > 0) std::this_thread::sleep_for(kNapBetweenProofs);
    ListWalker walker(memory, kernel, outline);
    for (std::uint64_t offset = 0; offset < kTaskSize; offset += 8) {
      const ListWalk walk = walker.walk(outline.init_task.wrapping_add(offset));
      if (walk.whole && walk.nodes > best.nodes) best = walk;
    }
  }
  return best;
}

/// The kernel's header of its real-mode code (struct real_mode_header,
/// arch/x86/include/asm/realmode.h) begins with the address of its text; trampoline_pgd is one of
/// the words from the fifth to the eighth, by version and configuration.
Result<void> prove_low_memory(const GuestMemory& memory, const guest_linux::KernelMemory& kernel,
                              const KernelOutline& outline) {
  constexpr std::uint64_t kFirstMegabyte = 1 << 20, kTextReach = 0x3000;
  constexpr std::uint64_t kChanging = 0x60;  // accessed and dirty bits
  constexpr std::uint64_t kLastEntry = std::uint64_t{511} * 8;
  const auto pointer = load<std::uint64_t>(kernel.reader(), outline.real_mode_header);
  if (!pointer) return unproven("its kernel's pointer to the real-mode code cannot be read");
  const std::uint64_t header = *pointer - outline.direct_map;
  std::array<std::uint32_t, 8> words{};
  if (header >= kFirstMegabyte ||
      !memory.read(GuestPhys(header), std::as_writable_bytes(std::span(words)))) {
    return unproven(
        fmt::format("its kernel's real-mode code, at {:#x}, is not in the first "
                    "megabyte",
                    *pointer));
  }
  if (words[0] < header || words[0] - header >= kTextReach) {
    return unproven(fmt::format("the kernel's real-mode code is not at {:#x}", header));
  }
  const auto image = memory.load64(kernel.table().root.wrapping_add(kLastEntry));
  if (!image || *image == 0) return unproven("its kernel's page tables are not where they were");
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (words[i] % arch::kPageSize != 0 || words[i] >= kFirstMegabyte) continue;
    const auto entry = memory.load64(GuestPhys(words[i]).wrapping_add(kLastEntry));
    if (entry && (*entry & ~kChanging) == (*image & ~kChanging)) return {};
  }
  return unproven(
      fmt::format("the page tables of the real-mode code at {:#x} are not its kernel's", header));
}

/// Whether a page table above 4 GiB maps some of that memory where it lies.
bool has_high_table(const GuestMemory& memory, const guest_linux::KernelMemory& kernel,
                    const KernelOutline& outline) {
  constexpr std::uint64_t kStep = 1 << 30;
  constexpr int kMostSteps = 4096;
  std::uint64_t at = k4GiB;
  for (int i = 0; i < kMostSteps && at < outline.end; ++i, at += kStep) {
    const GuestVirt mapped(outline.direct_map + at);
    const auto where = translate(memory, kernel.table(), mapped);
    if (!where || where->address != GuestPhys(at)) continue;
    for (const unsigned level : {1u, 2u}) {
      const auto entry = entry_address(memory, kernel.table(), mapped, level);
      if (entry && entry->raw() >= k4GiB) return true;
    }
  }
  return false;
}

}  // namespace

Result<KernelOutline> read_outline(const guest_linux::KernelMemory& kernel) {
  const auto kallsyms = TRY(guest_linux::read_kallsyms(kernel));
  const auto address = [&](std::string_view name) -> std::optional<GuestVirt> {
    for (const guest_linux::Symbol& symbol : kallsyms.symbols) {
      if (symbol.name == name) return symbol.address;
    }
    return std::nullopt;
  };
  // Not by the page tables: some of them may lie in memory that has no place yet.
  const auto value = [&](std::optional<GuestVirt> at) -> std::optional<std::uint64_t> {
    if (!at) return std::nullopt;
    const auto bytes = kernel.copy_image(*at, sizeof(std::uint64_t));
    if (!bytes) return std::nullopt;
    std::uint64_t loaded = 0;
    std::memcpy(&loaded, bytes->data(), sizeof loaded);
    return loaded;
  };
  const auto max_pfn = address("max_pfn");
  const auto frames = value(max_pfn);
  const auto task = address("init_task");
  const auto real_mode = address("real_mode_header");
  if (!frames || !task || !real_mode) {
    return unproven("its kernel lacks the symbols max_pfn, init_task or real_mode_header");
  }
  if (*frames == 0 || *frames > kMostRam / arch::kPageSize) {
    return unproven(fmt::format("its kernel counts {} pages", *frames));
  }
  KernelOutline outline;
  outline.end = *frames * arch::kPageSize;
  outline.direct_map = value(address("page_offset_base"))
                           .value_or(kernel.table().levels == 5 ? kDirectMap5 : kDirectMap4);
  outline.max_pfn = *max_pfn;
  outline.init_task = *task;
  outline.real_mode_header = *real_mode;
  if (!GuestVirt(outline.direct_map).checked_add(outline.end)) {
    return unproven("its kernel maps memory beyond the last address");
  }
  return outline;
}

Result<void> prove_ram(const GuestMemory& memory, const guest_linux::KernelMemory& kernel,
                       const KernelOutline& outline) {
  TRY(prove_low_memory(memory, kernel, outline));
  const ListWalk tasks = longest_list(memory, kernel, outline);
  if (tasks.nodes < kFewestTasks) return unproven("no list of its tasks closes");
  if (outline.end > k4GiB && tasks.high == 0 && !has_high_table(memory, kernel, outline)) {
    return unproven("nothing of the kernel's lies above 4 GiB");
  }
  return {};
}

}  // namespace ringside::vmm
