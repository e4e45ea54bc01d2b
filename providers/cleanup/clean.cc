// In this file, top to bottom: who left it, its breakpoints, all of it.
#include "providers/cleanup/clean.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "disasm/decoder.h"
#include "providers/cleanup/leave.h"
#include "providers/trap_points/code_writes.h"
#include "providers/trap_points/replaced_byte.h"
#include "providers/trap_points/sites/site_examiner.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/arch/arch.h"
#include "vmm/base/end_order.h"
#include "vmm/linux/low_memory.h"
#include "vmm/linux/shim_facts.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/page_walk.h"
#include "vmm/shim/jump_record.h"
#include "vmm/shim/shim_remains.h"

namespace ringside::providers {
namespace {

using vmm::ShimRemains;

/// Longer than two beats of one that lives are apart.
constexpr auto kHeartbeats = std::chrono::milliseconds(300);
constexpr unsigned kTextTries = 2000;
constexpr auto kTextWait = std::chrono::milliseconds(5);
/// A trap that its host has not answered goes on alone after 3 s.
constexpr LeaveTries kTriesToLeave{.anywhere = 1500, .in_slots = 20};
constexpr LeaveTries kTriesToMend{.anywhere = 1500, .in_slots = 1500};
/// With what may lie before the instruction.
constexpr std::size_t kLongestSlot = disasm::kMaxSlotBytes + vmm::TrapTable::kFaultSearchBytes;

Result<void> check_dead(vmm::Machine& machine, const ShimRemains& remains) {
  if (remains.is_retired()) return {};
  if (remains.is_in_use_by(machine.host_process())) {
    return fail(ErrorCode::Unsupported,
                fmt::format("process {} traces this guest already", remains.owner().pid));
  }
  const std::uint64_t before = remains.heartbeat(machine.memory());
  std::this_thread::sleep_for(kHeartbeats);
  if (remains.heartbeat(machine.memory()) == before) return {};
  return fail(
      ErrorCode::Unsupported,
      fmt::format("a ringside of another host or container traces this guest already; there "
                  "it is process {}",
                  remains.owner().pid));
}

/// The breakpoints and jumps that still stand, and what they replaced.
class LeftBreakpoints {
 public:
  LeftBreakpoints(vmm::Machine& machine, guest_linux::Kernel& kernel, const ShimRemains& remains)
      : machine_(machine),
        kernel_(kernel),
        remains_(remains),
        kprobes_(kernel.symbols(), kernel.types()),
        search_(search_of(machine, kernel)) {}

  /// Whether one stands where the kernel looks up how to mend a fault (site_examiner.h): it has to
  /// stay while somebody may be in a slot.
  bool searches_faults() const {
    const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
    const auto entries = remains_.entries(machine_.memory());
    return search_ && is_int3(reader, *search_) &&
           std::ranges::any_of(entries, [this](const ShimRemains::Entry& entry) {
             return entry.address == *search_ && entry.slot;
           });
  }

  enum class Which : std::uint8_t { All, AllButSearch };
  /// Restores them, in one pause, while the guest does not change its text, and gives the gate back
  /// when it was all; how many there were.
  Result<std::size_t> restore(Which which) {
    for (unsigned n = 0; n < kTextTries; ++n) {
      if (n > 0) {
        if (end_order() != EndOrder::None) {
          return fail(ErrorCode::Io,
                      "interrupted while the guest's kernel changes its own code: nothing was "
                      "restored");
        }
        std::this_thread::sleep_for(kTextWait);
      }
      auto paused = TRY(vmm::PausedMachine::pause(machine_));
      const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
      if (kprobes_.is_changing(reader)) continue;
      auto restored = restore_now(paused, reader, which);
      // NotFound: the guest's owner has let it run meanwhile.
      if (restored || restored.error().code != ErrorCode::NotFound) return restored;
    }
    return fail(ErrorCode::MachineGone,
                "the guest's kernel never stops changing its own code: nothing was restored");
  }

 private:
  static std::optional<GuestVirt> search_of(vmm::Machine& machine,
                                            const guest_linux::Kernel& kernel) {
    const vmm::PageTableReader reader(machine.memory(), kernel.table());
    const auto search = find_fault_search(reader, kernel);
    return search ? std::optional(*search) : std::nullopt;
  }

  struct Restored {
    GuestVirt at;
    std::vector<std::byte> bytes;
  };

