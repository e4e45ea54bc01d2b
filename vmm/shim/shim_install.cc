// Putting the shim into a guest. In this file, top to bottom: checks of our own image, of the CPU
// and of the gate, filling the region, install(); one that is there already, take_over().
// Nothing in the guest changes before every check has passed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_image.h"
#include "vmm/shim/shim_mapping.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_remains.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kCr4Fred = std::uint64_t{1} << 32;
constexpr std::uint64_t kEferNoExecute = std::uint64_t{1} << 11;
using arch::GateDescriptor, arch::kBreakpointVector;

Result<void> check_cpu(const PausedMachine& machine, const Registers& registers) {
  if ((registers.cr4 & kCr4Fred) != 0) {
    return fail(ErrorCode::Unsupported,
                "the guest takes its events by FRED, which has no interrupt table to hook: "
                "start it with --append fred=off");
  }
  if (machine.vcpu_count() >= SHIM_MAILBOXES) {
    return fail(ErrorCode::Unsupported, fmt::format("{} vCPUs: at most {} can be traced",
                                                    machine.vcpu_count(), SHIM_MAILBOXES - 1));
  }
  return {};
}

/// The table that we write into must be the one that the processors look into.
Result<void> check_table_of_cpus(const GuestMemory& memory, const ShimKernelFacts& facts) {
  const PageTable& table = facts.kernel_table;
  if (lead_to_the_same(memory, table, facts.idt, table, facts.idt_of_cpus)) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("the guest's processors have their interrupt table at {:#x}, which is "
                          "not the kernel's at {:#x}: nothing was put into it; --core or why can "
                          "look at it",
                          facts.idt_of_cpus.raw(), facts.idt.raw()));
}

Result<SavedGate> read_gate(const GuestMemory& memory, const ShimKernelFacts& facts) {
  const auto at = translate(memory, facts.kernel_table,
                            facts.idt.wrapping_add(kBreakpointVector * sizeof(GateDescriptor)));
  SavedGate saved;
  if (!at || !memory.read(at->address, saved.bytes)) {
    return fail(ErrorCode::Invalid,
                fmt::format("the guest's interrupt table at {:#x} is not mapped", facts.idt.raw()));
  }
  saved.at = at->address;
  GateDescriptor gate;
  std::memcpy(&gate, saved.bytes.data(), sizeof gate);
  if (is_shim_at(memory, facts.kernel_table, gate.handler())) {
    return fail(ErrorCode::Unsupported,
                "the machine is being traced already, or was when its tracer died");
  }
  if (!gate.is_interrupt_gate() || gate.handler() != facts.int3_handler) {
    return fail(ErrorCode::Unsupported,
                fmt::format("breakpoints of the guest lead to {:#x} (attributes {:#x}), not to "
                            "the kernel's handler at {:#x}",
                            gate.handler().raw(), gate.attributes, facts.int3_handler.raw()));
  }
  if (gate.stack_table() != 0) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the guest takes breakpoints on a stack of their own (IST {}), which "
                            "a nested one would overwrite",
                            gate.stack_table()));
  }
  TRY(check_table_of_cpus(memory, facts));
  return saved;
}

/// The table and the data are empty. All else in the slots is written before anything leads there.
[[nodiscard]] bool clear_table_and_data(GuestMemory& memory, const ShimLayout& layout) {
  return clear_memory(memory, layout.place.wrapping_add(layout.slots), ShimSlots::kTableBytes) &&
         clear_memory(memory, layout.place.wrapping_add(layout.data), layout.bytes - layout.data);
}

/// Code and header in place.
Result<void> fill_region(GuestMemory& memory, const shim_header& header, const ShimLayout& layout) {
  const GuestPhys place = layout.place;
  const auto image = image_with(header);
  const bool filled = clear_memory(memory, place, layout.slots) &&
                      clear_table_and_data(memory, layout) &&
                      memory.write(place, std::as_bytes(std::span(shim_image, shim_image_size))) &&
                      memory.write(place, std::as_bytes(std::span(&header, 1)));
  if (filled) return {};
  return fail(ErrorCode::Io, "the memory set aside for the shim cannot be written");
}

/// Where in `place` the shim goes: RAM, all of it, that has never held one.
Result<ShimLayout> take_place(const GuestMemory& memory, GuestMemory::Extent place, RingWants rings,
                              std::uint32_t fewest_rings) {
  ShimLayout layout = TRY(layout_shim(place, rings));
  if (layout.ring_count == 0) {
    rings.count = std::min(rings.count, fewest_rings);
    layout = TRY(layout_shim(place, rings));
  }
  const bool in_the_way =
      layout.ring_count != 0 && !rings.is_must && !layout.holds(rings.trap_points);
  if (in_the_way) layout = TRY(layout_shim(place));
  const auto first = memory.load64(layout.place);
  if (!first || !memory.is_ram(layout.place, layout.taken())) {
    return fail(ErrorCode::Invalid,
                fmt::format("the memory set aside at {:#x} is not RAM", layout.place.raw()));
  }
  if (static_cast<std::uint32_t>(*first) == SHIM_MAGIC) {
    return fail(ErrorCode::Unsupported,
                "the machine was traced before, and its tasks may still run in the old shim");
  }
  return layout;
}

/// Makes `ours` the kernel's gate with another handler.
void point_at(SavedGate& gate, GuestVirt handler) {
  GateDescriptor ours;
  std::memcpy(&ours, gate.bytes.data(), sizeof ours);
  ours.set_handler(handler);
  std::memcpy(gate.ours.data(), &ours, sizeof ours);
}

