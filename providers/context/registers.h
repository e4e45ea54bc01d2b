// Functions of a vCPU's registers: regs[] and uregs[] of D, and the stack by frame pointers.
// Fire context: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"

namespace ringside::providers {

/// Fault: no register has this number, or a trap does not keep it.
inline Result<std::uint64_t, Fault> register_for_d(const Registers& registers, std::uint64_t n) {
  if (n >= arch::kByDNumber.size() || arch::kByDNumber[n] == nullptr) {
    return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  return registers.*arch::kByDNumber[n];
}

/// Walks a stack by frame pointers (arch::FrameRecord). Code that was built without them shows its
/// first frame, and then whatever rbp happens to point at. The walk is bounded by `frames`, and
/// only goes up. Innermost first: rip, then the return addresses. Returns how many were found.
inline std::size_t follow_frame_pointers(const GuestReader& memory, const Registers& registers,
                                         std::span<std::uint64_t> frames) {
  if (frames.empty()) return 0;
  frames[0] = registers.*arch::kProgramCounter;
  std::size_t count = 1;
  std::uint64_t at = registers.*arch::kFramePointer;
  for (std::uint64_t last = registers.*arch::kStackPointer; count < frames.size(); ++count) {
    if (at < last || at % sizeof(std::uint64_t) != 0) break;
    const auto frame = load<arch::FrameRecord>(memory, GuestVirt(at));
    if (!frame || frame->return_address == 0) break;
    frames[count] = frame->return_address;
    last = at + sizeof(arch::FrameRecord);
    at = frame->frame_pointer;
  }
  return count;
}

}  // namespace ringside::providers