  Result<std::size_t> restore_now(vmm::PausedMachine& paused, const GuestReader& reader,
                                  Which which) {
    const auto kprobes = TRY(kprobes_.read(reader));
    std::vector<Restored> restoring;
    std::size_t lost = 0;
    for (const ShimRemains::Entry& entry : remains_.entries(machine_.memory())) {
      if (which == Which::AllButSearch && entry.address == search_) continue;
      switch (look_at(reader, kprobes, entry)) {
        case What::Nothing: continue;
        case What::Covered: ++lost; continue;
        case What::Breakpoint:
        case What::Jump: break;
      }
      auto bytes = replaced(reader, entry);
      if (bytes.empty()) {
        ++lost;
      } else {
        restoring.push_back({entry.address, std::move(bytes)});
      }
    }
    TRY(remains_.silence(paused));
    std::vector<vmm::VirtualCodeWrite> writes;
    for (const Restored& one : restoring) append_code(writes, one.at, one.bytes);
    if (!writes.empty()) TRY(paused.write_code(kernel_.table(), writes));
    const vmm::PageTableReader fresh(machine_.memory(), kernel_.table());
    lost += static_cast<std::size_t>(std::ranges::count_if(
        restoring, [&](const Restored& one) { return !has_bytes(fresh, one.at, one.bytes); }));
    if (lost != 0) {
      return fail(ErrorCode::Invalid,
                  fmt::format("{} breakpoints of an earlier ringside cannot be taken out, since "
                              "the guest has changed its code there: its stub stays for them",
                              lost));
    }
    if (which == Which::All) TRY(remains_.give_gate_back(paused));
    return restoring.size();
  }

  static bool is_int3(const GuestReader& reader, GuestVirt at) {
    const auto byte = load<std::byte>(reader, at);
    return byte && *byte == arch::kBreakpoint;
  }

  /// The code at an entry's address. Covered: a kprobe of the guest's own stands over one of these,
  /// and has copied it.
  enum class What : std::uint8_t { Nothing, Breakpoint, Jump, Covered };
  What look_at(const GuestReader& reader, std::span<const guest_linux::Kprobe> kprobes,
               const ShimRemains::Entry& entry) const {
    vmm::JumpBytes now{};
    // The page after need not be there.
    if (read_available(reader, entry.address, now) < now.size()) now = {now[0]};
    const auto what = what_is(entry.address, now);
    const auto kprobe = std::ranges::find(kprobes, entry.address, &guest_linux::Kprobe::address);
    const bool our_int3 = what == What::Breakpoint && entry.slot;
    if (kprobe == kprobes.end()) return our_int3 || what == What::Jump ? what : What::Nothing;
    if (kprobe->opcode == arch::kBreakpoint && our_int3) return What::Covered;
    const auto below = what_is(entry.address, kprobe->original(now));
    return below == What::Jump ? What::Covered : What::Nothing;  // the guest's own
  }
  What what_is(GuestVirt at, const vmm::JumpBytes& bytes) const {
    if (bytes[0] == arch::kBreakpoint) return What::Breakpoint;
    const auto target = vmm::jump_target(at, bytes);
    return target && remains_.place().has_slot_at(*target) ? What::Jump : What::Nothing;
  }

  bool is_text(GuestVirt at) const {
    return std::ranges::any_of(kernel_.symbols().modules(),
                               [at](const auto& module) { return module.has_text_at(at); });
  }

  /// Nothing where it cannot be proven.
  std::vector<std::byte> replaced(const GuestReader& reader,
                                  const ShimRemains::Entry& entry) const {
    if (!is_text(entry.address)) return {};
    std::array<std::byte, SHIM_JUMP_BYTES + arch::kLongestInstruction> buffer{};
    const std::size_t size = read_available(reader, entry.address, buffer);
    if (size == 0) return {};
    const auto text = std::span<const std::byte>(buffer).first(size);
    if (text[0] != arch::kBreakpoint) return replaced_by_jump(text, entry.address);
    if (!entry.slot) return {};
    std::array<std::byte, 1 + kLongestSlot> held{};
    const GuestVirt from = entry.slot->wrapping_sub(1);
    const std::size_t length = remains_.read_slot(machine_.memory(), from, held);
    if (length < 1) return {};
    const auto code = std::span(held).first(length).subspan(1);
    const auto byte = find_replaced(text, entry.address, held[0], code, *entry.slot);
    return byte ? std::vector{*byte} : std::vector<std::byte>();
  }

