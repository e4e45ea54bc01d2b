// The few types that can be found in a kernel without BTF, so that it can be traced by its symbols:
//   structures     VMCOREINFO describes struct page and those of the kernel log
//   PG_reserved    each page of the kernel's text has this flag alone
//   struct mutex   its owner is its first member
//   task_struct    the first tasks show the offsets of the name and the ids
// Nothing is guessed. A type that cannot be proved is left out, and a program that needs it is
// refused with the type's name.
// Used by Kernel. Hostile input: everything is a copy; loops are bounded. Does not: read the types
// of a file (type_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/vmcoreinfo.h"

namespace ringside::guest_linux {

/// Adds these types to `types`. `symbols` are vmlinux's. struct mutex gets the size 0: only one of
/// its members is known.
void add_types_without_btf(const VmcoreInfo& info, const SymbolTable& symbols,
                           const GuestReader& kernel, TypeGraph& types);

/// Byte offsets in struct task_struct.
struct TaskOffsets {
  std::uint32_t comm = 0, pid = 0, tgid = 0, real_parent = 0;
};
/// Finds the offsets by three tasks: the idle task (init_task), which is its own parent, and its
/// children init (pid 1) and kthreadd (pid 2). Empty if the children do not exist yet, or if the
/// tasks do not agree.
std::optional<TaskOffsets> find_task_offsets(const GuestReader& kernel, GuestVirt init_task);

/// Whether these are all types of a kernel, and not only those of add_types_without_btf().
inline bool has_kernel_types(const TypeGraph& types) {
  return types.find(TypeKind::Struct, "task_struct").has_value();
}

/// The value of SYSTEM_RUNNING (enum system_states, include/linux/kernel.h) in this release. Since
/// 5.16 SYSTEM_FREEING_INITMEM comes before it.
std::uint32_t system_running_of(std::string_view release);

}  // namespace ringside::guest_linux
