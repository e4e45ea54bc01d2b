// Makes regs[] and uregs[] of a vCPU's registers. Fire context: yes.
#pragma once

#include "vmm/arch/arch.h"
#include "vmm/base/result.h"

namespace ringside::providers {

/// Fault: no register has this number, or a trap does not keep it.
inline Result<std::uint64_t, Fault> register_for_d(const Registers& registers, std::uint64_t n) {
  if (n >= arch::kByDNumber.size() || arch::kByDNumber[n] == nullptr) {
    return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  return registers.*arch::kByDNumber[n];
}

}  // namespace ringside::providers
