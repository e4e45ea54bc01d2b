#include "cli/guest/saved_guest.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/messages/messages.h"
#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/types/type_file.h"
#include "vmm/page_walk.h"

namespace ringside::cli {
namespace {

using guest_linux::Kernel;

constexpr std::uint64_t kMib = 1 << 20;

/// Where RAM ends, by max_pfn (mm/memblock.c); empty when the kernel does not say.
std::optional<std::uint64_t> end_of_memory(vmm::SavedMachine& machine, const Kernel& kernel) {
  const guest_linux::Symbol* symbol = kernel.symbols().find("max_pfn", "vmlinux");
  if (symbol == nullptr) return std::nullopt;
  const vmm::PageTableReader reader(machine.memory(), kernel.table());
  const auto pages = ringside::load<std::uint64_t>(reader, symbol->address);
  return pages && *pages < UINT64_MAX >> arch::kPageShift
             ? std::optional(*pages << arch::kPageShift)
             : std::nullopt;
}

}  // namespace

Result<SavedGuest> open_saved_guest(const std::string& path, const std::string& types_file) {
  const auto types = TRY(guest_linux::TypeFile::open_if_named(types_file));
  const auto discover = [&types](vmm::SavedMachine& in) {
    return guest_linux::discover_kernel(in, guest_linux::Boot::AnyStage, types ? &*types : nullptr);
  };
  auto machine = TRY(vmm::SavedMachine::open(path));
  const std::uint64_t missing = divide_up(machine->missing(), kMib);
  if (missing != 0) {
    say(fmt::format("{} ends {} MiB before its memory does: what is missing cannot be read", path,
                    missing));
  }
  if (const std::uint64_t left_out = machine->left_out() / kMib; left_out != 0) {
    say(fmt::format("{} leaves out {} MiB of memory, which may read as zeros (makedumpfile -d)",
                    path, left_out));
  }
  auto kernel = discover(*machine);
  if (!kernel && missing != 0) {
    kernel.error().message +=
        fmt::format("; the kernel may lie in the {} MiB that {} lacks", missing, path);
  }
  if (!machine->is_raw()) return SavedGuest{std::move(machine), std::move(kernel)};
  for (const std::uint64_t low : machine->possible_splits()) {
    if (kernel) break;
    machine->split_at(low);
    kernel = discover(*machine);
  }
  if (kernel) {
    const auto low = machine->split_for(end_of_memory(*machine, **kernel).value_or(0));
    if (low) {
      machine->split_at(*low);
      kernel = discover(*machine);
    }
  }
  return SavedGuest{std::move(machine), std::move(kernel)};
}

}  // namespace ringside::cli
