/* Ways into the kernel and between stacks: interrupts and exceptions, system calls, the switch. */
#define USER_DATA 0x1b
#define USER_CODE 0x23
#define CPU_KERNEL_STACK 8 /* struct cpu in kernel.h */
#define CPU_USER_RSP 16

  .text
  .code64

/* Each vector pushes an error code, or 0 where the CPU pushes none, and its number. */
  .set vector, 0
vectors_begin:
  .rept 256
  .balign 16
  .if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || \
      vector == 29 || vector == 30
  .else
  push $0
  .endif
  push $vector
  jmp interrupt_common
  .set vector, vector + 1
  .endr

  .globl vector_table
  .set vector_table, vectors_begin

interrupt_common:
  testb $3, 24(%rsp) /* cs: from user mode? */
  jz 1f
  swapgs
1:
  push %rax
  push %rbx
  push %rcx
  push %rdx
  push %rsi
  push %rdi
  push %rbp
  push %r8
  push %r9
  push %r10
  push %r11
  push %r12
  push %r13
  push %r14
  push %r15
  cld
  mov %rsp, %rdi
  call interrupt
  .globl leave_kernel
leave_kernel:
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %r11
  pop %r10
  pop %r9
  pop %r8
  pop %rbp
  pop %rdi
  pop %rsi
  pop %rdx
  pop %rcx
  pop %rbx
  pop %rax
  add $16, %rsp
  testb $3, 8(%rsp)
  jz 1f
  swapgs
1:
  iretq

/* rax the number, rdi and rsi the arguments; the CPU put rip into rcx and rflags into r11. A system
 * call may sleep, so what comes back must lie on the task's own stack, not in struct cpu. */
  .globl system_call_entry
  .type system_call_entry, @function
system_call_entry:
  swapgs
  mov %rsp, %gs:CPU_USER_RSP
  mov %gs:CPU_KERNEL_STACK, %rsp
  pushq %gs:CPU_USER_RSP
  push %rcx
  push %r11
  push %rbp
  mov %rsi, %rdx
  mov %rdi, %rsi
  mov %rax, %rdi
  call system_call
  pop %rbp
  pop %r11
  pop %rcx
  pop %rsp
  xor %edx, %edx
  xor %esi, %esi
  xor %edi, %edi
  xor %r8d, %r8d
  xor %r9d, %r9d
  xor %r10d, %r10d
  swapgs
  sysretq

/* void switch_stacks(uint64_t* save_rsp, uint64_t load_rsp): what the callee must keep goes along. */
  .globl switch_stacks
  .type switch_stacks, @function
switch_stacks:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
  int3

/* Where a new task's first switch returns to: its stack holds a struct frame. */
  .globl task_first_entry
  .type task_first_entry, @function
task_first_entry:
  jmp leave_kernel
