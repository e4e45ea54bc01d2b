// Keeps the result of NoIdtText::find() for a kernel in the user's cache, because the search takes
// a good part of the time to attach. The key is a hash of everything that the search reads: the
// kernel's text, its symbols, the places that it patches, the forbidden text.
// Used by NoIdtText.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "vmm/linux/cache/kernel_cache.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class NoIdtCache {
 public:
  /// `text`: a copy of vmlinux's text, at `base`. All but it must outlive this.
  NoIdtCache(const guest_linux::KernelCache& cache, const guest_linux::Kernel& kernel,
             GuestVirt base, std::span<const std::byte> text,
             std::span<const std::string_view> reasons);

  /// Reasons by where a function starts; empty when nothing sound is kept.
  using Reasons = std::map<GuestVirt, std::string_view>;
  std::optional<Reasons> find() const;
  /// Each reason is one of those that the constructor got.
  void keep(const Reasons& reasons) const;

 private:
  const guest_linux::KernelCache& cache_;
  const guest_linux::Kernel& kernel_;
  GuestVirt base_;
  std::span<const std::string_view> reasons_;
  guest_linux::HashValue hash_;
};

}  // namespace ringside::providers
