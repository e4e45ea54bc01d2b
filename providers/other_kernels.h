// The module names that DTrace scripts for other systems use for the kernel (genunix, mach_kernel).
#pragma once

#include <string_view>

namespace ringside::providers {

inline bool is_module_of_illumos_kernel(std::string_view module) {
  return module == "genunix" || module == "unix";
}

/// Also those of FreeBSD (kernel) and of macOS (mach_kernel).
inline bool is_module_of_other_kernel(std::string_view module) {
  return is_module_of_illumos_kernel(module) || module == "kernel" || module == "mach_kernel";
}

}  // namespace ringside::providers
