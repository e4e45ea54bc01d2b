// The text in which a kernel allows no kprobes: NOKPROBE_SYMBOL(), and the sections .entry.text,
// .noinstr.text and .kprobes.text, of the kernel and its modules. Source (kernel/kprobes.c, since
// 3.16):
//   kprobe_blacklist: struct list_head of struct kprobe_blacklist_entry {list, start_addr,
//   end_addr}
// Offsets are the guest's own types'. Used for functions without an ftrace site. Hostile input: the
// list may be cyclic, endless or torn; the walk is bounded.
#pragma once

#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// Sorted by where they begin. Unsupported: the kernel has no such list; Invalid: it cannot be
/// read.
Result<std::vector<Kernel::AddressRange>> read_kprobe_blacklist(const GuestReader& kernel,
                                                                const SymbolTable& symbols,
                                                                const TypeGraph& types);

}  // namespace ringside::guest_linux
