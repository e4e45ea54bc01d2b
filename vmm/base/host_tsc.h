// The host's TSC.
// Fire context: yes.
#pragma once

#include <cstdint>

namespace ringside {

inline std::uint64_t host_tsc() {
  return __builtin_ia32_rdtsc();
}

}  // namespace ringside
