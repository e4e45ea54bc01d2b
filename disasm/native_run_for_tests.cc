#include "disasm/native_run_for_tests.h"

extern "C" {
std::uint64_t native_run_in[17], native_run_out[17];
std::uint64_t native_run_entry, native_run_where, native_run_stack;
alignas(64) std::array<std::byte, kVectorBytes> native_run_vectors_in, native_run_vectors_out,
    native_run_vectors_host;
}

// native_run loads the registers and jumps to the entry.
asm(R"(
  .pushsection .text
  .globl native_run, native_run_next, native_run_taken
native_run:
  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; pushfq
  mov %rsp, native_run_stack(%rip)
  mov $-1, %eax
  mov $-1, %edx
  xsave native_run_vectors_host(%rip)
  movl $0x1f80, native_run_vectors_in + 24(%rip)
  xrstor native_run_vectors_in(%rip)
  mov native_run_in + 8 * 4(%rip), %rsp
  pushq native_run_in + 8 * 16(%rip)
  popfq
  mov native_run_in + 8 * 0(%rip), %rax
  mov native_run_in + 8 * 1(%rip), %rcx
  mov native_run_in + 8 * 2(%rip), %rdx
  mov native_run_in + 8 * 3(%rip), %rbx
  mov native_run_in + 8 * 5(%rip), %rbp
  mov native_run_in + 8 * 6(%rip), %rsi
  mov native_run_in + 8 * 7(%rip), %rdi
  mov native_run_in + 8 * 8(%rip), %r8
  mov native_run_in + 8 * 9(%rip), %r9
  mov native_run_in + 8 * 10(%rip), %r10
  mov native_run_in + 8 * 11(%rip), %r11
  mov native_run_in + 8 * 12(%rip), %r12
  mov native_run_in + 8 * 13(%rip), %r13
  mov native_run_in + 8 * 14(%rip), %r14
  mov native_run_in + 8 * 15(%rip), %r15
  jmp *native_run_entry(%rip)
native_run_next:
  movq $1, native_run_where(%rip)
  jmp 1f
native_run_taken:
  movq $2, native_run_where(%rip)
1:
  mov %rax, native_run_out + 8 * 0(%rip)
  mov %rcx, native_run_out + 8 * 1(%rip)
  mov %rdx, native_run_out + 8 * 2(%rip)
  mov %rbx, native_run_out + 8 * 3(%rip)
  mov %rsp, native_run_out + 8 * 4(%rip)
  mov %rbp, native_run_out + 8 * 5(%rip)
  mov %rsi, native_run_out + 8 * 6(%rip)
  mov %rdi, native_run_out + 8 * 7(%rip)
  mov %r8, native_run_out + 8 * 8(%rip)
  mov %r9, native_run_out + 8 * 9(%rip)
  mov %r10, native_run_out + 8 * 10(%rip)
  mov %r11, native_run_out + 8 * 11(%rip)
  mov %r12, native_run_out + 8 * 12(%rip)
  mov %r13, native_run_out + 8 * 13(%rip)
  mov %r14, native_run_out + 8 * 14(%rip)
  mov %r15, native_run_out + 8 * 15(%rip)
  mov native_run_stack(%rip), %rsp
  pushfq
  popq native_run_out + 8 * 16(%rip)
  cld
  mov $-1, %eax
  mov $-1, %edx
  xsave native_run_vectors_out(%rip)
  xrstor native_run_vectors_host(%rip)
  popfq
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
  ret
  .popsection
)");
