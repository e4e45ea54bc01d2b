#include "providers/tracer/page_watch.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <thread>

#include "providers/tracer/watched_entry.h"
#include "vmm/arch/arch.h"
#include "vmm/held_vcpu.h"
#include "vmm/linux/layout.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

using guest_linux::load_field;

constexpr std::string_view kMapRange = "set_pte_range", kMapOne = "do_set_pte",
                           kRemove = "__filemap_remove_folio";
/// The kernel maps the pages around a fault, too (fault_around_bytes), and as many of a folio.
constexpr std::uint64_t kAround = 16, kMostMapped = 512;
/// A page may be on its way out for some time before it is missed.
constexpr auto kAwake = std::chrono::seconds(5);
/// While the guest sets a kprobe.
constexpr unsigned kWakeTries = 20;
constexpr auto kWakeWait = std::chrono::milliseconds(1);

std::uint64_t argument_of(const vmm::Trap& trap, std::size_t n) {
  return trap.registers.*arch::kArgumentRegisters[n];
}

}  // namespace

std::optional<PageWatch::Layout> PageWatch::layout_of(const guest_linux::Kernel& kernel) {
  Layout layout;
  const auto take = [&](std::uint32_t& offset, std::string_view structure,
                        std::initializer_list<std::string_view> path) {
    const auto found = guest_linux::offset_of(kernel.types(), structure, path);
    if (found) offset = *found;
    return found.has_value();
  };
  const auto has = [&](std::string_view name) {
    return kernel.symbols().find(name, "vmlinux") != nullptr;
  };
  layout.maps_ranges = has(kMapRange);
  const bool is_whole = (layout.maps_ranges || has(kMapOne)) && has(kRemove) &&
                        take(layout.fault_area, "vm_fault", {"vma"}) &&
                        take(layout.area_file, "vm_area_struct", {"vm_file"}) &&
                        take(layout.area_start, "vm_area_struct", {"vm_start"}) &&
                        take(layout.area_page, "vm_area_struct", {"vm_pgoff"}) &&
                        take(layout.file_inode, "file", {"f_inode"}) &&
                        take(layout.folio_mapping, "folio", {"mapping"}) &&
                        take(layout.mapping_inode, "address_space", {"host"});
  return is_whole ? std::optional(layout) : std::nullopt;
}

bool PageWatch::is_possible(const guest_linux::Kernel& kernel) {
  return layout_of(kernel).has_value();
}

Result<void> PageWatch::prepare() {
  const auto layout = layout_of(kernel_);
  if (!layout) {
    return fail(ErrorCode::Unsupported, "the kernel does not describe how it maps pages");
  }
  layout_ = *layout;
  const auto watch = [&](std::string_view name) {
    return watch_entry(table_, kernel_, *kernel_.symbols().find(name, "vmlinux"));
  };
  map_ = TRY(watch(layout_.maps_ranges ? kMapRange : kMapOne));
  remove_ = TRY(watch(kRemove));
  return {};
}

void PageWatch::add_to(vmm::TrapHandlers& handlers) {
  handlers.add(map_, *this);
  handlers.add(remove_, *this);
}

std::map<GuestVirt, vmm::FetchList> PageWatch::lists(std::span<const GuestVirt> inodes) const {
  using vmm::FetchList;
  std::map<GuestVirt, FetchList> made;
  const auto list_at = [&](GuestVirt place, std::initializer_list<std::uint32_t> way) {
    FetchList& list = made[place] = FetchList({.registers = true, .ids = false});
    std::uint16_t source = vmm::FetchLoad::register_source(SHIM_RDI);
    for (const std::uint32_t offset : way) {
      const auto load =
          list.add({.source = source, .words = 1, .offset = static_cast<std::int32_t>(offset)});
      source = list.source_of(*load);
    }
    list.wait_only_for(source, inodes);
  };
  list_at(map_, {layout_.fault_area, layout_.area_file, layout_.file_inode});
  list_at(remove_, {layout_.folio_mapping, layout_.mapping_inode});
  return made;
}

std::optional<PageWatch::Mapped> PageWatch::mapped_by(const vmm::Trap& trap) const {
  const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
  const auto word = [&reader](std::uint64_t structure, std::uint32_t offset) {
    return load_field<std::uint64_t>(reader, GuestVirt(structure), offset);
  };
  const auto area = word(argument_of(trap, 0), layout_.fault_area);
  if (!area) return std::nullopt;
  const auto file = word(*area, layout_.area_file), start = word(*area, layout_.area_start),
             page = word(*area, layout_.area_page);
  if (!file || !start || !page) return std::nullopt;
  const auto inode = word(*file, layout_.file_inode);
  if (!inode) return std::nullopt;
  const std::uint64_t address = argument_of(trap, layout_.maps_ranges ? 4 : 2);
  const std::uint64_t count = layout_.maps_ranges ? argument_of(trap, 3) & UINT32_MAX : 1;
  const std::uint64_t first = *page + (address - *start) / arch::kPageSize;
  const std::uint64_t before = first % kAround;
  const std::uint64_t mapped = before + std::min(count, kMostMapped);
  return Mapped{GuestVirt(*inode), {first - before, std::max(kAround, mapped)}};
}

void PageWatch::arrive(const vmm::Trap& trap) {
  const auto mapped = mapped_by(trap);
  if (!mapped || !users_.wants_pages(mapped->inode, mapped->pages)) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  const auto done = paused ? users_.arrive(*paused, mapped->inode, mapped->pages)
                           : tl::make_unexpected(paused.error());
  if (!done) users_.note_unseen(done.error().message);
}

void PageWatch::wake() {
  for (unsigned n = 0; n < kWakeTries && !table_.stands_at(map_); ++n) {
    if (n > 0) std::this_thread::sleep_for(kWakeWait);
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) return;
    const auto done = table_.wake(*paused, map_);
    if (!done || *done) return;
  }
}

void PageWatch::on_trap(const vmm::Trap& trap) {
  const vmm::HeldVcpu held;
  if (trap.address == map_) return arrive(trap);
  const std::lock_guard lock(lock_);
  awake_until_ = Clock::now() + kAwake;
  wake();
}

void PageWatch::look() {
  const std::lock_guard lock(lock_);
  if (users_.lacks_pages() || Clock::now() < awake_until_) return wake();
  if (!table_.stands_at(map_)) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  if (paused) (void)table_.rest(*paused, map_);  // it goes on watching
}

}  // namespace ringside::providers
