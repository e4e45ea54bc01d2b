"""Compiles the kernel for teaching, images/teach, to an ELF file with symbols and DWARF.

Used by images/build. Needs cc and ld for x86-64. Does not: run it.
"""

import pathlib
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent / "teach"

# Frame pointers and no tail calls: stacks are easy to follow, and every function ends in its own
# ret. An int3 behind each ret (-mharden-sls) makes room for a breakpoint of two bytes. No SSE: the
# kernel does not save those registers.
FLAGS = ("-std=c11 -m64 -O1 -g -Wall -Wextra -Wpedantic -ffreestanding -fno-pic -fno-pie"
         " -mno-red-zone -mgeneral-regs-only -fno-omit-frame-pointer -fno-optimize-sibling-calls"
         " -mharden-sls=return"
         " -fcf-protection=none -fno-stack-protector -fno-asynchronous-unwind-tables").split()
# User programs live at the bottom of the address space, the kernel at its top.
CODE_MODEL = {"user.c": "-mcmodel=small"}


def sources():
    """All files that the kernel is made of."""
    return sorted(SOURCES.iterdir())


def compile_kernel(work, run=subprocess.check_call):
    """Compiles the kernel in the folder `work`; returns the ELF file's path. `run` starts a tool."""
    objects = []
    for source in sources():
        if source.suffix not in (".c", ".S"):
            continue
        target = work / f"{source.stem}.o"
        model = CODE_MODEL.get(source.name, "-mcmodel=kernel")
        run(["cc", *FLAGS, model, f"-ffile-prefix-map={SOURCES}=teach", "-c", str(source), "-o",
             str(target)])
        objects.append(str(target))
    kernel = work / "vmlinux"
    run(["ld", "-nostdlib", "-static", "-z", "max-page-size=4096", "-z", "noexecstack", "-T",
         str(SOURCES / "teach.ld"), "-o", str(kernel), *objects])
    return kernel
