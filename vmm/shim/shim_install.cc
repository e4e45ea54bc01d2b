// Putting the shim into a guest. In this file, top to bottom: checks of our own image, of the CPU
// and of the gate, the search for free page-table entries, filling the region, install().
// Nothing in the guest changes before every check has passed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "vmm/shim/shim_channel.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kLargePage = 2 << 20;
constexpr unsigned kPages = SHIM_REGION_SIZE / kLargePage;

// Page-table entries, Intel SDM volume 3A, 4.5.
constexpr std::uint64_t kPresent = 1, kWritable = 2, kAccessed = 0x20, kDirty = 0x40, kLarge = 0x80,
                        kGlobal = 0x100, kNoExecute = std::uint64_t{1} << 63;

constexpr std::uint64_t kCr4Fred = std::uint64_t{1} << 32;
constexpr std::uint64_t kEferNoExecute = std::uint64_t{1} << 11;
constexpr unsigned kBreakpointVector = 3;

/// A 64-bit gate, Intel SDM volume 3A, figure 6-8.
struct Gate {
  std::uint16_t offset_low, selector, attributes, offset_middle;
  std::uint32_t offset_high, reserved;

  GuestVirt handler() const {
    return GuestVirt(offset_low | std::uint64_t{offset_middle} << 16 |
                     std::uint64_t{offset_high} << 32);
  }
  void set_handler(GuestVirt to) {
    offset_low = static_cast<std::uint16_t>(to.raw());
    offset_middle = static_cast<std::uint16_t>(to.raw() >> 16);
    offset_high = static_cast<std::uint32_t>(to.raw() >> 32);
  }
  unsigned stack_table() const { return attributes & 7; }
  bool is_interrupt_gate() const { return (attributes >> 8 & 0x9f) == 0x8e; }  // present, type 14
};
static_assert(sizeof(Gate) == 16);

Result<shim_header> check_image() {
  shim_header header{};
  if (shim_image_size < sizeof header || shim_image_size > SHIM_CODE_SIZE) {
    return fail(ErrorCode::Invalid, "the embedded shim has an impossible size: build again");
  }
  std::memcpy(&header, shim_image, sizeof header);
  if (header.magic != SHIM_MAGIC || header.version != SHIM_VERSION ||
      header.image_bytes != shim_image_size || header.entry >= shim_image_size) {
    return fail(ErrorCode::Invalid,
                fmt::format("the embedded shim is version {}, this program speaks version {}: "
                            "build both together",
                            header.version, SHIM_VERSION));
  }
  return header;
}

Result<void> check_cpu(const PausedMachine& machine, const Registers& registers,
                       const ShimKernelFacts& facts) {
  if ((registers.cr4 & kCr4Fred) != 0) {
    return fail(ErrorCode::Unsupported,
                "the guest takes its events by FRED, which has no interrupt table to hook: "
                "start it with --append fred=off");
  }
  if (facts.page_table_isolation) {
    return fail(ErrorCode::Unsupported,
                "the guest isolates its page tables (PTI), which hides the shim from user "
                "mode's traps: start it with --append pti=off");
  }
  if (machine.vcpu_count() >= SHIM_MAILBOXES) {
    return fail(ErrorCode::Unsupported, fmt::format("{} vCPUs: at most {} can be traced",
                                                    machine.vcpu_count(), SHIM_MAILBOXES - 1));
  }
  return {};
}

/// True when the handler lies in a region that carries the shim's magic.
bool leads_to_a_shim(const GuestMemory& memory, const PageTable& table, GuestVirt handler) {
  const auto start = translate(memory, table, GuestVirt(handler.raw() & ~(kLargePage - 1)));
  const auto magic = start ? memory.load64(start->address) : std::nullopt;
  return magic && static_cast<std::uint32_t>(*magic) == SHIM_MAGIC;
}

