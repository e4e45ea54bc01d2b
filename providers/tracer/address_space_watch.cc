#include "providers/tracer/address_space_watch.h"

#include <array>
#include <string>
#include <string_view>

#include "providers/tracer/watched_entry.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

constexpr std::string_view kEnd = "exit_mmap", kGather = "vms_gather_munmap_vmas";
constexpr std::array<std::string_view, 2> kAlign = {"do_vmi_align_munmap", "do_mas_align_munmap"};

const guest_linux::Symbol* function(const guest_linux::Kernel& kernel, std::string_view name) {
  return kernel.symbols().find(name, "vmlinux");
}

Result<void> lacks(std::string_view what) {
  return fail(ErrorCode::Unsupported,
              "the process's stack could not be followed later, since the kernel has no " +
                  std::string(what));
}

}  // namespace

Result<AddressSpaceWatch> AddressSpaceWatch::prepare(TrapPointTable& table,
                                                     const guest_linux::Kernel& kernel) {
  AddressSpaceWatch watch(table);
  auto done = watch.watch_end(kernel);
  if (done) done = watch.watch_unmapping(kernel);
  if (done) return watch;
  watch.give_up();
  return tl::make_unexpected(done.error());
}

Result<void> AddressSpaceWatch::watch_end(const guest_linux::Kernel& kernel) {
  const auto* const end = function(kernel, kEnd);
  if (end == nullptr) return lacks(kEnd);
  end_ = TRY(watch_entry(*table_, kernel, *end));
  return {};
}

Result<void> AddressSpaceWatch::watch_unmapping(const guest_linux::Kernel& kernel) {
  const auto file = guest_linux::offset_of(kernel.types(), "vm_area_struct", {"vm_file"});
  const auto range = guest_linux::offset_of(kernel.types(), "vma_munmap_struct", {"vma"});
  if (!file) return lacks("type struct vm_area_struct");
  unmapping_.file = *file;
  if (const auto* const gather = function(kernel, kGather); gather != nullptr && range) {
    unmapping_.range = range;
    unmapping_.source = vmm::FetchLoad::register_source(SHIM_RDI);
    unmap_ = TRY(watch_entry(*table_, kernel, *gather));
    return {};
  }
  unmapping_.source = vmm::FetchLoad::register_source(SHIM_RSI);
  for (const std::string_view name : kAlign) {
    const auto* const align = function(kernel, name);
    if (align == nullptr) continue;
    unmap_ = TRY(watch_entry(*table_, kernel, *align));
    return {};
  }
  return lacks(kAlign.front());
}

void AddressSpaceWatch::give_up() {
  for (GuestVirt* const place : {&end_, &unmap_}) {
    if (place->raw() != 0) table_->release(*place);
    *place = GuestVirt(0);
  }
}

void AddressSpaceWatch::add_to(vmm::TrapHandlers& handlers) {
  for (const GuestVirt place : {end_, unmap_}) {
    if (place.raw() != 0) handlers.add(place, *this);
  }
}

std::map<GuestVirt, vmm::FetchList> AddressSpaceWatch::lists() const {
  vmm::FetchList list({.registers = true, .ids = false});
  const auto word = [&list](std::uint16_t source, std::uint32_t offset) {
    const auto load =
        list.add({.source = source, .words = 1, .offset = static_cast<std::int32_t>(offset)});
    return list.source_of(*load);
  };
  std::uint16_t mapping = unmapping_.source;
  if (unmapping_.range) mapping = word(mapping, *unmapping_.range);
  list.wait_unless_zero(word(mapping, unmapping_.file));
  return {{unmap_, list}};
}

}  // namespace ringside::providers
