// Instructions of the host's CPU.
// Fire context: yes.
#pragma once

#include <cstdint>

namespace ringside {

/// For a thread that spins (the instruction `pause`): leaves the core to its other hardware thread
/// for a moment, and saves power.
inline void cpu_relax() {
  __builtin_ia32_pause();
}

/// The host's TSC.
inline std::uint64_t host_tsc() {
  return __builtin_ia32_rdtsc();
}

}  // namespace ringside
