// `ringside clean --cache`: removes what is kept of kernels from one run to the next
// (vmm/linux/cache/kernel_cache.h).
#pragma once

namespace ringside::cli {

/// Says what it has removed; the exit status.
int clean_cache();

}  // namespace ringside::cli
