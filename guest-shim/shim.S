/* The shim: the kernel's #BP handler while ringside traces. For an int3 of ours it hands the
 * registers to the host through a mailbox, rings where there is a doorbell, waits a bounded time,
 * and resumes in the slot that holds the displaced instruction. Every other int3 goes on to the kernel's own handler with
 * nothing disturbed.
 *
 * Freestanding, position-independent; layout and writers: mailbox_abi.h. Interrupts are off (the
 * gate is an interrupt gate); NMIs and machine checks may nest and then use another mailbox.
 * Uses 32 bytes of the trapped stack, touches only rax, rcx, rdx, rbx (restored), no FPU state,
 * no string instructions (so the direction flag does not matter), only kernel mappings (so
 * SMAP and AC do not matter).
 */
#include "guest-shim/mailbox_abi.h"

/* What the CPU pushed, above our four saved registers. */
#define SAVED_RBX 0
#define SAVED_RDX 8
#define SAVED_RCX 16
#define SAVED_RAX 24
#define FRAME_RIP 32
#define FRAME_CS 40
#define FRAME_RFLAGS 48
#define FRAME_RSP 56
#define FRAME_SS 64

/* Looks at the mailbox before the wait asks for the time: a PAUSE leaves the translator under TCG
 * and RDTSC is slow everywhere, while an answer comes within a microsecond as a rule. */
#define EAGER_LOOKS 2000

  .section .text
  .code64

  .globl shim_base
shim_base:
  .long SHIM_MAGIC
  .long SHIM_VERSION
  .long shim_entry - shim_base
  .long shim_end - shim_base
  .fill SHIM_HEADER_SIZE - 16, 1, 0

  .globl shim_entry
shim_entry:
  endbr64
  testb $3, 8(%rsp) /* cs: user mode has its own GS and is never ours */
  jnz pass_on
  push %rax
  push %rcx
  push %rdx
  push %rbx

  /* Address to slot. Keys are the low halves, so the high half must be all ones. */
  mov FRAME_RIP(%rsp), %rcx
  dec %rcx
  movslq %ecx, %rax
  cmp %rcx, %rax
  jne foreign
  imul $SHIM_HASH, %ecx, %eax
  shr $(32 - SHIM_TABLE_BITS), %eax
  lea shim_table(%rip), %rbx
look_up:
  mov (%rbx,%rax,8), %rdx
  cmp %ecx, %edx
  jne other_key
  shr $32, %rdx
  jz taken_out
  lea shim_base(%rip), %rbx
  add %rbx, %rdx
  mov %rdx, FRAME_RIP(%rsp) /* whatever happens next, resume in the slot */
  mov %rcx, %rdx

  /* Claim a mailbox. Low ones first, so that the host need not look at all of them. */
  lea shim_mailboxes(%rip), %rbx
  mov $SHIM_CLAIMED, %ecx
