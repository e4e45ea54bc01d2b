// Wakes a thread that polls a descriptor of eventfd(2).
#pragma once

#include <unistd.h>

#include <cstdint>

#include "vmm/base/unique_fd.h"

namespace ringside {

/// Makes the descriptor readable. Fails only when the counter is full: then it is readable already.
inline void raise_event(const UniqueFd& event) {
  const std::uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

}  // namespace ringside