  std::vector<std::byte> replaced_by_jump(std::span<const std::byte> text, GuestVirt at) const {
    vmm::JumpBytes jump{};
    if (text.size() < jump.size()) return {};
    std::copy_n(text.begin(), jump.size(), jump.begin());
    const auto target = vmm::jump_target(at, jump);
    if (!target) return {};
    const GuestVirt place = target->wrapping_add(-std::uint64_t{vmm::JumpRecord::kEntry});
    std::array<std::byte, kLongestRecord> held{};
    const auto record =
        std::span<const std::byte>(held).first(remains_.read_slot(machine_.memory(), place, held));
    const auto bytes = find_replaced_by_jump(text, at, record, place, remains_.jump_entry());
    return bytes ? std::vector(bytes->begin(), bytes->end()) : std::vector<std::byte>();
  }

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  const ShimRemains& remains_;
  const guest_linux::KprobeTable kprobes_;
  const std::optional<GuestVirt> search_;
};

/// Restores the guest's text, and its gate; how many breakpoints there were.
Result<std::size_t> restore(vmm::Machine& machine, guest_linux::Kernel& kernel,
                            const ShimRemains& remains,
                            Result<guest_linux::StackCheck>& stack_check) {
  using Which = LeftBreakpoints::Which;
  LeftBreakpoints breakpoints(machine, kernel, remains);
  if (!breakpoints.searches_faults()) return breakpoints.restore(Which::All);
  const std::size_t others = TRY(breakpoints.restore(Which::AllButSearch));
  const auto nobody = [](vmm::PausedMachine&) { return Result<void>(); };
  const auto left = stack_check ? remove_when_empty(machine, kernel, *stack_check, remains.place(),
                                                    kTriesToMend, nobody)
                                : tl::make_unexpected(stack_check.error());
  if (!left) {
    return fail(left.error().code,
                fmt::format("one breakpoint of an earlier ringside stays, with its stub, for a "
                            "fault that the guest's kernel still mends: {}; try again later",
                            left.error().message));
  }
  return others + TRY(breakpoints.restore(Which::All));
}

struct LeftInProcesses {
  std::size_t breakpoints = 0;
  std::vector<std::string> notes;  // what stays there
};

/// Restores the text of processes.
Result<LeftInProcesses> restore_processes(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                          const ShimRemains& remains) {
  UserPointTable table(machine, nullptr, kernel);
  const auto left = remains.user_points(machine.memory());
  if (left.empty()) return LeftInProcesses();
  table.take_over(left);
  const std::size_t armed = table.armed();
  const bool is_out = TRY(table.take_out(remains.place()));
  LeftInProcesses done{armed, table.take_notices()};
  if (!is_out) done.notes.emplace_back(UserPointTable::kStaysInside);
  return done;
}

/// For remains that nobody can be in.
Result<std::optional<std::string>> take_away(vmm::Machine& machine, const ShimRemains& remains) {
  auto paused = TRY(vmm::PausedMachine::pause(machine));
  TRY(remains.remove(paused));
  return fmt::format(
      "{} pages of an earlier ringside, to which nothing in the guest led, were "
      "taken out",
      remains.extent().size / arch::kPageSize);
}

/// A card's memory, which no kernel takes for its own. Memory that was set aside in a machine of
/// ours may have become another kernel's (kexec).
std::optional<vmm::GuestMemory::Extent> card_memory(const vmm::Machine& machine) {
  return machine.kind().starts_with("attached") ? machine.reserved_memory() : std::nullopt;
}

bool is_on_card(const vmm::Machine& machine, vmm::GuestMemory::Extent extent) {
  const auto place = card_memory(machine);
  return place && extent.base.is_in(place->base, place->size) &&
         extent.size <= place->size - extent.base.offset_from(place->base);
}

}  // namespace

Result<std::optional<std::string>> clean(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                         Occupied occupied) {
  const auto facts = guest_linux::find_shim_facts(machine, kernel);
  if (!facts) return std::nullopt;  // nothing of ours can be in such a guest
  const auto remains = TRY(ShimRemains::find(machine.memory(), *facts, card_memory(machine)));
  if (!remains) return std::nullopt;
  const auto kept = is_on_card(machine, remains->extent())
                        ? Result<void>()
                        : guest_linux::check_kept(machine.memory(), kernel, remains->extent());
  if (remains->is_out_of_reach() && !kept) return std::nullopt;  // it is the guest's own by now
  TRY(kept);
  TRY(check_dead(machine, *remains));
  if (remains->is_out_of_reach()) return take_away(machine, *remains);
  // Without it the text is restored all the same, and the stub stays.
  auto stack_check = guest_linux::StackCheck::prepare(kernel);
  const auto of_processes = TRY(restore_processes(machine, kernel, *remains));
  const std::size_t restored =
      of_processes.breakpoints + TRY(restore(machine, kernel, *remains, stack_check));
  const std::uint64_t pages = remains->extent().size / arch::kPageSize;
  const auto remove = [&remains](vmm::PausedMachine& paused) { return remains->remove(paused); };
  const auto removed = stack_check ? remove_when_empty(machine, kernel, *stack_check,
                                                       remains->place(), kTriesToLeave, remove)
                                   : tl::make_unexpected(stack_check.error());
  if (!removed) {
    std::string stays = fmt::format(
        "the stub of an earlier ringside stays in {} pages of the guest's memory, and does "
        "nothing: {}",
        pages, removed.error().message);
    if (occupied == Occupied::IsUsedAgain) return stays + "; it is used again";
    return fail(removed.error().code, stays + "; try again later");
  }
  if (remains->is_retired()) {
    return fmt::format(
        "the stub that an earlier ringside had to leave here was taken out: {} pages", pages);
  }
  return fmt::format(
      "process {} has traced this guest and did not end well: {} breakpoints and {} "
      "pages of it were taken out{}{}",
      remains->owner().pid, restored, pages, of_processes.notes.empty() ? "" : "; ",
      fmt::join(of_processes.notes, "; "));
}

}  // namespace ringside::providers
