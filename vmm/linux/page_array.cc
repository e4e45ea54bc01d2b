#include "vmm/linux/page_array.h"

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
namespace {

/// VMEMMAP_START without CONFIG_DYNAMIC_MEMORY_LAYOUT (Documentation/arch/x86/x86_64/mm.rst).
constexpr GuestVirt kFixedVmemmap{0xffff'ea00'0000'0000};
constexpr std::uint64_t kMostPageBytes = 4096;

}  // namespace

std::optional<PageArray> PageArray::from(const TypeGraph& types, const SymbolTable& symbols) {
  const auto page = types.find(TypeKind::Struct, "page");
  const std::uint64_t bytes = page ? types.size_of(*page) : 0;
  if (bytes == 0 || bytes > kMostPageBytes) return std::nullopt;
  const Symbol* const variable = symbols.find("vmemmap_base", "vmlinux");
  return PageArray{bytes, variable != nullptr ? std::optional(variable->address) : std::nullopt};
}

Result<GuestVirt, Fault> PageArray::begin(const GuestReader& kernel) const {
  if (!variable) return kFixedVmemmap;
  return GuestVirt(TRY(load<std::uint64_t>(kernel, *variable)));
}

std::optional<std::uint64_t> PageArray::number_of(GuestVirt page, GuestVirt begin) const {
  if (page < begin) return std::nullopt;
  const std::uint64_t distance = page.offset_from(begin);
  if (distance % page_bytes != 0) return std::nullopt;
  const std::uint64_t number = distance / page_bytes;
  return number <= UINT64_MAX / arch::kPageSize ? std::optional(number) : std::nullopt;
}

}  // namespace ringside::guest_linux
