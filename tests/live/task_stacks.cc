// In this file, top to bottom: one task and its stack, what the guest says, both together.
#include "tests/live/task_stacks.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <sstream>

#include "vmm/linux/layout.h"
#include "vmm/linux/stacks/stack_walk.h"

namespace ringside::live {
namespace {

using guest_linux::Symbol;

/// The stack of a task that sleeps, in the words of /proc/PID/stack: what __switch_to_asm pushed
/// (struct inactive_task_frame) lies where thread.sp points, the return address last.
std::vector<std::string> sleeping_stack(const vmm::PageTableReader& reader,
                                        guest_linux::Kernel& kernel,
                                        const guest_linux::StackTables& tables, GuestVirt task) {
  const auto offset = guest_linux::offset_of(kernel.types(), "task_struct", {"thread", "sp"});
  const auto sp = load<std::uint64_t>(reader, GuestVirt(task.raw() + offset.value_or(0)));
  Registers asleep;
  asleep.rsp = sp.value_or(0) + 48;
  asleep.rbp = load<std::uint64_t>(reader, GuestVirt(sp.value_or(0) + 40)).value_or(0);
  std::array<std::uint64_t, 64> frames{};
  const auto found =
      guest_linux::unwind(tables, reader, asleep, guest_linux::WalkStart::Caller, frames);
  std::vector<std::string> names;
  for (const std::uint64_t frame : std::span(frames).first(found)) {
    const Symbol* symbol = kernel.symbols().at(GuestVirt(frame - 1));
    names.push_back(symbol == nullptr
                        ? "?"
                        : fmt::format("{}+{:#x}", symbol->name, frame - symbol->address.raw()));
  }
  return names;
}

constexpr const char* kAllStacks =
    "for p in $(ls /proc | grep '^[0-9]*$'); do echo pid $p; cat /proc/$p/stack 2>/dev/null; done; "
    "true";

/// Frames by pid, "function+0x12".
std::map<std::int32_t, std::vector<std::string>> parse_stacks(const std::string& text) {
  std::map<std::int32_t, std::vector<std::string>> stacks;
  std::istringstream listing(text);
  std::int32_t pid = 0;
  for (std::string line; std::getline(listing, line);) {
    if (line.starts_with("pid ")) {
      pid = std::stoi(line.substr(4));
    } else if (line.starts_with("[<0>] ")) {
      const std::string frame = line.substr(6);
      stacks[pid].push_back(frame.substr(0, frame.find('/')));
    }
  }
  return stacks;
}

}  // namespace

std::optional<GuestVirt> find_task(const vmm::PageTableReader& reader, guest_linux::Kernel& kernel,
                                   std::int32_t pid) {
  const auto tasks = guest_linux::offset_of(kernel.types(), "task_struct", {"tasks"});
  const Symbol* first = kernel.symbols().find("init_task");
  if (!tasks || first == nullptr || !kernel.layout().task_pid) return std::nullopt;
  std::uint64_t task = first->address.raw();
  for (int n = 0; n < 10'000; ++n) {
    const auto next = load<std::uint64_t>(reader, GuestVirt(task + *tasks));
    if (!next) return std::nullopt;
    task = *next - *tasks;
    const auto id = load<std::int32_t>(reader, GuestVirt(task + *kernel.layout().task_pid));
    if (id && *id == pid) return GuestVirt(task);
  }
  return std::nullopt;
}

std::map<std::int32_t, Stacks> stacks_at_rest(const vmm::PageTableReader& reader,
                                              guest_linux::Kernel& kernel,
                                              const guest_linux::StackTables& tables,
                                              const Ask& ask) {
  std::map<std::int32_t, Stacks> stacks;
  for (auto& [pid, theirs] : parse_stacks(ask(kAllStacks))) {
    const auto task = find_task(reader, kernel, pid);
    if (theirs.empty() || !task) continue;
    stacks[pid] = {sleeping_stack(reader, kernel, tables, *task), theirs};
  }
  const auto after = parse_stacks(ask(kAllStacks));
  std::erase_if(stacks, [&](const auto& each) {
    const auto again = after.find(each.first);
    // One that runs just now has left what it saved behind.
    const auto& ours = each.second.ours;
    return again == after.end() || again->second != each.second.theirs || ours.empty() ||
           !ours[0].starts_with("__schedule+");
  });
  return stacks;
}

}  // namespace ringside::live
