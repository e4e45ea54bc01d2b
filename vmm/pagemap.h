// Finds the pages of another process's memory that exist, by /proc/PID/pagemap. A page that was
// never touched is neither in RAM nor swapped out. Used by ProcessMemory. Formats:
// Documentation/admin-guide/mm/pagemap.rst.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vmm/copied_bytes.h"

namespace ringside::vmm {

/// By the file's PAGEMAP_SCAN, which goes around what has no page tables; since Linux 6.7. Offsets
/// are the process's addresses. Empty where the kernel has no such call.
std::optional<std::vector<ByteExtent>> scan_pagemap(int pagemap, ByteExtent of);

/// By the file's entries, one for each page, but for mappings that `smaps` (the text of
/// /proc/PID/smaps) says nothing of is there. For older kernels. Empty when they cannot be read.
std::optional<std::vector<ByteExtent>> read_pagemap(int pagemap, const std::string& smaps,
                                                    ByteExtent of);

}  // namespace ringside::vmm
