#include "vmm/linux/linear_map.h"

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {

std::optional<GuestVirt> find_linear_map(vmm::GuestMemory& memory, const Kernel& kernel) {
  const GuestPhys root = kernel.table().root;
  if (!memory.is_ram(root, arch::kPageSize)) return std::nullopt;
  if (!memory.mapping(root, arch::kPageSize).empty()) return std::nullopt;
  return find_direct_map(memory, kernel);
}

std::optional<GuestVirt> find_direct_map(const vmm::GuestMemory& memory, const Kernel& kernel) {
  const vmm::PageTable& table = kernel.table();
  const GuestPhys root = table.root;
  const Symbol* const variable = kernel.symbols().find("page_offset_base", "vmlinux");
  if (variable == nullptr) return std::nullopt;
  const auto value = load<std::uint64_t>(vmm::PageTableReader(memory, table), variable->address);
  if (!value || *value % arch::kPageSize != 0 || !arch::in_kernel_half(GuestVirt(*value))) {
    return std::nullopt;
  }
  const auto there = GuestVirt(*value).checked_add(root.raw());
  const auto found = there ? vmm::translate(memory, table, *there) : std::nullopt;
  if (!found || found->address != root) return std::nullopt;
  return GuestVirt(*value);
}

}  // namespace ringside::guest_linux
