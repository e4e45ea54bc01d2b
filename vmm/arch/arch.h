// The architecture of the guests: everything that the rest of the host needs to know about it, in
// one namespace. A file that needs one part may include the header of that part alone.
//
// A second architecture supplies the same names, in a folder of its own beside x86_64/:
//   registers.def, registers.h   Registers; which is the stack pointer, the frame pointer, the
//                                program counter; their numbers in instructions and for D
//   instructions.h               the breakpoint, jumps, the longest instruction, conditions
//   interrupts.h                 the interrupt table, what the CPU saves when it takes a trap,
//                                hardware breakpoints
//   linux_abi.h                  which registers carry arguments and results, what a frame holds;
//                                how Linux saves registers, what a system call is given; where
//                                Linux maps its own image
//   paging.h                     the page size, entries, which table is in use, the walk
//   elf_header.h                 the header of its ELF files
//   regs.d.in                    R_RAX and others: D's names for the indices of regs[]
// These parts depend on instructions and devices, so it supplies them as well:
//   disasm, guest-shim           the decoder, the stub
//   vmm/linux/stacks             the unwinding of kernel stacks
//   vmm/linux/processes          which registers user code saves (user_unwind.cc)
//   vmm/linux/text               the places that the kernel patches (boot_patches.cc,
//                                patched_sites.cc), the jumps of its kprobes (kprobes.cc)
//   vmm/linux                    debug registers (hardware_breakpoints.cc), where a kernel that
//                                boots maps itself (kernel_boot_watch.cc, kernel_memory.cc)
//   vmm/linux/health             halts, the interrupt flag, the reset vector (vcpus.cc), what a
//                                task that sleeps has saved (tasks.cc)
//   vmm/kvm                      the state of a vCPU
//   vmm/qemu                     the program (qemu-system-x86_64) and its machines
//   vmm/attach                   which processors are accepted (monitored_machine.cc,
//                                vmm_program.cc), register_dump.cc, where the kernel maps all RAM
//                                and starts other CPUs (ram_proof.cc), registers as KVM's threads
//                                show them (process_vcpus.cc, vcpu_threads.cc)
//   vmm/saved                    registers in notes of ELF cores (elf_notes.h, core_writer.cc,
//                                elf_core.cc)
//   vmm/shim                     the code that slot_code.cc and jump_record.cc write, the gate
//                                (shim_install.cc), the registers of a mailbox (trap_server.cc)
//   providers/trap_points         the forms of functions and their returns (function_sites.cc),
//                                retpolines and registers by name (instruction_list.cc,
//                                code_walk.cc), where CPUs come up and wake up
//                                (functions_without_idt.cc), the bytes of a jump and of ftrace's
//                                call (jump_run.cc)
//   providers/instr              loops and repeats that count in a register
//                                (instruction_arguments.cc)
//   providers/sdt                jump labels and calls (site_placement.cc, slice.cc), retpolines
//                                (function_flow.cc)
//   providers/functions, stable  the table of system calls and the prefix of their functions
//                                (syscall_table.cc), counters per CPU (counter_sites.cc)
//   dif/d/library                the prefix of system calls' functions (provider_sysinfo.d)
//   providers/boot               the functions at which a kernel has set itself up (boot_plan.cc)
//   providers/context            the bit of system calls of 32-bit addresses (linux_context.cc),
//                                control registers (linux_stacks.cc)
//   providers/dispatch           which table a stopped vCPU is in (firing_pause.cc)
//   providers/profile            what a breakpoint pushes (before_shim.cc)
//   providers/tracer             the interrupt table, page-table isolation and where modules begin
//                                (deferred_shim.cc)
//   dif/d/types                  sizes and layout of C's types (system_types.cc)
//   dif/d/library                errno.d, signal.d, unistd.d; the registers and CPUs that
//                                procfs_linux.d and sched_linux.d name
// The host's own architecture appears in the instruction `pause`, in loops that wait briefly
// (dif/evaluate, providers/fire, vmm/shim), and in the TSC (vmm/base/host_cpu.h).
// The asserts below state what the callers rely on.
//
// Does not: read memory, or know a machine.
// Fire context: yes.
#pragma once

#include <bit>
#include <type_traits>

#include "vmm/arch/x86_64/instructions.h"
#include "vmm/arch/x86_64/interrupts.h"
#include "vmm/arch/x86_64/linux_abi.h"
#include "vmm/arch/x86_64/paging.h"
#include "vmm/arch/x86_64/registers.h"

namespace ringside::arch {

static_assert(std::is_trivially_copyable_v<Registers>, "snapshots are copied as bytes");
static_assert(std::has_single_bit(kPageSize) && kLargePageSize % kPageSize == 0);
static_assert(kLongestInstruction >= sizeof kBreakpoint, "a breakpoint stands on an instruction");
static_assert(sizeof kBreakpoint == 1, "one store arms a place, whatever runs there meanwhile");
static_assert(condition_holds(kNoCondition, 0), "what depends on no flags always happens");

}  // namespace ringside::arch
