// A kernel from a file, for unit tests: text of functions with an ftrace site each, at the
// addresses of fake_guest.h, whose memory it shares. Used by this folder's tests; not linked into
// the product.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "providers/testing/fake_guest.h"
#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

class FakeFileKernel final : public guest_linux::FileKernel {
 public:
  static constexpr std::uint64_t kText = 0x100000;  // guest-physical; each function has 64 bytes
  static constexpr std::uint64_t kNop = 5;          // an ftrace site

  explicit FakeFileKernel(FakeMemory& memory)
      : memory_(memory), text_(memory.memory(), base_.table()) {}

  /// Adds a function that returns 1 and gives its address; its entry probe stands kNop bytes after
  /// that.
  GuestVirt function(std::string_view name) {
    static constexpr std::uint8_t kBody[] = {0x0f, 0x1f, 0x44, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3};
    std::vector<std::uint8_t> code(std::begin(kBody), std::end(kBody));
    code.resize(64, 0xcc);
    const std::uint64_t at = kText + functions_.size() * 64;
    memory_.put(at, code.data(), code.size());
    auto& table = base_.symbols_to_fill();
    functions_.push_back({kernel_address(at), 64, table.intern(std::string(name)), 't', 0});
    return kernel_address(at);
  }
  /// No more functions.
  void seal() {
    auto& table = base_.symbols_to_fill();
    table.add_module({"vmlinux", kernel_address(kText), 0x80000, 0}, functions_);
    table.seal();
  }

  bool is_linux() const override { return linux; }
  const GuestReader& text() const override { return text_; }
  std::optional<GuestPhys> loaded_at(GuestVirt at) const override {
    return GuestPhys(at.raw() - kKernelBase);
  }
  vmm::PageTable table_in(const vmm::GuestMemory&) const override {
    vmm::PageTable table = base_.table();
    table.levels = levels;
    return table;
  }
  const std::optional<std::vector<PatchedSite>>& patched_at_boot() const override {
    return boot_patches;
  }
  std::optional<AddressRange> init_text() const override { return init; }
  bool learn_cpus(const GuestReader&) override {
    ++learned;
    return true;
  }

  std::string_view release() const override { return base_.release(); }
  const vmm::PageTable& table() const override { return base_.table(); }
  const guest_linux::SymbolTable& symbols() const override { return base_.symbols(); }
  const TypeGraph& types() const override { return base_.types(); }
  const guest_linux::KernelLayout& layout() const override { return base_.layout(); }
  std::optional<TypeId> prototype(const guest_linux::Symbol& function) const override {
    return base_.prototype(function);
  }
  std::span<const std::uint64_t> percpu_bases() const override { return base_.percpu_bases(); }
  std::optional<std::uint32_t> cpu_of(GuestVirt base) const override {
    return learned != 0 ? base_.cpu_of(base) : std::nullopt;
  }
  Result<GuestVirt, Fault> current_task(const GuestReader& kernel, GuestVirt base) const override {
    return base_.current_task(kernel, base);
  }
  Result<bool> refresh_modules() override { return false; }
  std::span<const AddressRange> forbidden_text() const override { return forbidden; }
  std::span<const PatchedSite> patched_sites() const override { return patched; }

  bool linux = true;
  std::optional<std::vector<PatchedSite>> boot_patches = std::vector<PatchedSite>();
  std::optional<AddressRange> init;
  std::vector<AddressRange> forbidden;
  std::vector<PatchedSite> patched;
  unsigned learned = 0;
  unsigned levels = 4;  // of its page table by now

 private:
  FakeMemory& memory_;
  FakeKernel base_;
  vmm::PageTableReader text_;
  std::vector<guest_linux::Symbol> functions_;
};

}  // namespace ringside::providers
