// In this file, top to bottom: who is inside, taking it out, using it again.
#include "providers/cleanup/leave.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/linux/low_memory.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim_remains.h"

namespace ringside::providers {
namespace {

constexpr auto kLeaveWait = std::chrono::milliseconds(10);
constexpr unsigned kTakeOverTries = 100;

using guest_linux::CodeUser;

std::string interrupted_while(const Result<void>& why) {
  return "interrupted while " + why.error().message;
}

bool all_in_slots(const std::vector<CodeUser>& inside, const vmm::ShimPlace& place) {
  return std::ranges::all_of(inside, [&place](const CodeUser& user) {
    return std::ranges::all_of(user.places,
                               [&place](GuestVirt at) { return place.has_slot_at(at); });
  });
}

Result<std::vector<CodeUser>> find_inside(vmm::PausedMachine& paused, guest_linux::Kernel& kernel,
                                          guest_linux::StackCheck& stack_check,
                                          const vmm::ShimPlace& place) {
  const vmm::PageTableReader reader(paused.memory(), kernel.table());
  const auto code = guest_linux::Kernel::AddressRange::of(place.base, place.bytes);
  return stack_check.find(paused, reader, kernel, code);
}

/// Whether it is certain that this vCPU is not in the middle of a stub's own code, which runs with
/// interrupts off; so does all that can interrupt it (NMIs, machine checks).
bool is_outside_of_stub(const Registers& registers) {
  return registers.in_user_mode() || (registers.rflags & arch::kInterruptFlag) != 0;
}

/// Whose tasks cannot be looked at: none can sleep in the stub's own code, only in slots, which all
/// stay as they are. Nothing leads there any more, so that each vCPU was outside once is enough.
Result<std::unique_ptr<vmm::Shim>> take_over_beside_slots(vmm::Machine& machine,
                                                          const vmm::ShimRemains& kept,
                                                          const vmm::ShimKernelFacts& facts,
                                                          const Error& why) {
  std::set<unsigned> outside;
  for (unsigned n = 0; n < kTakeOverTries; ++n) {
    if (n > 0) {
      if (end_order() != EndOrder::None) return fail(ErrorCode::Io, "interrupted");
      std::this_thread::sleep_for(kLeaveWait);
    }
    auto paused = TRY(vmm::PausedMachine::pause(machine));
    const unsigned vcpus = machine.vcpu_count();
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
      const auto registers = paused.registers(vcpu);
      if (registers && is_outside_of_stub(*registers)) outside.insert(vcpu);
    }
    if (outside.size() < vcpus) continue;
    return kept.take_over(paused, facts, kept.used_slots(machine.memory()));
  }
  return fail(why.code,
              fmt::format("the stub of an earlier ringside cannot be used again: a vCPU has its "
                          "interrupts off all the time, and {}; try again later",
                          why.message));
}

}  // namespace

Result<void> remove_when_empty(vmm::Machine& machine, guest_linux::Kernel& kernel,
                               guest_linux::StackCheck& stack_check, vmm::ShimPlace place,
                               LeaveTries tries,
                               const std::function<Result<void>(vmm::PausedMachine&)>& remove) {
  Result<void> stays;
  unsigned in_slots = 0;
  for (unsigned n = 0; n < tries.anywhere && in_slots < tries.in_slots; ++n) {
    if (n > 0) {
      if (end_order() >= tries.up_to) return fail(ErrorCode::Io, interrupted_while(stays));
      std::this_thread::sleep_for(kLeaveWait);
    }
    auto paused = vmm::PausedMachine::pause(machine);
    if (!paused) {
      const bool ended = paused.error().code == ErrorCode::MachineGone;
      return ended ? Result<void>() : tl::make_unexpected(paused.error());
    }
    const auto inside = find_inside(*paused, kernel, stack_check, place);
    if (inside && inside->empty()) return remove(*paused);
    in_slots = inside && all_in_slots(*inside, place) ? in_slots + 1 : 0;
    stays = inside ? fail(ErrorCode::Invalid, inside->front().name + " is inside")
                   : tl::make_unexpected(inside.error());
  }
  return stays;
}

Result<std::unique_ptr<vmm::Shim>> take_over_kept(vmm::Machine& machine,
                                                  guest_linux::Kernel& kernel,
                                                  const vmm::ShimKernelFacts& facts) {
  const auto kept = TRY(vmm::ShimRemains::find(machine.memory(), facts));
  if (!kept || !kept->is_retired()) return nullptr;  // installing says what is in the way
  TRY(guest_linux::check_kept(machine.memory(), kernel, kept->extent()));
  auto prepared = guest_linux::StackCheck::prepare(kernel);
  if (!prepared) return take_over_beside_slots(machine, *kept, facts, prepared.error());
  guest_linux::StackCheck& stack_check = *prepared;
  Result<void> unclear;
  for (unsigned n = 0; n < kTakeOverTries; ++n) {
    if (n > 0) {
      if (end_order() != EndOrder::None) return fail(ErrorCode::Io, interrupted_while(unclear));
      std::this_thread::sleep_for(kLeaveWait);
    }
    auto paused = TRY(vmm::PausedMachine::pause(machine));
    const auto inside = find_inside(paused, kernel, stack_check, kept->place());
    if (inside && all_in_slots(*inside, kept->place())) {
      std::vector<GuestVirt> places;
      for (const CodeUser& user : *inside) {
        places.insert(places.end(), user.places.begin(), user.places.end());
      }
      return kept->take_over(paused, facts, places);
    }
    unclear = inside ? fail(ErrorCode::Invalid, inside->front().name + " is inside")
                     : tl::make_unexpected(inside.error());
  }
  return fail(unclear.error().code,
              fmt::format("the stub of an earlier ringside cannot be used again: {}; try again "
                          "later",
                          unclear.error().message));
}

}  // namespace ringside::providers
