// Facts that a kernel without BTF tells otherwise, so that it can be traced by its symbols: the
// structures that its VMCOREINFO describes (struct page, the kernel log's), the flag of reserved
// pages, which each page of its own text has, the owner of a mutex, and where a task has its name
// and numbers, which its first tasks show.
// Nothing is guessed: what cannot be proved is left out, and what needs it is refused by name.
// Used by Kernel. Hostile input: everything is a copy; loops are bounded. Does not: replace types;
// type_file.h does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/vmcoreinfo.h"

namespace ringside::guest_linux {

/// Adds these types to `types`. A structure of which only some members are known has the size 0, as
/// one that is not complete. `symbols` are vmlinux's.
void add_told_types(const VmcoreInfo& info, const SymbolTable& symbols, const GuestReader& kernel,
                    TypeGraph& types);

/// Byte offsets in struct task_struct.
struct ToldTask {
  std::uint32_t comm = 0, pid = 0, tgid = 0, real_parent = 0;
};
/// By the idle task (init_task), which is its own parent, and its children: init (1) and kthreadd
/// (2). Empty while there are none, and where they do not agree.
std::optional<ToldTask> find_told_task(const GuestReader& kernel, GuestVirt init_task);

/// Whether these are a kernel's own types, and not only what it tells without them.
inline bool are_types_of_kernel(const TypeGraph& types) {
  return types.find(TypeKind::Struct, "task_struct").has_value();
}

/// SYSTEM_RUNNING (enum system_states of include/linux/kernel.h) of a release: 5.16 has put
/// SYSTEM_FREEING_INITMEM before it.
std::uint32_t told_system_running(std::string_view release);

}  // namespace ringside::guest_linux
