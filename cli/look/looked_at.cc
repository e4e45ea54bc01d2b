#include "cli/look/looked_at.h"

#include <fmt/format.h>

#include <utility>

#include "cli/guest/saved_guest.h"
#include "vmm/attach/attach.h"
#include "vmm/attach/host_vms.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/types/type_file.h"

namespace ringside::cli {

LookedAt::LookedAt(std::unique_ptr<vmm::Machine> machine,
                   std::unique_ptr<guest_linux::Kernel> kernel, std::string name, Life life)
    : machine_(std::move(machine)),
      kernel_(std::move(kernel)),
      name_(std::move(name)),
      table_(kernel_->table_in(machine_->memory())),
      linear_(guest_linux::find_linear_map(machine_->memory(), *kernel_)),
      reader_(machine_->memory(), table_, linear_),
      view_(*kernel_, reader_),
      copies_(reader_),
      list_view_(*kernel_, linear_ ? static_cast<const GuestReader&>(copies_) : reader_),
      guest_{list_view_, life == Life::Runs,
             [this](GuestVirt table, GuestVirt at, std::span<std::byte> out) {
               return read_process(table, at, out);
             },
             [this] { forget(); }} {}

void LookedAt::forget() const {
  reader_.forget();
  copies_.forget();
}

/// Turns away from a machine that runs.
LookedAt::~LookedAt() {
  machine_->shut_down();
}

bool LookedAt::read_process(GuestVirt page_table, GuestVirt at, std::span<std::byte> out) {
  const auto& memory = machine_->memory();
  vmm::PageTable table = table_;
  if (linear_ && page_table >= *linear_) {
    table.root = GuestPhys(page_table.offset_from(*linear_));
  } else if (const auto root = vmm::translate(memory, table, page_table)) {
    table.root = root->address;
  } else {
    return false;
  }
  const auto page = vmm::translate(memory, table, at);
  return page && memory.read(page->address, out);
}

std::vector<LookTarget> look_targets(const CommandLine& line) {
  std::vector<LookTarget> targets;
  for (const std::string& word : line.arguments) targets.push_back({word, {}});
  if (!targets.empty()) return targets;
  for (const vmm::HostVm& vm : vmm::list_host_vms()) {
    // A machine that cannot be attached to can often be looked at, by its process.
    targets.push_back({vm.target.empty() ? fmt::format("pid:{}", vm.pid) : vm.target, vm.name});
  }
  return targets;
}

Result<std::unique_ptr<LookedAt>> look_at_machine(const LookTarget& target,
                                                  const std::string& types_file) {
  auto observed = TRY(vmm::look_at(TRY(vmm::parse_attach_target(target.text))));
  const auto types = TRY(guest_linux::TypeFile::open_if_named(types_file));
  auto kernel = guest_linux::discover_kernel(*observed.machine, guest_linux::Boot::AnyStage,
                                             types ? &*types : nullptr);
  if (!kernel) {
    observed.machine->shut_down();
    return tl::make_unexpected(std::move(kernel).error());
  }
  return std::make_unique<LookedAt>(std::move(observed.machine), std::move(*kernel),
                                    std::move(observed.name), LookedAt::Life::Runs);
}

Result<std::unique_ptr<LookedAt>> look_at_saved(const CommandLine& line) {
  auto saved = TRY(open_saved_guest(line.core_file, line.types_file));
  auto kernel = TRY(std::move(saved.kernel));
  return std::make_unique<LookedAt>(std::move(saved.machine), std::move(kernel), line.core_file,
                                    LookedAt::Life::Saved);
}

}  // namespace ringside::cli
