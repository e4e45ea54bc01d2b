// A kernel without symbols, types or CPUs, whose modules never change. The fakes of this folder and
// of those above derive from it, and override or fill only what their tests need. Not linked into
// the product.
#pragma once

#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

class InertKernel : public Kernel {
 public:
  std::string_view release() const override { return "6.1.0"; }
  const vmm::PageTable& table() const override { return table_; }
  const SymbolTable& symbols() const override { return symbols_; }
  const TypeGraph& types() const override { return types_; }
  const KernelLayout& layout() const override { return layout_; }
  std::optional<TypeId> prototype(const Symbol&) const override { return {}; }
  std::span<const std::uint64_t> percpu_bases() const override { return {}; }
  std::optional<std::uint32_t> cpu_of(GuestVirt) const override { return {}; }
  Result<GuestVirt, Fault> current_task(const GuestReader&, GuestVirt) const override {
    return GuestVirt();
  }
  Result<bool> refresh_modules() override { return false; }
  std::span<const AddressRange> forbidden_text() const override { return {}; }
  std::span<const PatchedSite> patched_sites() const override { return {}; }

 protected:
  explicit InertKernel(GuestPhys root = GuestPhys(0)) : table_{root, 4, 0} {}

  vmm::PageTable table_;
  SymbolTable symbols_;
  TypeGraph types_;
  KernelLayout layout_;
};

}  // namespace ringside::guest_linux