void own(shim_header& header, const PausedMachine& machine) {
  const ProcessName owner = ProcessName::of_self();
  header.owner = owner.pid;
  header.owner_start = owner.start;
  header.machine = ProcessName::of(machine.host_process()).word();
}

/// Maps what was filled, and lets breakpoints lead there.
Result<void> open(GuestMemory& memory, const Registers& registers, ShimMapping& mapping,
                  const SavedGate& gate) {
  TRY(mapping.write(memory, (registers.efer & kEferNoExecute) != 0));
  if (memory.write(gate.at, gate.ours)) return {};
  return fail(ErrorCode::Io, "the guest's interrupt table cannot be written");
}

/// By KVM a process has a descriptor for each vCPU; one that may not be looked into does, too.
ShimPresence::GuestRuns how_it_runs(const PausedMachine& machine) {
  const std::string folder = fmt::format("/proc/{}/fd", machine.host_process());
  std::error_code error;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code gone;
    const auto to = std::filesystem::read_symlink(each->path(), gone).string();
    if (to.starts_with("anon_inode:kvm-vcpu")) return ShimPresence::GuestRuns::OnProcessor;
  }
  const bool is_known = !error && machine.host_process() != 0;
  return is_known ? ShimPresence::GuestRuns::Translated : ShimPresence::GuestRuns::OnProcessor;
}

/// A slot has less than so many bytes, before a place in it and behind one.
constexpr std::uint64_t kSlotReach = 64;

/// The slots around the places, by address; those that touch are one. Empty when a place is in no
/// slot.
std::optional<std::vector<OccupiedSlots>> slots_around(std::span<const GuestVirt> places,
                                                       const ShimPlace& shim) {
  std::vector<OccupiedSlots> parts;
  for (const GuestVirt place : places) {
    if (!shim.has_slot_at(place)) return std::nullopt;
    const std::uint64_t at = place.offset_from(shim.slots);
    parts.push_back({at - std::min(at, kSlotReach), std::min(at + kSlotReach, shim.slots_bytes)});
  }
  std::ranges::sort(parts, {}, &OccupiedSlots::begin);
  std::vector<OccupiedSlots> joined;
  for (const OccupiedSlots& part : parts) {
    if (!joined.empty() && part.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, part.end);
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

Result<void> clear_other_slots(PausedMachine& machine, const ShimLayout& layout,
                               std::span<const OccupiedSlots> occupied) {
  const GuestPhys slots = layout.place.wrapping_add(layout.slots);
  std::uint64_t from = 0;
  for (const OccupiedSlots& part : occupied) {
    TRY(machine.clear_code(slots.wrapping_add(from), part.begin - from));
    from = part.end;
  }
  return machine.clear_code(slots.wrapping_add(from), layout.slots_bytes - from);
}

}  // namespace

Result<std::unique_ptr<Shim>> Shim::install(PausedMachine& machine, GuestMemory::Extent place,
                                            const ShimKernelFacts& facts, RingWants rings) {
  GuestMemory& memory = machine.memory();
  shim_header header = TRY(read_image());
  const Registers registers = TRY(machine.registers(0));
  TRY(check_cpu(machine, registers));
  SavedGate saved = TRY(read_gate(memory, facts));
  const bool can_record = facts.cpu_number != 0 && facts.task;
  const ShimLayout layout =
      TRY(take_place(memory, place, can_record ? rings : RingWants(), machine.vcpu_count()));
  ShimMapping mapping = TRY(ShimMapping::find(memory, facts, layout));
  const GuestVirt home = mapping.home();

  point_at(saved, home.wrapping_add(header.entry));
  header = complete(header, facts, home, layout);
  own(header, machine);
  TRY(fill_region(memory, header, layout));
  TRY(open(memory, registers, mapping, saved));
  return std::make_unique<Shim>(memory, layout, home, machine.vcpu_count(), saved, mapping,
                                std::vector<OccupiedSlots>(), how_it_runs(machine));
}

/// The code in the region is ours to the byte, and tasks may return through the slots that stay, so
/// nothing of either is written anew. The header goes last: a tracer that is killed
/// here leaves what the next one finds.
Result<std::unique_ptr<Shim>> ShimRemains::take_over(PausedMachine& machine,
                                                     const ShimKernelFacts& facts,
                                                     std::span<const GuestVirt> places) const {
  GuestMemory& memory = machine.memory();
  shim_header header = TRY(read_image());
  const Registers registers = TRY(machine.registers(0));
  TRY(check_cpu(machine, registers));
  SavedGate saved = TRY(read_gate(memory, facts));
  if (!mapping_) return fail(ErrorCode::Invalid, "nothing leads to the old stub any more");
  auto occupied = slots_around(places, place());
  if (!occupied) return fail(ErrorCode::Invalid, "somebody is in the stub's own code");

  point_at(saved, home_.wrapping_add(header.entry));
  header = complete(header, facts, home_, layout_);
  own(header, machine);
  TRY(clear_other_slots(machine, layout_, *occupied));
  const bool filled = clear_table_and_data(memory, layout_) &&
                      memory.write(layout_.place, std::as_bytes(std::span(&header, 1)));
  if (!filled) return fail(ErrorCode::Io, "the old stub's memory cannot be written");
  ShimMapping mapping = *mapping_;
  TRY(open(memory, registers, mapping, saved));
  return std::make_unique<Shim>(memory, layout_, home_, machine.vcpu_count(), saved, mapping,
                                std::move(*occupied), how_it_runs(machine));
}

}  // namespace ringside::vmm
