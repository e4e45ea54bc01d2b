// `ringside clean --cache`: removes the cache of facts about kernels
// (vmm/linux/cache/kernel_cache.h).
#pragma once

namespace ringside::cli {

/// Says what it has removed; the exit status.
int clean_cache();

}  // namespace ringside::cli
