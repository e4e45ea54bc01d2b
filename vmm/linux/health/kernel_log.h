// The last lines of the kernel's log, from its ring buffer. No console need show them. Source:
// struct printk_ringbuffer (kernel/printk/printk_ringbuffer.h and .c; since 5.10):
//   descriptors  2^count_bits of struct prb_desc, and as many printk_info beside them; a
//                descriptor's index is its id modulo their number; the two top bits of state_var
//                say 0 reserved, 1 committed, 2 finalized, 3 reusable, the others are the id
//   text         2^size_bits bytes; a block is the id in 8 bytes, then the text; a position counts
//                on for ever, its place is its low bits; where a block would leave the end it lies
//                at the start instead; an odd position means that there is no text
// Used by examine(). Hostile input: bounded, printable.
#pragma once

#include <vector>

#include "vmm/base/result.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {

/// At most `most` lines, the oldest first. Unsupported where the kernel has no such buffer, Invalid
/// where it makes no sense.
Result<std::vector<LogLine>> read_kernel_log(const KernelView& view, std::size_t most);

}  // namespace ringside::guest_linux
