// Putting the shim into a guest. In this file, top to bottom: checks of our own image, of the CPU
// and of the gate, filling the region, install().
// Nothing in the guest changes before every check has passed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/align.h"
#include "vmm/shim/installed_shim.h"
#include "vmm/shim/shim_image.h"
#include "vmm/shim/shim_mapping.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kLargePage = kShimLargePage;

constexpr std::uint64_t kCr4Fred = std::uint64_t{1} << 32;
constexpr std::uint64_t kEferNoExecute = std::uint64_t{1} << 11;
using arch::Gate, arch::kBreakpointVector;

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

Result<SavedGate> read_gate(const GuestMemory& memory, const ShimKernelFacts& facts) {
  const auto at = translate(memory, facts.kernel_table,
                            facts.idt.wrapping_add(kBreakpointVector * sizeof(Gate)));
  SavedGate saved;
  if (!at || !memory.read(at->address, saved.bytes)) {
    return fail(ErrorCode::Invalid,
                fmt::format("the guest's interrupt table at {:#x} is not mapped", facts.idt.raw()));
  }
  saved.at = at->address;
  Gate gate;
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
  return saved;
}

/// Code and header in place, table and data empty. Slots are written before they are reachable.
Result<void> fill_region(GuestMemory& memory, const shim_header& header, const ShimLayout& layout) {
  const GuestPhys place = layout.place;
  const auto image = image_with(header);
  const bool filled =
      clear_memory(memory, place, layout.slots) &&
      clear_memory(memory, place.wrapping_add(layout.data), layout.bytes - layout.data) &&
      memory.write(place, std::as_bytes(std::span(shim_image, shim_image_size))) &&
      memory.write(place, std::as_bytes(std::span(&header, 1)));
  if (filled) return {};
  return fail(ErrorCode::Io, "the memory set aside for the shim cannot be written");
}

/// Where in `place` the shim goes: RAM, all of it, that has never held one.
Result<ShimLayout> take_place(const GuestMemory& memory, GuestMemory::Extent place) {
  const ShimLayout layout = TRY(layout_shim(place));
  std::uint64_t first = 0;
  if (!memory.is_ram(layout.place, layout.taken()) ||
      !memory.read(layout.place, std::as_writable_bytes(std::span(&first, 1)))) {
    return fail(ErrorCode::Invalid,
                fmt::format("the memory set aside at {:#x} is not RAM", layout.place.raw()));
  }
  if (static_cast<std::uint32_t>(first) == SHIM_MAGIC) {
    return fail(ErrorCode::Unsupported,
                "the machine was traced before, and its tasks may still run in the old shim");
  }
  return layout;
}

}  // namespace

Result<std::unique_ptr<Shim>> Shim::install(PausedMachine& machine, GuestMemory::Extent place,
                                            const ShimKernelFacts& facts) {
  GuestMemory& memory = machine.memory();
  shim_header header = TRY(read_image());
  const Registers registers = TRY(machine.registers(0));
  TRY(check_cpu(machine, registers));
  SavedGate saved = TRY(read_gate(memory, facts));
  const ShimLayout layout = TRY(take_place(memory, place));
  ShimMapping mapping = TRY(ShimMapping::find(memory, facts, layout));
  const GuestVirt home = mapping.home();

  Gate gate;
  std::memcpy(&gate, saved.bytes.data(), sizeof gate);
  gate.set_handler(home.wrapping_add(header.entry));
  std::memcpy(saved.ours.data(), &gate, sizeof gate);

  const ProcessName owner = ProcessName::of_self();
  header = complete(header, facts, home, layout);
  header.owner = owner.pid;
  header.owner_start = owner.start;
  TRY(fill_region(memory, header, layout));
  TRY(mapping.write(memory, (registers.efer & kEferNoExecute) != 0));
  if (!memory.write(saved.at, saved.ours)) {
    return fail(ErrorCode::Io, "the guest's interrupt table cannot be written");
  }
  return std::make_unique<InstalledShim>(memory, layout, home, machine.vcpu_count(), saved,
                                         mapping);
}

}  // namespace ringside::vmm
