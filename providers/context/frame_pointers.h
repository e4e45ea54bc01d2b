// Following a stack by frame pointers: rbp points at the saved rbp, above which lies the return
// address (System V AMD64 ABI 3.2.2). Code built without them shows its first frame, and what
// happens to lie where rbp points. Bounded by `frames`, and by going upward only.
// Fire context: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/arch/x86_64/registers.h"
#include "vmm/base/guest_reader.h"

namespace ringside::providers {

/// Innermost first: rip, then the return addresses. How many were found.
inline std::size_t follow_frame_pointers(const GuestReader& memory, const Registers& registers,
                                         std::span<std::uint64_t> frames) {
  struct Frame {
    std::uint64_t below, back;
  };
  if (frames.empty()) return 0;
  frames[0] = registers.rip;
  std::size_t count = 1;
  std::uint64_t at = registers.rbp;
  for (std::uint64_t last = registers.rsp; count < frames.size(); ++count) {
    if (at < last || at % sizeof(std::uint64_t) != 0) break;
    const auto frame = load<Frame>(memory, GuestVirt(at));
    if (!frame || frame->back == 0) break;
    frames[count] = frame->back;
    last = at + sizeof(Frame);
    at = frame->below;
  }
  return count;
}

}  // namespace ringside::providers
