// VMCOREINFO: the text in which a Linux kernel tells a crash tool where things are. Every running
// kernel that can kexec holds it in its RAM, at the start of a page (kernel/vmcore_info.c, before
// 6.9 kernel/crash_core.c; x86-64 keys in arch/x86/kernel/vmcore_info_64.c).
// Used by Kernel::discover. It finds and parses; whether a copy is the running kernel's own or was
// forged by a guest's user is decided by VmcoreInfo's user (kernel_memory.h).
// Fire context: no.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/guest_memory.h"

namespace ringside::guest_linux {

class VmcoreInfo {
 public:
  /// `text` is lines of KEY=VALUE and must begin with OSRELEASE; it ends at the first NUL. Empty
  /// when a byte is not printable or a key that every kernel writes is missing or malformed.
  static std::optional<VmcoreInfo> parse(std::string_view text);

  std::string_view release() const { return release_; }
  /// SYMBOL(name), a virtual address after KASLR.
  std::optional<GuestVirt> symbol(std::string_view name) const;
  /// NUMBER(name): signed decimal.
  std::optional<std::int64_t> number(std::string_view name) const;
  /// OFFSET(name): bytes, decimal.
  std::optional<std::int64_t> offset(std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  std::optional<std::string_view> value(std::string_view kind, std::string_view name) const;

  std::string text_;
  std::string release_;
};

/// Every distinct VMCOREINFO at a page start of RAM that was ever written, as plain text or as an
/// ELF note (12-byte header, "VMCOREINFO" padded to 12, then the text), in address order; at most
/// kMostVmcoreInfos of those that `wanted` accepts. A guest can fill its RAM with forgeries, so
/// what is kept, and compared with what comes after, must stay small.
inline constexpr std::size_t kMostVmcoreInfos = 8;
using VmcoreInfoFilter = std::function<bool(const VmcoreInfo&)>;
std::vector<VmcoreInfo> find_vmcoreinfo(const vmm::GuestMemory& memory,
                                        const VmcoreInfoFilter& wanted);

}  // namespace ringside::guest_linux
