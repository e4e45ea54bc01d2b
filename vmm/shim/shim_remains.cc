// In this file, top to bottom: finding a header, checking it, what it says, taking it out.
#include "vmm/shim/shim_remains.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_table.h"

namespace ringside::vmm {
namespace {

constexpr GuestPhys kLowEnd{0xa'0000};  // of RAM in the first megabyte

tl::unexpected<Error> not_whole(std::string_view what) {
  return fail(ErrorCode::Unsupported,
              fmt::format("an earlier ringside has left its stub in the guest, and it cannot be "
                          "taken out: {}; boot the guest anew",
                          what));
}

template <class T>
std::optional<T> read_as(const GuestMemory& memory, GuestPhys at) {
  T value{};
  if (!memory.read(at, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
  return value;
}

bool has_magic(const GuestMemory& memory, GuestPhys at) {
  const auto word = memory.load64(at);
  return word && static_cast<std::uint32_t>(*word) == SHIM_MAGIC;
}

/// A region that the page tables of the image's region lead to.
std::optional<GuestPhys> find_mapped(const GuestMemory& memory, const ShimKernelFacts& facts) {
  const std::uint64_t start = round_up(facts.image_end.raw(), kShimLargePage);
  TableCopies tables(memory);
  const auto search = [&](std::uint64_t from, std::uint64_t to) -> std::optional<GuestPhys> {
    for (std::uint64_t at = from; at < to && at >= from; at += kShimLargePage) {
      const auto found = tables.translate(facts.kernel_table, GuestVirt(at));
      if (found && has_magic(memory, found->address)) return found->address;
    }
    return std::nullopt;
  };
  const auto above = search(start, facts.image_region_end.raw());
  return above ? above : search(facts.image_region_start.raw(), start);
}

/// One that nothing leads to (yet, or any more).
std::optional<GuestPhys> find_in_first_megabyte(const GuestMemory& memory) {
  for (GuestPhys at(arch::kPageSize); at < kLowEnd; at = at.wrapping_add(arch::kPageSize)) {
    if (has_magic(memory, at)) return at;
  }
  return std::nullopt;
}

struct Proven {
  ShimLayout layout;
  shim_header header;
};

/// Whether there are none, or their lists lie in its slots.
bool may_be_user_points(const shim_header& header) {
  constexpr std::uint64_t kBytes = SHIM_USER_LISTS * sizeof(std::uint32_t);
  const std::uint64_t at = header.user_points - header.slots;
  const bool is_in_slots = header.slots_bytes >= kBytes && at <= header.slots_bytes - kBytes;
  return header.user_points == 0 || (is_in_slots && header.user_points % 8 == 0);
}

/// Of one at `place` whose header says what ours would say with these facts, and whose code is
/// ours.
Result<Proven> prove(const GuestMemory& memory, const ShimKernelFacts& facts, GuestPhys place) {
  const shim_header built = TRY(read_image());
  const auto header = read_as<shim_header>(memory, place);
  if (!header || header->version != SHIM_VERSION) {
    return not_whole(fmt::format("it is of another version ({}, and this is {})",
                                 header ? header->version : 0, SHIM_VERSION));
  }
  const GuestVirt home(header->base);
  const bool in_region = home >= facts.image_region_start && home < facts.image_region_end &&
                         header->base % kShimLargePage == 0 &&
                         header->region_bytes <= kLargeShimBytes &&
                         header->region_bytes % arch::kPageSize == 0;
  if (!in_region) return not_whole("its header is damaged");
  const std::uint64_t tables = round_up(header->region_bytes, kShimLargePage) / kShimLargePage + 1;
  const bool large = header->page_bytes == kShimLargePage;
  const auto layout =
      layout_shim({place, header->region_bytes + (large ? 0 : tables * arch::kPageSize)},
                  {std::min(header->rings, SHIM_MAILBOXES), header->trap_points});
  if (!layout || layout->place != place) return not_whole("its header is damaged");
  std::vector<std::byte> image(shim_image_size);
  const bool is_there = memory.is_ram(place, layout->taken()) && memory.read(place, image);
  // The tracer that left it may have had no types of the kernel's.
  ShimKernelFacts without_types = facts;
  without_types.task.reset();
  without_types.cpu_number = 0;
  for (const ShimKernelFacts& known : {facts, without_types}) {
    shim_header expected = complete(built, known, home, *layout);
    expected.owner = header->owner;
    expected.owner_start = header->owner_start;
    expected.machine = header->machine;
    if (may_be_user_points(*header)) expected.user_points = header->user_points;
    if (is_there && image == image_with(expected)) return Proven{*layout, *header};
  }
  return not_whole("its code or its header is damaged");
}

/// The same in memory that was set aside.
std::optional<GuestPhys> find_at(const GuestMemory& memory, GuestMemory::Extent set_aside) {
  const auto layout = layout_shim(set_aside);
  if (!layout || !has_magic(memory, layout->place)) return std::nullopt;
  return layout->place;
}

}  // namespace

Result<std::optional<ShimRemains>> ShimRemains::find(const GuestMemory& memory,
                                                     const ShimKernelFacts& facts,
                                                     std::optional<GuestMemory::Extent> set_aside) {
  const auto at =
      translate(memory, facts.kernel_table,
                facts.idt.wrapping_add(arch::kBreakpointVector * sizeof(arch::GateDescriptor)));
  const auto now = at ? read_as<arch::GateDescriptor>(memory, at->address) : std::nullopt;
  if (!now) return fail(ErrorCode::Invalid, "the guest's interrupt table cannot be read");
  std::optional<Gate> gate;
  std::optional<GuestPhys> place;
  if (is_shim_at(memory, facts.kernel_table, now->handler())) {
    const GuestVirt base(round_down(now->handler().raw(), kShimLargePage));
    place = translate(memory, facts.kernel_table, base)->address;
    arch::GateDescriptor kernels = *now;
    kernels.set_handler(facts.int3_handler);
    if (!kernels.is_interrupt_gate() || kernels.stack_table() != 0) {
      return not_whole("the interrupt table is not as it left it");
    }
    gate.emplace(Gate{.at = at->address});
    std::memcpy(gate->kernels.data(), &kernels, sizeof kernels);
  } else {
    place = find_mapped(memory, facts);
  }
  if (!place) return find_out_of_reach(memory, facts, set_aside);
  return TRY(check(memory, facts, *place, gate));
}

/// Remains that are not whole do no harm, and are nobody's business.
std::optional<ShimRemains> ShimRemains::find_out_of_reach(
    const GuestMemory& memory, const ShimKernelFacts& facts,
    std::optional<GuestMemory::Extent> set_aside) {
  auto place = find_in_first_megabyte(memory);
  if (!place && set_aside) place = find_at(memory, *set_aside);
  const auto header = place ? read_as<shim_header>(memory, *place) : std::nullopt;
  if (!header) return std::nullopt;
  ShimKernelFacts then = facts;  // another kernel's may have been others
  then.int3_handler = GuestVirt(header->original);
  then.this_cpu_off = header->this_cpu_off;
  then.task =
      ShimTaskFacts{header->current, header->comm, header->pid, header->tgid, header->start_time};
  then.cpu_number = header->cpu_number;
  const auto proven = prove(memory, then, *place);
  if (!proven) return std::nullopt;
  const GuestVirt home(proven->header.base);
  const auto mapping = ShimMapping::find_written(memory, facts, proven->layout, home);
  ShimRemains found(proven->layout, home, mapping ? std::optional(*mapping) : std::nullopt,
                    std::nullopt, proven->header);
  found.out_of_reach_ = true;
  return found;
}

Result<ShimRemains> ShimRemains::check(const GuestMemory& memory, const ShimKernelFacts& facts,
                                       GuestPhys place, std::optional<Gate> gate) {
  const Proven proven = TRY(prove(memory, facts, place));
  const GuestVirt home(proven.header.base);
  auto mapping = ShimMapping::find_written(memory, facts, proven.layout, home);
  if (!mapping) return not_whole(mapping.error().message);
  return ShimRemains(proven.layout, home, *mapping, gate, proven.header);
}

bool ShimRemains::is_in_use_by(pid_t process) const {
  const std::uint64_t machine = ProcessName::of(process).word();
  return owner_.is_alive() && (machine_ == 0 || machine == 0 || machine_ == machine);
}

std::uint64_t ShimRemains::heartbeat(const GuestMemory& memory) const {
  const GuestPhys at = layout_.place.wrapping_add(layout_.data + SHIM_CONTROL_HEARTBEAT);
  return memory.load64(at).value_or(0);
}

std::vector<ShimRemains::Entry> ShimRemains::entries(const GuestMemory& memory) const {
  std::vector<Entry> found;
  for (const LeftEntry& left : read_table(memory, layout_)) {
    if (place().has_slot_at(left.address)) continue;  // of a process: user_points()
    found.push_back({left.address,
                     left.slot == 0 ? std::nullopt : std::optional(home_.wrapping_add(left.slot))});
  }
  return found;
}

std::size_t ShimRemains::read_slot(const GuestMemory& memory, GuestVirt slot,
                                   std::span<std::byte> out) const {
  const std::uint64_t offset = slot.offset_from(home_);
  if (offset < layout_.slots || offset >= layout_.data) return 0;
  const std::size_t size = std::min<std::uint64_t>(out.size(), layout_.data - offset);
  return memory.read(layout_.place.wrapping_add(offset), out.first(size)) ? size : 0;
}

namespace {

bool is_in_page(const shim_user_point& point) {
  return point.offset < SHIM_PAGE && point.code <= SHIM_PAGE - sizeof point.bytes &&
         point.slot_bytes <= SHIM_USER_SLOT_BYTES && point.slot < SHIM_PAGE &&
         point.slot_bytes <= SHIM_PAGE - point.slot;
}

}  // namespace

std::vector<ShimRemains::UserPoint> ShimRemains::user_points(const GuestMemory& memory) const {
  std::vector<UserPoint> found;
  std::array<std::uint32_t, SHIM_USER_LISTS> heads{};
  const auto bytes = std::as_writable_bytes(std::span(heads));
  if (user_points_ == 0 || read_slot(memory, GuestVirt(user_points_), bytes) != bytes.size()) {
    return found;
  }
  const std::uint64_t most = layout_.slots_bytes / sizeof(shim_user_point);
  for (const std::uint32_t first : heads) {
    for (std::uint32_t next = first; next != 0 && found.size() < most;) {
      const GuestVirt at(static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(next)}));
      UserPoint one{};
      const auto point = std::as_writable_bytes(std::span(&one.point, 1));
      if (read_slot(memory, at, point) != point.size()) break;
      const GuestVirt before = at.wrapping_sub(SHIM_SLOT_REPLACED);
      if (read_slot(memory, before, std::span(&one.replaced, 1)) != 1) break;
      if (is_in_page(one.point)) found.push_back(one);
      next = one.point.next;
    }
  }
  return found;
}

std::vector<GuestVirt> ShimRemains::used_slots(const GuestMemory& memory) const {
  constexpr std::uint64_t kStep = 32;
  std::vector<std::byte> slots(layout_.slots_bytes);
  std::vector<GuestVirt> used;
  const bool known = memory.read(layout_.place.wrapping_add(layout_.slots), slots);
  for (std::uint64_t at = 0; at < slots.size(); at += kStep) {
    const auto piece = std::span(slots).subspan(at).first(std::min(kStep, slots.size() - at));
    const bool empty =
        known && std::ranges::all_of(piece, [](std::byte byte) { return byte == std::byte{0}; });
    if (!empty) used.push_back(home_.wrapping_add(layout_.slots + at));
  }
  return used;
}

Result<void> ShimRemains::silence(PausedMachine& machine) const {
  const GuestPhys at = layout_.place.wrapping_add(layout_.data + SHIM_CONTROL_ACTIVE);
  if (machine.memory().store64(at, 0)) return {};
  return fail(ErrorCode::Io, "the old stub's memory cannot be written");
}

Result<void> ShimRemains::give_gate_back(PausedMachine& machine) const {
  if (gate_ && !machine.memory().write(gate_->at, gate_->kernels)) {
    return fail(ErrorCode::Io, "the guest's interrupt table cannot be written");
  }
  const std::array<std::uint64_t, 2> nobody{};
  static_assert(offsetof(shim_header, owner_start) == offsetof(shim_header, owner) + 8);
  const GuestPhys owner = layout_.place.wrapping_add(offsetof(shim_header, owner));
  if (machine.memory().write(owner, std::as_bytes(std::span(nobody)))) return {};
  return fail(ErrorCode::Io, "the old stub's memory cannot be written");
}

Result<void> ShimRemains::remove(PausedMachine& machine) const {
  if (mapping_) TRY(mapping_->clear(machine.memory()));
  return clear_region(machine, layout_, layout_.slots_bytes);
}

}  // namespace ringside::vmm
