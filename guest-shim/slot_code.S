/* The code that the host puts at the beginning of two special slots, before the displaced
 * instruction (vmm/shim/slot_code.h). It is no part of the shim's image: the host copies it from
 * here and patches the distances to the words that it names.
 *
 * An instruction names such a word relative to %rip. Its displacement here is the word's offset in
 * what it lies in; the host adds the distance there from the instruction's end, which
 * mailbox_abi.h tells it. Each runs in the guest's kernel, on the stack of that, and leaves all registers and
 * flags as they were, but for what it is there to change.
 */
#include "guest-shim/mailbox_abi.h"

  .section .rodata
  .code64

/* A C compiler takes an array of 16 bytes or more to begin at a multiple of 16 (System V ABI for
 * x86-64, 3.1.2, "Aggregates and Unions"). */
  .macro public name
  .balign 16
  .globl \name
  .hidden \name
\name:
  .endm

/* An error where the code is longer than mailbox_abi.h says; slot_code_test.cc looks for gaps. */
  .macro ends name, at
  .org \name + \at
  .endm

/* The guest leaves its kernel: tells the host, and then lets all traps resume at once. MOV to
 * memory touches no register and no flag. Both words are in struct shim_control. */
public shim_kexec_notice
  movq $1, SHIM_CONTROL_LEFT(%rip)
  ends shim_kexec_notice, SHIM_KEXEC_NOTICE_LEFT_END
  movq $0, SHIM_CONTROL_ACTIVE(%rip)
  ends shim_kexec_notice, SHIM_KEXEC_NOTICE_BYTES

/* rdi: where a fault happened. Where that is the slot of an entry in the list of faults, it becomes
 * the place that the entry tells. The list: vmm/shim/slot_code.h. */
public shim_fault_search
  push %rax
  pushfq
  mov 0(%rip), %rax /* the word that leads to the first entry */
  ends shim_fault_search, SHIM_FAULT_SEARCH_FIRST_END
next_entry:
  test %rax, %rax
  jz searched
  cmp SHIM_FAULT_SLOT(%rax), %rdi
  je found
  mov SHIM_FAULT_NEXT(%rax), %rax
  jmp next_entry
found:
  mov SHIM_FAULT_PLACE(%rax), %rdi
searched:
  popfq
  pop %rax
  ends shim_fault_search, SHIM_FAULT_SEARCH_BYTES

  .section .note.GNU-stack, "", @progbits
