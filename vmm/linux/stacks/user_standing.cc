#include "vmm/linux/stacks/user_standing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/linear_map.h"
#include "vmm/linux/page_copies.h"
#include "vmm/linux/stacks/stack_walk.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostThreads = 1 << 16;
/// So much of a stack is looked at, from its pointer on. A signal frame may lie behind the frames
/// of its handler and what that has called.
constexpr std::uint64_t kStackBytes = 256 << 10;
constexpr std::size_t kMostStacks = 16;  // of a thread: a handler may have a stack of its own

/// The ranges in order of their place.
class RangeIndex {
 public:
  struct Entry {
    FileRange range;
    std::size_t number = 0;
  };
  explicit RangeIndex(std::span<const FileRange> ranges) {
    for (std::size_t n = 0; n < ranges.size(); ++n) entries_.push_back({ranges[n], n});
    std::ranges::sort(entries_, {}, place_of);
  }

  /// Those whose first byte is among these bytes of the file.
  std::span<const Entry> in(GuestVirt inode, std::uint64_t begin, std::uint64_t end) const {
    const auto first = std::ranges::lower_bound(entries_, std::pair(inode, begin), {}, place_of),
               last = std::ranges::lower_bound(entries_, std::pair(inode, end), {}, place_of);
    return {first, last};
  }
  std::span<const Entry> in(GuestVirt inode) const { return in(inode, 0, UINT64_MAX); }
  /// The one that has this byte of the file.
  std::optional<std::size_t> at(GuestVirt inode, std::uint64_t offset) const {
    const auto above = std::ranges::upper_bound(entries_, std::pair(inode, offset), {}, place_of);
    if (above == entries_.begin()) return std::nullopt;
    const Entry& entry = *std::prev(above);
    if (entry.range.inode != inode || offset >= entry.range.end) return std::nullopt;
    return entry.number;
  }
  std::set<GuestVirt> inodes() const {
    std::set<GuestVirt> found;
    for (const Entry& each : entries_) found.insert(each.range.inode);
    return found;
  }

 private:
  static std::pair<GuestVirt, std::uint64_t> place_of(const Entry& entry) {
    return {entry.range.inode, entry.range.begin};
  }
  std::vector<Entry> entries_;
};

}  // namespace

/// A process's memory.
struct UserStanding::Space {
  std::vector<Area> areas;        // by address
  std::vector<Area> moved;        // Sleepers::moved
  std::optional<GuestPhys> root;  // of its page table, once it was asked for
};

/// All is kept as it was read first: make a new one for each look.
struct UserStanding::Look {
  const UserStanding& by;
  vmm::GuestMemory& memory;
  Kernel& kernel;
  const RangeIndex ranges;
  const LinearMapReader direct;
  const PageCopies copies;  // where each read is a system call
  const GuestReader& reader;
  std::map<GuestVirt, Space> spaces;  // by struct mm_struct
  std::set<GuestVirt> on_cpus;        // of the threads that run: mm_struct
  using Inside = std::vector<std::size_t>;

  /// `moved`: as an earlier look has found them.
  Look(const UserStanding& standing, vmm::GuestMemory& guest, Kernel& of,
       std::span<const FileRange> in, std::span<const std::pair<GuestVirt, Area>> moved = {})
      : by(standing),
        memory(guest),
        kernel(of),
        ranges(in),
        direct(guest, of.table_in(guest), standing.linear_),
        copies(direct),
        reader(standing.linear_ ? static_cast<const GuestReader&>(copies) : direct) {
    if (!find_areas_by_files()) find_areas_by_processes();
    for (auto& [mm, space] : spaces) std::ranges::sort(space.areas, {}, &Area::begin);
    for (const auto& [mm, area] : moved) spaces[mm].moved.push_back(area);
  }

  bool find_areas_by_files() {
    for (const GuestVirt inode : ranges.inodes()) {
      const auto entries = ranges.in(inode);
      const auto uses =
          by.reverse_
              ? by.reverse_->uses(reader, inode, entries.front().range.begin / arch::kPageSize,
                                  entries.back().range.begin / arch::kPageSize)
              : std::nullopt;
      if (!uses) return false;
      for (const FileUse& use : *uses) {
        add(use.mm, {use.begin, use.end, inode, use.offset, use.has_copies});
      }
    }
    return true;
  }

  void find_areas_by_processes() {
    spaces.clear();
    std::set<GuestVirt> seen;
    by.walk(reader, [&](GuestVirt task) {
      const auto mm = load_field<std::uint64_t>(reader, task, by.processes_.task_mm);
      if (!mm || *mm == 0 || !seen.insert(GuestVirt(*mm)).second) return;
      for (const FileMapping& each : list_file_mappings(reader, by.processes_, GuestVirt(*mm))) {
        const auto inode = load_field<std::uint64_t>(reader, each.file, by.file_inode_);
        if (!inode || each.file.raw() == 0) continue;
        add(GuestVirt(*mm), {each.begin, each.end, GuestVirt(*inode), each.offset});
      }
    });
  }

  /// All pages with ranges of the file, of which other bytes may be asked for, too.
  FileRange pages_with_ranges(GuestVirt inode) const {
    const auto entries = ranges.in(inode);
    FileRange pages{inode, round_down(entries.front().range.begin, arch::kPageSize), 0};
    for (const auto& [range, number] : entries) pages.end = std::max(pages.end, range.end);
    pages.end = round_up(pages.end, arch::kPageSize);
    return pages;
  }

  /// Finds where these pages of the file would be, by each distance between its bytes and addresses
  /// that the process's mappings of it have; these mappings are `uses`.
  void find_moved(GuestVirt mm, const FileRange& pages, std::span<FileUse> uses) {
    std::ranges::sort(uses, {}, &FileUse::begin);
    const std::uint64_t most = pages.end - pages.begin;
    std::set<std::uint64_t> distances;
    for (const FileUse& use : uses) distances.insert(use.begin.raw() - use.offset);
    for (const std::uint64_t distance : distances) {
      const std::uint64_t end = distance + pages.end;
      std::uint64_t at = distance + pages.begin;
      const auto add_until = [&](std::uint64_t next) {
        const bool has_some = next > at && next - at <= most &&
                              !ranges.in(pages.inode, at - distance, next - distance).empty();
        if (has_some) {
          spaces[mm].moved.push_back({GuestVirt(at), GuestVirt(next), pages.inode, at - distance});
        }
      };
      for (const FileUse& use : uses) {
        if (use.end.raw() <= at || use.begin.raw() >= end) continue;
        add_until(use.begin.raw());
        at = use.end.raw();
      }
      add_until(end);
    }
  }

  /// While the guest runs: going through all mappings of the files takes longer than through those
  /// of the ranges. A real-time kernel is not looked at.
  void find_moved() {
    for (const GuestVirt inode : ranges.inodes()) {
      auto uses = by.reverse_ ? by.reverse_->uses(reader, inode, 0, UINT64_MAX) : std::nullopt;
      if (!uses) continue;
      const FileRange pages = pages_with_ranges(inode);
      std::ranges::sort(*uses, {}, &FileUse::mm);
      for (auto use = uses->begin(); use != uses->end();) {
        const auto next = std::ranges::upper_bound(use, uses->end(), use->mm, {}, &FileUse::mm);
        find_moved(use->mm, pages, {use, next});
        use = next;
      }
    }
  }

  void add(GuestVirt mm, const Area& area) {
    const std::uint64_t end = area.offset + area.end.offset_from(area.begin);
    if (end < area.offset || ranges.in(area.inode, area.offset, end).empty()) return;
    spaces[mm].areas.push_back(area);
  }

  std::optional<vmm::PageTable> table_of(GuestVirt mm, Space& space) {
    vmm::PageTable table = kernel.table_in(memory);
    if (!space.root) {
      const auto at = load_field<std::uint64_t>(reader, mm, by.processes_.mm_pgd);
      const auto root = at ? vmm::translate(memory, table, GuestVirt(*at)) : std::nullopt;
      if (!root) return std::nullopt;
      space.root = root->address;
    }
    table.root = *space.root;
    return table;
  }

  void mark(const Space& space, std::uint64_t word, Inside& inside) const {
    const auto mark_in = [&](const Area& area) {
      const auto number = GuestVirt(word) < area.end
                              ? ranges.at(area.inode, area.offset + (word - area.begin.raw()))
                              : std::nullopt;
      if (number) inside.push_back(*number);
    };
    const auto above = std::ranges::upper_bound(space.areas, GuestVirt(word), {}, &Area::begin);
    if (above != space.areas.begin()) mark_in(*std::prev(above));
    for (const Area& area : space.moved) {
      if (GuestVirt(word) >= area.begin) mark_in(area);
    }
  }

  /// Of a page that is not in memory: whether it is swapped out. Then its entry tells where it is.
  bool is_swapped_out(const vmm::PageTable& table, GuestVirt at) const {
    const auto entry = vmm::entry_address(memory, table, at, 1);
    std::uint64_t value = 0;
    return entry && memory.read(*entry, std::as_writable_bytes(std::span(&value, 1))) && value != 0;
  }

  /// The ranges that begin in the area.
  void find_copies(const Area& area, const vmm::PageTable& table, Copies& found) const {
    std::optional<std::uint64_t> absent;  // the latest page that is
    const std::uint64_t size = area.end.offset_from(area.begin);
    for (const auto& [range, number] : ranges.in(area.inode, area.offset, area.offset + size)) {
      const GuestVirt at = area.begin.wrapping_add(range.begin - area.offset);
      if (const auto place = vmm::translate_mapped(memory, table, at)) {
        found.places.push_back({number, place->address});
        continue;
      }
      const std::uint64_t page = at.raw() / arch::kPageSize;
      if (absent != page && is_swapped_out(table, at)) ++found.swapped_out;
      absent = page;
    }
  }

  /// The bytes from an address whose page is not in memory to the next page that may be.
  std::uint64_t gap_at(const vmm::PageTable& table, GuestVirt at) const {
    const auto entry = vmm::entry_address(memory, table, at, 1);
    if (!entry) return arch::kLargePageSize - at.raw() % arch::kLargePageSize;
    std::array<std::uint64_t, kStackBytes / arch::kPageSize> entries;
    const std::uint64_t in_table = arch::left_in_page(entry->raw()) / sizeof entries[0];
    const auto part = std::span(entries).first(std::min<std::uint64_t>(in_table, entries.size()));
    if (!memory.read(*entry, std::as_writable_bytes(part))) return kStackBytes;
    const auto next = std::find_if(part.begin() + 1, part.end(), [](auto one) { return one != 0; });
    return arch::left_in_page(at.raw()) + (next - part.begin() - 1) * arch::kPageSize;
  }

  /// The words from the stack pointer on, as far as they are in memory. Pages between them may not
  /// be: a handler's function may leave most of its room untouched, with the signal frame behind.
  /// Adds the stack pointers of the code that signals have interrupted.
  void mark_stack(const Space& space, const vmm::PageTable& table, std::uint64_t stack_pointer,
                  Inside& inside, std::vector<std::uint64_t>& interrupted) const {
    GuestVirt at(round_down(stack_pointer, 8));
    std::array<std::uint64_t, arch::kSignalStackPointer> before{};  // the last words, in a ring
    std::size_t count = 0;
    for (std::uint64_t left = kStackBytes, bytes = 0; left != 0; left -= bytes) {
      if (arch::in_kernel_half(at)) return;
      std::array<std::uint64_t, arch::kPageSize / 8> words;
      bytes = std::min<std::uint64_t>(left, arch::left_in_page(at.raw()));
      const auto part = std::span(words).first(bytes / 8);
      const auto page = vmm::translate_mapped(memory, table, at);
      if (!page || !memory.read(page->address, std::as_writable_bytes(part))) {
        bytes = std::min(left, gap_at(table, at));
        at = at.wrapping_add(bytes);
        continue;
      }
      for (const std::uint64_t word : part) {
        mark(space, word, inside);
        std::uint64_t& oldest = before[count++ % before.size()];
        if (word == arch::kSignalSegments) interrupted.push_back(oldest);
        oldest = word;
      }
      at = at.wrapping_add(bytes);
    }
  }

  void mark_registers(const Space& space, const vmm::PageTable& table, const Registers& registers,
                      Inside& inside) const {
    mark(space, registers.rip, inside);
    std::vector<std::uint64_t> stacks{registers.rsp}, seen;
    for (std::size_t n = 0; n < stacks.size() && seen.size() < kMostStacks; ++n) {
      const std::uint64_t from = stacks[n];
      const auto has = [from](std::uint64_t one) { return from - one < kStackBytes; };
      if (std::ranges::any_of(seen, has)) continue;
      seen.push_back(from);
      mark_stack(space, table, from, inside, stacks);
    }
  }

  /// Whatever the thread is inside of, by the registers that the kernel has saved of it.
  Inside look_at_thread(const Thread& thread, GuestVirt mm, Space& space) {
    Inside inside;
    const auto saved =
        load<arch::SavedRegisters>(direct, thread.stack.wrapping_add(by.saved_registers_));
    const auto table = table_of(mm, space);
    if (!saved || !table) return inside;
    const Registers registers = arch::unsave(*saved);
    if (registers.in_user_mode()) mark_registers(space, *table, registers, inside);
    return inside;
  }

  /// In the kernel, where the registers of a process lie that it has interrupted.
  bool is_on_tasks_stack(const Registers& registers) const {
    const auto task = kernel.current_task(reader, GuestVirt(registers.gs_base));
    if (!task) return false;
    const auto stack = load_field<std::uint64_t>(reader, *task, by.thread_.stack);
    return stack && registers.rsp - *stack < by.stack_bytes_;
  }

  /// A vCPU in user mode is one of the threads that run; which one is not known.
  void look_at_vcpu(const Registers& registers, Inside& inside) {
    vmm::PageTable table = kernel.table_in(memory);
    table.root = arch::page_table_of(registers).root;
    for (const GuestVirt mm : on_cpus) mark_registers(spaces.at(mm), table, registers, inside);
  }
};

std::optional<UserStanding> UserStanding::prepare(vmm::GuestMemory& memory, const Kernel& kernel) {
  UserStanding made;
  const auto threads = TaskListLayout::from(kernel.types());
  const auto processes = ProcessLayout::from(kernel.types());
  const auto inode = offset_of(kernel.types(), "file", {"f_inode"});
  const auto thread = ThreadLayout::from(kernel);
  const Symbol* const init = kernel.symbols().find("init_task", "vmlinux");
  if (!threads || !processes || !inode || !thread || init == nullptr) return std::nullopt;
  made.threads_ = *threads;
  made.processes_ = *processes;
  made.thread_ = *thread;
  made.reverse_ = ReverseMap::from(kernel.types());
  made.linear_ = find_linear_map(memory, kernel);
  made.file_inode_ = *inode;
  made.saved_registers_ = find_saved_registers(kernel.symbols());
  made.stack_bytes_ = kernel_stack_bytes(kernel.symbols());
  made.init_task_ = init->address;
  return made;
}

std::optional<UserStanding::ThreadLayout> UserStanding::ThreadLayout::from(const Kernel& kernel) {
  const auto of_task = [&](std::string_view name) {
    return offset_of(kernel.types(), "task_struct", {name});
  };
  const KernelLayout& known = kernel.layout();
  const auto chosen = of_task("nvcsw"), forced = of_task("nivcsw");
  if (!known.task_mm || !known.task_stack || !known.task_start_time || !chosen || !forced) {
    return std::nullopt;
  }
  return ThreadLayout{*known.task_mm, *known.task_stack, *known.task_start_time,
                      *chosen,        *forced,           of_task("on_cpu")};
}

std::optional<UserStanding::Thread> UserStanding::load_thread(const GuestReader& reader,
                                                              GuestVirt task) const {
  const auto word = [&](std::uint32_t offset) {
    return load_field<std::uint64_t>(reader, task, offset);
  };
  const auto mm = word(thread_.mm);
  if (!mm || *mm == 0) return std::nullopt;
  const auto stack = word(thread_.stack), start = word(thread_.start_time),
             chosen = word(thread_.nvcsw), forced = word(thread_.nivcsw);
  if (!stack || !start || !chosen || !forced) return std::nullopt;
  Thread thread{GuestVirt(*mm), GuestVirt(*stack), *start, *chosen + *forced};
  if (thread_.on_cpu) {
    const auto runs = load_field<std::uint32_t>(reader, task, *thread_.on_cpu);
    thread.may_run = !runs || *runs != 0;
  }
  return thread;
}

/// All threads, until `visit` wants no more.
template <class Visit>
ListEnd UserStanding::walk(const GuestReader& reader, Visit visit) const {
  std::size_t left = kMostThreads;
  return walk_processes(reader, threads_.task_tasks, init_task_, kMostThreads,
                        [&](GuestVirt leader) {
                          walk_threads(reader, threads_, leader, left, [&](GuestVirt task) {
                            visit(task);
                            return --left != 0;
                          });
                          return left != 0;
                        });
}

UserStanding::Copies UserStanding::copies(vmm::GuestMemory& memory, Kernel& kernel,
                                          std::span<const FileRange> ranges,
                                          const Sleepers& sleepers) const {
  Look look(*this, memory, kernel, ranges, sleepers.moved);
  Copies found;
  for (auto& [mm, space] : look.spaces) {
    const bool has_any = std::ranges::any_of(space.areas, &Area::has_copies);
    const auto table = has_any || !space.moved.empty() ? look.table_of(mm, space) : std::nullopt;
    if (!table) continue;
    for (const Area& area : space.areas) {
      if (area.has_copies) look.find_copies(area, *table, found);
    }
    for (const Area& area : space.moved) look.find_copies(area, *table, found);
  }
  std::ranges::sort(found.places);
  found.places.erase(std::unique(found.places.begin(), found.places.end()), found.places.end());
  return found;
}

UserStanding::Sleepers UserStanding::look_ahead(vmm::GuestMemory& memory, Kernel& kernel,
                                                std::span<const FileRange> ranges) const {
  Sleepers found;
  if (ranges.empty()) return found;
  Look look(*this, memory, kernel, ranges);
  look.find_moved();
  for (const auto& [mm, space] : look.spaces) {
    for (const Area& area : space.moved) found.moved.emplace_back(mm, area);
  }
  if (!thread_.on_cpu) return found;
  for (const FileRange& range : ranges) found.ranges.insert({range.inode, range.begin});
  walk(look.reader, [&](GuestVirt task) {
    const auto before = load_thread(look.direct, task);
    const auto space = before ? look.spaces.find(before->mm) : look.spaces.end();
    if (space == look.spaces.end() || before->may_run) return;
    const Look::Inside inside = look.look_at_thread(*before, before->mm, space->second);
    if (load_thread(look.direct, task) != before) return;
    auto& thread = found.threads[task];
    thread.was = *before;
    thread.areas = space->second.areas;
    for (const std::size_t n : inside) thread.inside.push_back({ranges[n].inode, ranges[n].begin});
  });
  return found;
}

Result<std::vector<bool>> UserStanding::find(vmm::PausedMachine& machine, Kernel& kernel,
                                             std::span<const FileRange> ranges,
                                             const Sleepers& sleepers) const {
  std::vector<bool> found(ranges.size());
  if (ranges.empty()) return found;
  Look look(*this, machine.memory(), kernel, ranges, sleepers.moved);
  std::vector<Registers> on_vcpus;
  for (unsigned vcpu = 0; vcpu < machine.vcpu_count(); ++vcpu) {
    const Registers registers = TRY(machine.registers(vcpu));
    if (registers.in_user_mode()) {
      on_vcpus.push_back(registers);
    } else if (!look.is_on_tasks_stack(registers)) {
      return fail(ErrorCode::Invalid,
                  fmt::format("vCPU {} is on its way from or to a process", vcpu));
    }
  }
  const bool is_ahead = sleepers.cover(ranges);
  Look::Inside inside;
  const ListEnd end = walk(look.reader, [&](GuestVirt task) {
    const auto thread = load_thread(look.reader, task);
    const auto space = thread ? look.spaces.find(thread->mm) : look.spaces.end();
    if (space == look.spaces.end()) return;
    if (thread->may_run) look.on_cpus.insert(thread->mm);
    const auto known = is_ahead ? sleepers.threads.find(task) : sleepers.threads.end();
    if (known != sleepers.threads.end() && known->second.was == *thread &&
        known->second.areas == space->second.areas) {
      for (const auto& [inode, offset] : known->second.inside) {
        if (const auto number = look.ranges.at(inode, offset)) inside.push_back(*number);
      }
      return;
    }
    const auto marked = look.look_at_thread(*thread, thread->mm, space->second);
    inside.insert(inside.end(), marked.begin(), marked.end());
  });
  if (end != ListEnd::Whole) {
    return fail(ErrorCode::Invalid, "the guest's list of tasks cannot be followed to its end");
  }
  for (const Registers& registers : on_vcpus) look.look_at_vcpu(registers, inside);
  for (const std::size_t number : inside) found[number] = true;
  return found;
}

bool UserStanding::Sleepers::cover(std::span<const FileRange> asked) const {
  return std::ranges::all_of(asked, [this](const FileRange& each) {
    return ranges.contains({each.inode, each.begin});
  });
}

}  // namespace ringside::guest_linux
