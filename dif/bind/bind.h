// Binding: a compiled program refers to parts of a kernel by name (Program::kernel_names). Each
// kernel and each boot has its own values for those names. bind() fills in the values of one
// kernel. The same program can be bound to any number of kernels. Binding to the kernel that the
// program was compiled with is no special case, so a saved program takes the same way. The program
// and the kernel may both be hostile: the verifier runs after binding.
#pragma once

#include <string_view>

#include "dif/bind/kernel_names.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::dif {

inline constexpr std::size_t kMostKernelNames = 16 << 10;  // of one program
inline constexpr std::size_t kMostKernelShapes = 4 << 10;  // types of the kernel that it prints

/// A copy of `program` with every value filled in and no name left, for the machine with this name.
/// Clauses keep the descriptions that are for this machine. A clause without such a description
/// does nothing and needs nothing of the kernel. NotFound if the kernel lacks something,
/// Unsupported if it has it in a form that the code cannot work with. The message names that thing,
/// and the line of the source if it is known: "line 3: struct task_struct has no member foo".
/// Invalid when the program's tables make no sense.
Result<Program> bind(const Program& program, KernelNames& kernel, std::string_view machine = {});

/// "struct task_struct's member pids.*.first", "the symbol vmlinux`jiffies": for messages.
std::string describe(const KernelName& name);

}  // namespace ringside::dif
