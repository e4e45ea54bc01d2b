// Tells the CPU that a thread spins (the instruction `pause`).
// Fire context: yes.
#pragma once

namespace ringside {

/// Leaves the core to its other hardware thread for a moment, and saves power.
inline void cpu_relax() {
  __builtin_ia32_pause();
}

}  // namespace ringside