Result<SavedGate> read_gate(const GuestMemory& memory, const ShimKernelFacts& facts) {
  const auto at = translate(memory, facts.kernel_table,
                            GuestVirt(facts.idt.raw() + kBreakpointVector * sizeof(Gate)));
  SavedGate saved;
  if (!at || !memory.read(at->address, saved.bytes)) {
    return fail(ErrorCode::Invalid,
                fmt::format("the guest's interrupt table at {:#x} is not mapped", facts.idt.raw()));
  }
  saved.at = at->address;
  Gate gate;
  std::memcpy(&gate, saved.bytes.data(), sizeof gate);
  if (leads_to_a_shim(memory, facts.kernel_table, gate.handler())) {
    return fail(ErrorCode::Unsupported,
                "the machine is being traced already, or was when its tracer died: boot it anew");
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

/// A run of not-present PMD entries in [from, to). Empty when there is none.
std::optional<GuestVirt> find_free_run(const GuestMemory& memory, const PageTable& table,
                                       std::uint64_t from, std::uint64_t to) {
  unsigned run = 0;
  for (std::uint64_t at = from; at < to && at >= from; at += kLargePage) {
    const auto entry = entry_address(memory, table, GuestVirt(at), 2);
    const auto value = entry ? memory.load64(*entry) : std::nullopt;
    run = value && (*value & kPresent) == 0 ? run + 1 : 0;
    if (run == kPages) return GuestVirt(at - (kPages - 1) * kLargePage);
  }
  return std::nullopt;
}

Result<GuestVirt> find_virtual_home(const GuestMemory& memory, const ShimKernelFacts& facts) {
  const std::uint64_t start = facts.image_region_start.raw(), end = facts.image_region_end.raw();
  const std::uint64_t after_image = (facts.image_end.raw() + kLargePage - 1) & ~(kLargePage - 1);
  if (start % kLargePage != 0 || end <= start || after_image < start ||
      end - start > std::uint64_t{4} << 30) {
    return fail(ErrorCode::Invalid,
                fmt::format("the kernel image's region {:#x}..{:#x} makes no sense", start, end));
  }
  const auto above = find_free_run(memory, facts.kernel_table, after_image, end);
  const auto home =
      above ? above : find_free_run(memory, facts.kernel_table, start, std::min(after_image, end));
  if (!home) {
    return fail(
        ErrorCode::Unsupported,
        fmt::format("no {} MiB of free addresses beside the kernel image", SHIM_REGION_SIZE >> 20));
  }
  return *home;
}

Result<void> map_region(GuestMemory& memory, const ShimKernelFacts& facts, GuestVirt home,
                        GuestPhys place, bool no_execute) {
  for (unsigned page = 0; page < kPages; ++page) {
    const std::uint64_t offset = page * kLargePage;
    std::uint64_t value = (place.raw() + offset) | kPresent | kAccessed | kDirty | kLarge | kGlobal;
    if (offset + kLargePage > SHIM_DATA_OFFSET) {
      value |= kWritable | (no_execute ? kNoExecute : 0);
    }
    const auto entry = entry_address(memory, facts.kernel_table, GuestVirt(home.raw() + offset), 2);
    if (!entry || !memory.store64(*entry, value)) {
      return fail(ErrorCode::Io, "the guest's page table changed under the installer");
    }
  }
  return {};
}

/// Code and header in place, table and data empty. Slots are written before they are reachable.
void fill_region(std::span<std::byte> region, shim_header header, const ShimKernelFacts& facts) {
  const auto clear = [region](std::size_t from, std::size_t to) {
    std::fill(region.begin() + static_cast<std::ptrdiff_t>(from),
              region.begin() + static_cast<std::ptrdiff_t>(to), std::byte{0});
  };
  clear(0, SHIM_SLOTS_OFFSET);
  clear(SHIM_DATA_OFFSET, SHIM_MAILBOX_OFFSET + SHIM_MAILBOXES * SHIM_MAILBOX_SIZE);
  std::memcpy(region.data(), shim_image, shim_image_size);
  header.original = facts.int3_handler.raw();
  header.this_cpu_off = facts.this_cpu_off;
  std::memcpy(region.data(), &header, sizeof header);
}

/// The part of `place` that large pages can map, as shared memory.
Result<std::span<std::byte>> take_window(GuestMemory& memory, GuestMemory::Extent place,
                                         GuestPhys& base) {
  const std::uint64_t start = place.base.raw();
  const std::uint64_t aligned = (start + kLargePage - 1) & ~(kLargePage - 1);
  if (aligned < start || place.size < aligned - start ||
      place.size - (aligned - start) < SHIM_REGION_SIZE) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the {} KiB of memory set aside at {:#x} do not hold the shim's {} MiB",
                            place.size >> 10, start, SHIM_REGION_SIZE >> 20));
  }
  base = GuestPhys(aligned);
  const auto window = memory.shared_window(base, SHIM_REGION_SIZE);
  if (window.size() < SHIM_REGION_SIZE) {
    return fail(ErrorCode::Invalid,
                fmt::format("the memory set aside at {:#x} is not RAM", aligned));
  }
  std::uint32_t magic;
  std::memcpy(&magic, window.data(), sizeof magic);
  if (magic == SHIM_MAGIC) {
    return fail(ErrorCode::Unsupported,
                "the machine was traced before, and its tasks may still run in the old shim: "
                "boot it anew");
  }
  return window;
}

}  // namespace

Result<std::unique_ptr<Shim>> Shim::install(PausedMachine& machine, GuestMemory::Extent place,
                                            const ShimKernelFacts& facts) {
  GuestMemory& memory = machine.memory();
  const shim_header header = TRY(check_image());
  const Registers registers = TRY(machine.registers(0));
  TRY(check_cpu(machine, registers, facts));
  SavedGate saved = TRY(read_gate(memory, facts));
  GuestPhys base;
  const std::span<std::byte> window = TRY(take_window(memory, place, base));
  const GuestVirt home = TRY(find_virtual_home(memory, facts));

  Gate gate;
  std::memcpy(&gate, saved.bytes.data(), sizeof gate);
  gate.set_handler(GuestVirt(home.raw() + header.entry));
  std::memcpy(saved.ours.data(), &gate, sizeof gate);

  fill_region(window, header, facts);
  TRY(map_region(memory, facts, home, base, (registers.efer & kEferNoExecute) != 0));
  if (!memory.write(saved.at, saved.ours)) {
    return fail(ErrorCode::Io, "the guest's interrupt table cannot be written");
  }
  saved.now = memory.shared_window(saved.at, saved.ours.size());
  return std::make_unique<SpinShim>(window, base, home, machine.vcpu_count(), saved);
}

}  // namespace ringside::vmm
