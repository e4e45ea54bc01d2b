// VMCOREINFO: the text that tells crash tools the addresses and offsets of a Linux kernel. Every
// running kernel that can kexec has it in its RAM, at the start of a page (kernel/vmcore_info.c,
// before 6.9 kernel/crash_core.c; x86-64 keys in arch/x86/kernel/vmcore_info_64.c).
// Used by discover_kernel(). Does not: tell the running kernel's own text from one that a guest's
// user forged (kernel_memory.h does).
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
  /// Whether the kernel has crashed and started its crash kernel: it then writes one more copy of
  /// its text, with CRASHTIME. text() has no CRASHTIME, so that copies from before and after the
  /// crash are equal.
  bool has_crashed() const { return has_crashed_; }
  void note_crashed() { has_crashed_ = true; }
  /// SYMBOL(name), a virtual address after KASLR.
  std::optional<GuestVirt> symbol(std::string_view name) const;
  /// NUMBER(name): signed decimal.
  std::optional<std::int64_t> number(std::string_view name) const;
  /// OFFSET(name): bytes, decimal.
  std::optional<std::int64_t> offset(std::string_view name) const;
  /// SIZE(name): bytes, decimal.
  std::optional<std::uint64_t> size(std::string_view name) const;
  const std::string& text() const { return text_; }
  /// Where the kernel's names stand, each kUtsField bytes that end by a NUL: init_uts_ns.name, a
  /// struct new_utsname. "Linux" is the first, the release the third.
  GuestVirt names() const;
  static constexpr std::size_t kUtsField = 65;

 private:
  std::optional<std::string_view> value(std::string_view kind, std::string_view name) const;

  std::string text_;
  std::string release_;
  bool has_crashed_ = false;
};

/// Every distinct VMCOREINFO that `wanted` accepts, at most kMostVmcoreInfos. They are in address
/// order, except that kernels that have crashed come last.
/// Looks at the page starts of RAM that was ever written, for plain text and for an ELF note
/// (12-byte header, "VMCOREINFO" padded to 12, then the text). The limit is for a guest that fills
/// its RAM with forgeries: each one found is compared with all that are kept.
inline constexpr std::size_t kMostVmcoreInfos = 8;
using VmcoreInfoFilter = std::function<bool(const VmcoreInfo&)>;
std::vector<VmcoreInfo> find_vmcoreinfo(const vmm::GuestMemory& memory,
                                        const VmcoreInfoFilter& wanted);

class Kernel;
/// The text of a kernel that is known, by its own variables (vmcoreinfo_data, vmcoreinfo_size; of
/// kernel/vmcore_info.c); empty where it has none.
std::string read_vmcoreinfo(const vmm::GuestMemory& memory, const Kernel& kernel);

}  // namespace ringside::guest_linux
