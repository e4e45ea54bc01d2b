// In this file, top to bottom: who left it, its breakpoints, all of it.
#include "providers/clean.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "disasm/decoder.h"
#include "providers/deferred_shim.h"
#include "providers/leave.h"
#include "providers/tracepoint/replaced_byte.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/low_memory.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/page_walk.h"
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
constexpr std::size_t kLongestSlot = disasm::kMaxSlotBytes + 22;  // with a farewell before it

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

/// The breakpoints that still stand, and what they replaced.
class Breakpoints {
 public:
  Breakpoints(vmm::Machine& machine, guest_linux::Kernel& kernel, const ShimRemains& remains)
      : machine_(machine),
        kernel_(kernel),
        remains_(remains),
        kprobes_(kernel.symbols(), kernel.types()) {}

  /// Restores them and gives the gate back, in one pause, while the guest does not change its text;
  /// how many there were.
  Result<std::size_t> restore() {
    for (unsigned n = 0; n < kTextTries; ++n) {
      if (n > 0) std::this_thread::sleep_for(kTextWait);
      auto paused = TRY(vmm::PausedMachine::pause(machine_));
      const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
      if (!kprobes_.is_changing(reader)) return restore_now(paused, reader);
    }
    return fail(ErrorCode::MachineGone,
                "the guest's kernel never stops changing its own code: nothing was restored");
  }

 private:
  Result<std::size_t> restore_now(vmm::PausedMachine& paused, const GuestReader& reader) {
    const auto kprobes = TRY(kprobes_.read(reader));
    std::vector<vmm::VirtualCodeWrite> writes;
    std::size_t lost = 0;
    for (const ShimRemains::Entry& entry : remains_.entries(machine_.memory())) {
      if (!is_int3(reader, entry.address)) continue;
      const auto kprobe = std::ranges::find(kprobes, entry.address, &guest_linux::Kprobe::address);
      const bool over_ours = kprobe != kprobes.end() && kprobe->opcode == arch::kBreakpoint;
      if (kprobe != kprobes.end() && !over_ours) continue;  // the guest's own, on a restored place
      const auto byte = over_ours ? std::nullopt : replaced(reader, entry);
      if (byte) {
        writes.push_back({entry.address, std::to_integer<std::uint8_t>(*byte)});
      } else {
        ++lost;
      }
    }
    TRY(remains_.silence(paused));
    if (!writes.empty()) TRY(paused.write_code(kernel_.table(), writes));
    const vmm::PageTableReader fresh(machine_.memory(), kernel_.table());
    lost += static_cast<std::size_t>(std::ranges::count_if(
        writes, [&](const vmm::VirtualCodeWrite& write) { return is_int3(fresh, write.at); }));
    if (lost != 0) {
      return fail(ErrorCode::Invalid,
                  fmt::format("{} breakpoints of an earlier ringside cannot be taken out, since "
                              "the guest has changed its code there: its stub stays for them",
                              lost));
    }
    TRY(remains_.give_gate_back(paused));
    return writes.size();
  }

  static bool is_int3(const GuestReader& reader, GuestVirt at) {
    const auto byte = load<std::byte>(reader, at);
    return byte && *byte == arch::kBreakpoint;
  }

  bool is_text(GuestVirt at) const {
    return std::ranges::any_of(kernel_.symbols().modules(),
                               [at](const auto& module) { return module.has_text_at(at); });
  }

  std::optional<std::byte> replaced(const GuestReader& reader,
                                    const ShimRemains::Entry& entry) const {
    if (!is_text(entry.address)) return std::nullopt;
    std::array<std::byte, arch::kLongestInstruction> text{};
    std::size_t size = text.size();
    // The page after it need not be there.
    if (!reader.read(entry.address, text)) {
      size = std::min(size, std::size_t{arch::left_in_page(entry.address.raw())});
      if (!reader.read(entry.address, std::span(text).first(size))) return std::nullopt;
    }
    std::array<std::byte, 1 + kLongestSlot> held{};
    const GuestVirt from(entry.slot.raw() - 1);
    const std::size_t length = remains_.read_slot(machine_.memory(), from, held);
    if (length < 1) return std::nullopt;
    const auto code = std::span(held).first(length).subspan(1);
    return find_replaced(std::span(text).first(size), entry.address, held[0], code, entry.slot);
  }

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  const ShimRemains& remains_;
  const guest_linux::KprobeTable kprobes_;
};

/// What nobody can be in.
Result<std::optional<std::string>> take_away(vmm::Machine& machine, const ShimRemains& remains) {
  auto paused = TRY(vmm::PausedMachine::pause(machine));
  TRY(remains.remove(paused));
  return fmt::format(
      "{} pages of an earlier ringside, to which nothing in the guest led, were "
      "taken out",
      remains.extent().size / arch::kPageSize);
}

/// A card's memory, which no kernel takes for its own. What was set aside in a machine of ours may
/// have become another kernel's (kexec).
std::optional<vmm::GuestMemory::Extent> card_memory(const vmm::Machine& machine) {
  return machine.kind().starts_with("attached") ? machine.reserved_memory() : std::nullopt;
}

bool is_on_card(const vmm::Machine& machine, vmm::GuestMemory::Extent extent) {
  const auto place = card_memory(machine);
  return place && extent.base.is_in(place->base, place->size) &&
         extent.size <= place->size - (extent.base.raw() - place->base.raw());
}

}  // namespace

Result<std::optional<std::string>> clean(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                         Occupied occupied) {
  const auto facts = find_shim_facts(machine, kernel);
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
  auto occupants = TRY(guest_linux::Occupants::prepare(kernel));
  const std::size_t restored = TRY(Breakpoints(machine, kernel, *remains).restore());
  const std::uint64_t pages = remains->extent().size / arch::kPageSize;
  auto removed =
      remove_when_empty(machine, kernel, occupants, remains->place(), kTriesToLeave,
                        [&remains](vmm::PausedMachine& paused) { return remains->remove(paused); });
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
      "pages of it were taken out",
      remains->owner().pid, restored, pages);
}

}  // namespace ringside::providers
