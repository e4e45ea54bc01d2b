// The work of the targets of vmm/linux on their bytes, and their first inputs. Beside what the
// sanitizers see, a CHECK fails when a result leaves the bounds that its header promises, or a
// second look at the same memory gives another. Each says how much it understood; 0: nothing, of an
// input that is no first one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ringside::fuzz {

using Inputs = std::vector<std::vector<std::byte>>;

/// RAM of 32 pages, in which a VMCOREINFO and the page tables that it names are looked for.
std::size_t read_vmcoreinfo(std::span<const std::byte> input);
Inputs vmcoreinfo_inputs();

/// The same RAM with all that a kernel is discovered by: symbols, types, per-CPU bases, sites, the
/// modules; its stacks' tables and kprobes.
std::size_t read_kernel(std::span<const std::byte> input);
Inputs kernel_inputs();

/// Where the tables of kallsyms are said to be, and an image of repeated parts; decoded, looked for
/// by shape, and put into a symbol table.
std::size_t read_kallsyms(std::span<const std::byte> input);
Inputs kallsyms_inputs();

/// The kernel's BTF and a module's, and every question that the graph of types answers.
std::size_t read_btf(std::span<const std::byte> input);
Inputs btf_inputs();

/// A module list with its symbols, sites and types.
std::size_t read_modules(std::span<const std::byte> input);
Inputs module_inputs();

/// ORC tables, registers, and a stack to walk.
std::size_t walk_stack(std::span<const std::byte> input);
Inputs stack_inputs();

/// Where text lies and where a slot does, then the text, of which each instruction is decoded and
/// displaced.
std::size_t read_text(std::span<const std::byte> input);
Inputs text_inputs();

/// Tasks, locks, the log, disks and RCU, as a health report reads them, and its diagnosis.
std::size_t read_health(std::span<const std::byte> input);
Inputs health_inputs();

/// Tasks, their mappings, and the names of what they have mapped.
std::size_t read_processes(std::span<const std::byte> input);
Inputs process_inputs();

/// An image that a process has mapped, with its dynamic symbols.
std::size_t read_user_elf(std::span<const std::byte> input);
Inputs user_elf_inputs();

/// A file that the kernel has in memory: functions and static probes.
std::size_t read_user_file(std::span<const std::byte> input);
Inputs user_file_inputs();

/// The DWARF of a file, and each function of it that the input has the address of.
std::size_t read_dwarf(std::span<const std::byte> input);
Inputs dwarf_inputs();

/// A thread, its process's mappings and files, and their unwind tables: its stack is walked.
std::size_t walk_user_stack(std::span<const std::byte> input);
Inputs user_stack_inputs();

}  // namespace ringside::fuzz
