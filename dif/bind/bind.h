// Binding: a compiled program names what it contains of a kernel (Program::kernel_names), and each
// kernel and each boot has its own values for those names. bind() makes the program for one of
// them. The same compiled program can be bound to any number of kernels. The kernel that it was
// compiled with is bound to like any other, so a saved program takes the same way.
// A program's bytes may be hostile, and so may the kernel: the verifier comes after binding.
#pragma once

#include <string_view>

#include "dif/bind/kernel_names.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::dif {

inline constexpr std::size_t kMostKernelNames = 16 << 10;  // of one program
inline constexpr std::size_t kMostKernelShapes = 4 << 10;  // types of the kernel that it prints

/// A copy with every value filled in and no name left, for the machine of this name: clauses keep
/// the descriptions that are for it, and one without any does nothing and needs nothing of the
/// kernel. NotFound when the kernel lacks something,
/// Unsupported when it has it in a form that the code cannot work with; the message names that, and
/// the line of the source where it is known: "line 3: struct task_struct has no member foo".
/// Invalid when the program's tables make no sense.
Result<Program> bind(const Program& program, KernelNames& kernel, std::string_view machine = {});

/// "struct task_struct's member pids.*.first", "the symbol vmlinux`jiffies": for messages.
std::string describe(const KernelName& name);

}  // namespace ringside::dif
