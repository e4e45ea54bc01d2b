// The parts of Kernel that do not depend on how it was found.
#include "vmm/linux/kernel.h"

#include <algorithm>

namespace ringside::guest_linux {

Result<Kernel::LateModule> Kernel::admit_module(GuestVirt) {
  return fail(ErrorCode::Unsupported, "the kernel's types do not describe its modules");
}

const Kernel::PatchedSite* Kernel::site_in(std::span<const PatchedSite> sites, GuestVirt at,
                                           std::size_t length) {
  constexpr std::uint64_t kLongestSite = 255;
  const GuestVirt lowest = at.wrapping_sub(std::min(at.raw(), kLongestSite));
  for (const PatchedSite& site : sites_from(sites, lowest)) {
    if (site.address >= at && !site.address.is_in(at, length)) break;
    const std::uint64_t bytes = std::max<std::uint64_t>(site.length, 1);
    if (site.address >= at || at.is_in(site.address, bytes)) return &site;
  }
  return nullptr;
}

void Kernel::note_omission(std::string text) {
  constexpr std::size_t kMostTold = 32;  // of a guest that makes up modules
  if (omitted_.size() >= kMostTold || !omitted_.insert(text).second) return;
  omissions_.push_back(std::move(text));
  if (omitted_.size() == kMostTold) omissions_.push_back("more was left out, and is not told");
}

}  // namespace ringside::guest_linux
