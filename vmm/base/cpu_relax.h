// A spinning thread's rest between two looks.
// Fire context: yes.
#pragma once

namespace ringside {

/// Leaves the core to its other hardware thread for a moment, and saves power.
inline void cpu_relax() {
  __builtin_ia32_pause();
}

}  // namespace ringside