claim:
  movzbl (%rbx), %eax
  test %eax, %eax
  jnz next_box
  lock cmpxchgb %cl, (%rbx)
  jne next_box
  addq $0x100, (%rbx)
  mov %rdx, SHIM_BOX_ADDRESS(%rbx)

  /* After the claim, not before: the host clears `active` and then waits until no mailbox is
   * claimed, so a trap either sees the zero or is seen. */
  cmpl $0, shim_control + SHIM_CONTROL_ACTIVE(%rip)
  je late
  mov shim_control + SHIM_CONTROL_HEARTBEAT(%rip), %rax
  cmp shim_control + SHIM_CONTROL_SILENT(%rip), %rax
  je orphan

  rdtsc
  shl $32, %rdx
  or %rdx, %rax
  mov %rax, SHIM_BOX_TSC(%rbx)
  mov shim_base + SHIM_HEADER_THIS_CPU_OFF(%rip), %rax
  mov %gs:(%rax), %rax
  mov %rax, SHIM_BOX_PERCPU(%rbx)
  mov %cr3, %rax
  mov %rax, SHIM_BOX_CR3(%rbx)
  mov FRAME_RFLAGS(%rsp), %rax
  mov %rax, SHIM_BOX_RFLAGS(%rbx)
  mov FRAME_CS(%rsp), %eax
  mov %eax, SHIM_BOX_SEGMENTS(%rbx)
  mov FRAME_SS(%rsp), %eax
  mov %eax, SHIM_BOX_SEGMENTS + 4(%rbx)
  mov SAVED_RAX(%rsp), %rax
  mov %rax, SHIM_BOX_REGS + 8 * 0(%rbx)
  mov SAVED_RCX(%rsp), %rax
  mov %rax, SHIM_BOX_REGS + 8 * 1(%rbx)
  mov SAVED_RDX(%rsp), %rax
  mov %rax, SHIM_BOX_REGS + 8 * 2(%rbx)
  mov SAVED_RBX(%rsp), %rax
  mov %rax, SHIM_BOX_REGS + 8 * 3(%rbx)
  mov FRAME_RSP(%rsp), %rax
  mov %rax, SHIM_BOX_REGS + 8 * 4(%rbx)
  mov %rbp, SHIM_BOX_REGS + 8 * 5(%rbx)
  mov %rsi, SHIM_BOX_REGS + 8 * 6(%rbx)
  mov %rdi, SHIM_BOX_REGS + 8 * 7(%rbx)
  mov %r8, SHIM_BOX_REGS + 8 * 8(%rbx)
  mov %r9, SHIM_BOX_REGS + 8 * 9(%rbx)
  mov %r10, SHIM_BOX_REGS + 8 * 10(%rbx)
  mov %r11, SHIM_BOX_REGS + 8 * 11(%rbx)
  mov %r12, SHIM_BOX_REGS + 8 * 12(%rbx)
  mov %r13, SHIM_BOX_REGS + 8 * 13(%rbx)
  mov %r14, SHIM_BOX_REGS + 8 * 14(%rbx)
  mov %r15, SHIM_BOX_REGS + 8 * 15(%rbx)
  movb $SHIM_RAISED, (%rbx) /* last; x86 keeps stores in order */

  /* The doorbell: whoever runs this vCPU may answer before the next instruction. If nobody does, a
   * port that does not exist swallows the value, and the wait goes on as without. */
  mov shim_control + SHIM_CONTROL_DOORBELL(%rip), %edx
  test %edx, %edx
  jz no_bell
  lea shim_mailboxes(%rip), %rcx
  mov %rbx, %rax
  sub %rcx, %rax
  shr $SHIM_MAILBOX_SHIFT, %eax
  out %eax, (%dx)

no_bell:
  mov $EAGER_LOOKS, %eax
eager:
  cmpb $SHIM_ANSWERED, (%rbx)
  je release
  dec %eax
  jnz eager

  /* The patient wait: rcx is the heartbeat last seen, on the stack the TSC when it was new. */
  push %rsi
  push %rdi
new_heartbeat:
  mov shim_control + SHIM_CONTROL_HEARTBEAT(%rip), %rcx
  rdtsc
  shl $32, %rdx
  or %rdx, %rax
  mov %rax, %rsi
patient:
  pause
  cmpb $SHIM_ANSWERED, (%rbx)
  je patient_done
  cmp shim_control + SHIM_CONTROL_HEARTBEAT(%rip), %rcx
  jne new_heartbeat
  rdtsc
  shl $32, %rdx
  or %rdx, %rax
  sub %rsi, %rax
  cmp shim_control + SHIM_CONTROL_PATIENCE(%rip), %rax
  jbe patient

  /* The host is gone, or stopped. Take the request back unless the answer came just now. */
  mov $SHIM_RAISED, %eax
  mov $SHIM_CLAIMED, %edi
  lock cmpxchgb %dil, (%rbx)
  jne patient_done
  mov %rcx, shim_control + SHIM_CONTROL_SILENT(%rip)
  incq SHIM_BOX_ORPHANS(%rbx)
patient_done:
  pop %rdi
  pop %rsi

release:
  movb $SHIM_FREE, (%rbx)
resume:
  pop %rbx
  pop %rdx
  pop %rcx
  pop %rax
  iretq

orphan:
  incq SHIM_BOX_ORPHANS(%rbx)
  jmp release
late:
  incq SHIM_BOX_LATE(%rbx)
  jmp release

next_box:
  add $SHIM_MAILBOX_SIZE, %rbx
  lea shim_mailboxes_end(%rip), %rax
  cmp %rax, %rbx
  jb claim
  lock incq shim_control + SHIM_CONTROL_OVERFLOWS(%rip)
  jmp resume

/* Of an entry that was taken out the int3 may be the guest's own by now, or not there any more since
 * this trap began: then no handler would know it, and what stands there now is what is to run. The
 * kernel has just executed that byte, so it can be read. */
taken_out:
  cmpb $0xcc, (%rcx)
  je foreign
  mov %rcx, FRAME_RIP(%rsp)
  jmp resume

other_key:
  test %edx, %edx
  jz foreign
  inc %eax
  and $(SHIM_TABLE_ENTRIES - 1), %eax
  jmp look_up

foreign:
  lock incq shim_control + SHIM_CONTROL_FOREIGN(%rip)
  pop %rbx
  pop %rdx
  pop %rcx
  pop %rax
pass_on:
  jmp *shim_base + SHIM_HEADER_ORIGINAL(%rip)

shim_end:
