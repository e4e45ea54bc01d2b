#include "vmm/linux/stacks/user_standing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/stacks/stack_walk.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostThreads = 1 << 16;
/// A signal frame has 1 to 3 KiB below the handler's own frames (struct rt_sigframe, with AVX-512).
constexpr std::uint64_t kStackBytes = 32 << 10;

/// A range, as a process has it mapped.
struct MappedRange {
  GuestVirt begin, end;
  std::size_t number = 0;
};

/// A process's memory.
struct Space {
  GuestPhys root;                   // of its page table
  std::vector<MappedRange> mapped;  // by address
  bool is_seen = false;
};

}  // namespace

struct UserStanding::Look {
  const UserStanding& by;
  vmm::GuestMemory& memory;
  Kernel& kernel;
  vmm::PageTableReader reader;
  std::span<const FileRange> ranges;
  std::vector<Registers> on_vcpus;    // of those in user mode
  std::map<GuestVirt, Space> spaces;  // by struct mm_struct
  std::vector<bool> found;

  void mark(const std::vector<MappedRange>& mapped, std::uint64_t word) {
    const auto above = std::ranges::upper_bound(mapped, GuestVirt(word), {}, &MappedRange::begin);
    if (above == mapped.begin()) return;
    const MappedRange& range = *std::prev(above);
    if (GuestVirt(word) < range.end) found[range.number] = true;
  }

  /// The words from the stack pointer on, as far as they are in memory.
  void mark_stack(const std::vector<MappedRange>& mapped, const GuestReader& process,
                  std::uint64_t stack_pointer) {
    GuestVirt at(stack_pointer & ~std::uint64_t{7});
    for (std::uint64_t left = kStackBytes; left != 0;) {
      std::array<std::uint64_t, arch::kPageSize / 8> words;
      const std::uint64_t bytes = std::min<std::uint64_t>(left, arch::left_in_page(at.raw()));
      const auto part = std::span(words).first(bytes / 8);
      if (arch::in_kernel_half(at) || !process.read(at, std::as_writable_bytes(part))) return;
      for (const std::uint64_t word : part) mark(mapped, word);
      at = at.wrapping_add(bytes);
      left -= bytes;
    }
  }

  void mark_registers(const std::vector<MappedRange>& mapped, GuestPhys root,
                      const Registers& registers) {
    mark(mapped, registers.rip);
    vmm::PageTable table = kernel.table_in(memory);
    table.root = root;
    mark_stack(mapped, vmm::PageTableReader(memory, table), registers.rsp);
  }

  std::vector<MappedRange> mapped_in(GuestVirt mm) const {
    std::vector<MappedRange> mapped;
    for (const FileMapping& each : list_file_mappings(reader, by.processes_, mm)) {
      const auto inode = load_field<std::uint64_t>(reader, each.file, by.file_inode_);
      if (!inode || each.file.raw() == 0) continue;
      const std::uint64_t size = each.end.offset_from(each.begin);
      for (std::size_t n = 0; n < ranges.size(); ++n) {
        const std::uint64_t distance = ranges[n].begin - each.offset;
        if (ranges[n].inode.raw() != *inode || distance >= size) continue;
        const GuestVirt begin = each.begin.wrapping_add(distance);
        mapped.push_back({begin, begin.wrapping_add(ranges[n].end - ranges[n].begin), n});
      }
    }
    std::ranges::sort(mapped, {}, &MappedRange::begin);
    return mapped;
  }

  /// Null where it has none, or none of the ranges is mapped in it.
  Space* space_of(GuestVirt task) {
    const auto mm = load_field<std::uint64_t>(reader, task, by.task_mm_);
    if (!mm || *mm == 0) return nullptr;
    auto space = spaces.find(GuestVirt(*mm));
    if (space == spaces.end()) {
      const auto table = load_field<std::uint64_t>(reader, GuestVirt(*mm), by.processes_.mm_pgd);
      const auto root =
          table ? vmm::translate(memory, kernel.table_in(memory), GuestVirt(*table)) : std::nullopt;
      Space found;
      if (root) found = {root->address, mapped_in(GuestVirt(*mm))};
      space = spaces.emplace(GuestVirt(*mm), std::move(found)).first;
    }
    return space->second.mapped.empty() ? nullptr : &space->second;
  }

  void look_at_thread(GuestVirt task) {
    const Space* const space = space_of(task);
    const auto stack = load_field<std::uint64_t>(reader, task, by.task_stack_);
    if (space == nullptr || !stack) return;
    const auto saved =
        load<arch::SavedRegisters>(reader, GuestVirt(*stack).wrapping_add(by.saved_registers_));
    if (!saved) return;
    const Registers registers = arch::unsave(*saved);
    if (registers.in_user_mode()) mark_registers(space->mapped, space->root, registers);
  }

  /// In the kernel, where the registers of a process lie that it has interrupted.
  bool is_on_tasks_stack(const Registers& registers) const {
    const auto task = kernel.current_task(reader, GuestVirt(registers.gs_base));
    if (!task) return false;
    const auto stack = load_field<std::uint64_t>(reader, *task, by.task_stack_);
    return stack && registers.rsp - *stack < by.stack_bytes_;
  }

  void look_at_vcpus() {
    for (const Registers& each : on_vcpus) {
      const GuestPhys root = arch::page_table_of(each).root;
      for (const auto& [mm, space] : spaces) {
        if (!space.mapped.empty()) mark_registers(space.mapped, root, each);
      }
    }
  }
};

std::optional<UserStanding> UserStanding::prepare(const Kernel& kernel) {
  UserStanding made;
  const auto threads = TaskListLayout::from(kernel.types());
  const auto processes = ProcessLayout::from(kernel.types());
  const auto inode = offset_of(kernel.types(), "file", {"f_inode"});
  const auto stack = kernel.layout().task_stack;
  const Symbol* const init = kernel.symbols().find("init_task", "vmlinux");
  if (!threads || !processes || !inode || !stack || init == nullptr) return std::nullopt;
  made.threads_ = *threads;
  made.processes_ = *processes;
  made.file_inode_ = *inode;
  made.task_stack_ = *stack;
  made.task_mm_ = processes->task_mm;
  made.saved_registers_ = find_saved_registers(kernel.symbols());
  made.stack_bytes_ = kernel_stack_bytes(kernel.symbols());
  made.init_task_ = init->address;
  return made;
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

std::vector<UserStanding::Copy> UserStanding::copies(vmm::GuestMemory& memory, Kernel& kernel,
                                                     std::span<const FileRange> ranges) const {
  Look look = begin(memory, kernel, ranges);
  std::vector<Copy> found;
  walk(look.reader, [&](GuestVirt task) {
    Space* const space = look.space_of(task);
    if (space == nullptr || std::exchange(space->is_seen, true)) return;
    vmm::PageTable table = kernel.table_in(look.memory);
    table.root = space->root;
    for (const MappedRange& range : space->mapped) {
      const auto at = vmm::translate(look.memory, table, range.begin);
      if (at) found.push_back({range.number, at->address});
    }
  });
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

UserStanding::Look UserStanding::begin(vmm::GuestMemory& memory, Kernel& kernel,
                                       std::span<const FileRange> ranges) const {
  return {.by = *this,
          .memory = memory,
          .kernel = kernel,
          .reader = vmm::PageTableReader(memory, kernel.table_in(memory)),
          .ranges = ranges,
          .on_vcpus = {},
          .spaces = {},
          .found = std::vector<bool>(ranges.size())};
}

Result<std::vector<bool>> UserStanding::find(vmm::PausedMachine& machine, Kernel& kernel,
                                             std::span<const FileRange> ranges) const {
  Look look = begin(machine.memory(), kernel, ranges);
  if (ranges.empty()) return std::move(look.found);
  for (unsigned vcpu = 0; vcpu < machine.vcpu_count(); ++vcpu) {
    const Registers registers = TRY(machine.registers(vcpu));
    if (registers.in_user_mode()) {
      look.on_vcpus.push_back(registers);
    } else if (!look.is_on_tasks_stack(registers)) {
      return fail(ErrorCode::Invalid,
                  fmt::format("vCPU {} is on its way from or to a process", vcpu));
    }
  }
  const ListEnd end = walk(look.reader, [&look](GuestVirt task) { look.look_at_thread(task); });
  if (end != ListEnd::Whole) {
    return fail(ErrorCode::Invalid, "the guest's list of tasks cannot be followed to its end");
  }
  look.look_at_vcpus();
  return std::move(look.found);
}

}  // namespace ringside::guest_linux
