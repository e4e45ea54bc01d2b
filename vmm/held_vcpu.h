// Tells code that pauses a machine that the calling thread serves a trap whose vCPU stands still
// until it is done. What waits for that vCPU would wait for itself: it may have to take the
// interrupt that ends a request to a disk, say. Used by watches of traps, and by the check before a
// stop. Threads: each for itself.
#pragma once

namespace ringside::vmm {

class HeldVcpu {
 public:
  HeldVcpu() { ++held(); }
  ~HeldVcpu() { --held(); }
  HeldVcpu(const HeldVcpu&) = delete;
  HeldVcpu& operator=(const HeldVcpu&) = delete;

  static bool is_held() { return held() != 0; }

 private:
  static unsigned& held() {
    thread_local unsigned count = 0;
    return count;
  }
};

}  // namespace ringside::vmm
