/* The shim: the kernel's #BP handler while ringside traces. For an int3 of ours it hands the
 * registers to the host through a mailbox, rings where there is a doorbell, waits a bounded time,
 * and resumes in the slot that holds the displaced instruction. For a trap point that records it
 * puts them into a ring, and resumes at once. Every other int3 goes on to the
 * kernel's own handler with nothing disturbed. A jump in an int3's stead gets here by a call
 * (mailbox_abi.h); all the rest is the same.
 *
 * Freestanding, position-independent; layout and writers: mailbox_abi.h. Interrupts are off (the
 * gate is an interrupt gate, and a jump's record has turned them off); NMIs and machine checks may
 * nest and then use another mailbox.
 * Uses up to 192 bytes of the trapped stack, or 160 of the one that a jump came with; touches only
 * rax, rcx, rdx, rbx, rsi, rdi, r8 to r14 (restored), no FPU state, no string instructions (so the
 * direction flag does not matter), only kernel mappings (so SMAP and AC do not matter).
 */
#include "guest-shim/mailbox_abi.h"

/* The stack: our four saved registers, and above them the frame that the CPU pushed, or one like it
 * for a jump, whose cs is 0. The word of an int3's cs has room for the way back that a slot wants
 * on the stack: its low half, as the high half is all ones; 0: the slot wants none. For a process's
 * trap it is 1 + 2 * N, where N is by how many bytes the stack pointer is to go down, or
 * SHIM_USER_FRAME. The high half of such a trap's ss has the bits of CR3 that are to be set again
 * at the end. */
#define SAVED_RBX 0
#define SAVED_RDX 8
#define SAVED_RCX 16
#define SAVED_RAX 24
#define FRAME_RIP 32
#define FRAME_CS 40
#define FRAME_WAY_BACK 44
#define FRAME_RFLAGS 48
#define FRAME_RSP 56
#define FRAME_USER_TABLES 68
#define FRAME_BYTES 40
/* Above a jump's frame. */
#define JUMP_RETURN 72
#define JUMP_RFLAGS 80
#define JUMP_RSP 88
/* A jump that records has no frame. Its flags stand where an int3's cs does, and have a bit that is
 * always set, which the kernel's cs (__KERNEL_CS, 0x10) has not. */
#define BARE_RETURN 32
#define BARE_RFLAGS 40
#define BARE_RSP 48
#define BARE_MARK 2

/* While we have the frame of a process's trap, the lowest byte of its cs is this mark, and the way
 * back is not 0. The kernel's cs has neither of the mark's bits that are asked for, and BARE_MARK is
 * none of it. */
#define USER_MARK 0x31
#define IS_USER 1
/* Bytes that finding its trap point saves, below the four registers. */
#define USER_SAVED 40

/* Looks at the mailbox before the wait asks for the time: a PAUSE leaves the translator under TCG
 * and RDTSC is slow everywhere, while an answer comes within a microsecond as a rule. */
#define EAGER_LOOKS 2000

  .section .text
  .code64

/* Where the data part lies, loaded anew wherever it is wanted: registers are few, and the header's
 * line is always near. */
#define DATA shim_base + SHIM_HEADER_DATA(%rip)

/* Makes of the head in rbx how far it lies below the first one. */
  .macro find_head reg
  mov DATA, \reg
  add $SHIM_HEAD_AT(0), \reg
  sub %rbx, \reg
  .endm

/* Makes of the head in rbx the address of its box, less SHIM_BOXES. */
  .macro find_box reg
  find_head \reg
  shl $(SHIM_BOX_SHIFT - SHIM_HEAD_SHIFT), \reg
  add DATA, \reg
  .endm

/* The four that each way in saves first, at SAVED_RBX to SAVED_RAX; the flags stay as they are. */
  .macro save_registers
  push %rax
  push %rcx
  push %rdx
  push %rbx
  .endm
  .macro restore_registers
  pop %rbx
  pop %rdx
  pop %rcx
  pop %rax
  .endm

/* Those of the process, where it had others. From here on nothing but the header's page and the stack
 * may be touched. */
  .macro restore_tables
  mov FRAME_USER_TABLES(%rsp), %ecx
  movl $0, FRAME_USER_TABLES(%rsp)
  test %ecx, %ecx
  jz 1f
  mov %cr3, %rax
  or %rcx, %rax
  mov %rax, %cr3
1:
  .endm

/* Those that the list's entries need beside these. */
  .macro restore_fetchers
  pop %r14
  pop %r13
  pop %r12
  pop %r11
  pop %r10
  pop %r9
  pop %r8
  pop %rdi
  pop %rcx
  .endm

  .globl shim_base
shim_base:
  .long SHIM_MAGIC
  .long SHIM_VERSION
  .long shim_entry - shim_base
  .long shim_end - shim_base
  .fill SHIM_HEADER_SIZE - 16, 1, 0

/* Called by a jump's record, SHIM_JUMP_ENTRY after the header's start; the flags are on the stack. */
shim_jump:
  jmp waiting_jump
  .org shim_base + SHIM_RECORDING_JUMP_ENTRY
  save_registers
  mov BARE_RETURN(%rsp), %rcx
  movslq -SHIM_JUMP_ADDRESS(%rcx), %rdx
  movzbl -SHIM_JUMP_LIST(%rcx), %eax

  /* A record in the ring of this CPU, for the address in rdx, by the fetch list whose number is in
   * eax. Nobody else writes these words: what interrupts us between two instructions here leaves
   * them as they were, but for `head`. rcx: struct shim_ring_words, rbx: the record, rsi: struct
   * shim_list. */
find_ring:
  push %rsi
  lea shim_base + SHIM_FETCH_AT + SHIM_FETCH_LISTS(%rip), %rsi
  mov (%rsi,%rax,8), %rsi
  movslq shim_base + SHIM_HEADER_CPU_NUMBER(%rip), %rcx
  mov %gs:(%rcx), %ecx
  cmp shim_base + SHIM_HEADER_RINGS(%rip), %ecx
  jae no_ring
  shl $SHIM_RING_SHIFT, %rcx
  add shim_base + SHIM_HEADER_RING_CONTROLS(%rip), %rcx
  cmpb $0, SHIM_LIST_TASK_CHECKS(%rsi)
  jne check_task
is_wanted:
  cmpb $0, SHIM_RING_BUSY(%rcx)
  jne nested
ring_found:
  movb $1, SHIM_RING_BUSY(%rcx)
  mov DATA, %rax
  cmpl $0, SHIM_CONTROL_ACTIVE(%rax)
  je late_record
  mov SHIM_RING_HEAD(%rcx), %rbx
  mov %rbx, %rax
  sub SHIM_RING_TAIL(%rcx), %rax
  cmp SHIM_RING_MOST(%rcx), %rax
  ja ring_full
  and SHIM_RING_MOST(%rcx), %rbx
  imul SHIM_RING_RECORD_BYTES(%rcx), %rbx
  add SHIM_RING_DATA(%rcx), %rbx
  mov %rdx, SHIM_RECORD_ADDRESS(%rbx)
  rdtsc
  mov %eax, SHIM_RECORD_TSC(%rbx)
  mov %edx, SHIM_RECORD_TSC + 4(%rbx)

  /* Its task. Where something else stands there, nothing is read. */
  movslq shim_base + SHIM_HEADER_CURRENT(%rip), %rax
  mov %gs:(%rax), %rax
  mov %rax, SHIM_RECORD_TASK(%rbx)
  test %rax, %rax
  jns name_copied
  mov shim_base + SHIM_HEADER_COMM(%rip), %edx
  add %rax, %rdx
  mov (%rdx), %rax
  mov %rax, SHIM_RECORD_COMM(%rbx)
  mov 8(%rdx), %rax
  mov %rax, SHIM_RECORD_COMM + 8(%rbx)
name_copied:
  movzbl SHIM_LIST_COPIES(%rsi), %eax
  test %eax, %eax
  jnz copy_more
publish: /* x86 keeps stores in order */
  mov SHIM_RING_HEAD(%rcx), %rax
  mov %rax, SHIM_RECORD_HEAD(%rbx)
  inc %rax
  mov %rax, SHIM_RING_HEAD(%rcx)
  movb $0, SHIM_RING_BUSY(%rcx)
leave_ring:
  pop %rsi
record_done:
  testb $BARE_MARK, BARE_RFLAGS(%rsp)
  jz return_from_int3
  restore_registers
  ret
return_from_int3:
  cmpl $0, FRAME_WAY_BACK(%rsp)
  jne put_way_back
return_to_slot:
  restore_registers
  iretq

wait_instead: /* in a mailbox, for the address in rdx; a jump begins anew */
  testb $BARE_MARK, BARE_RFLAGS(%rsp)
  jz find_mailbox
  restore_registers
waiting_jump:
  lea -FRAME_BYTES(%rsp), %rsp
  save_registers
  mov JUMP_RETURN(%rsp), %rcx
  movslq -SHIM_JUMP_ADDRESS(%rcx), %rdx
  mov JUMP_RFLAGS(%rsp), %rax
  mov %rax, FRAME_RFLAGS(%rsp)
  lea JUMP_RSP(%rsp), %rax
  mov %rax, FRAME_RSP(%rsp)
  movq $0, FRAME_CS(%rsp)
  jmp find_mailbox

  .globl shim_entry
shim_entry:
  endbr64
  testb $3, 8(%rsp) /* cs */
  jnz from_user
  save_registers
  movl $0, FRAME_WAY_BACK(%rsp)

  /* Address to slot, by the address's low half: the high half must be all ones. On the stack is
   * `armings` from before, below it the saved rsi, whose register has the address. */
look_up:
  mov FRAME_RIP(%rsp), %rcx
  dec %rcx
  movslq %ecx, %rax
  cmp %rcx, %rax
  jne foreign
  mov DATA, %rdx
  push SHIM_CONTROL_ARMINGS(%rdx)
  push %rsi
  mov %ecx, %esi
  mov shim_base + SHIM_HEADER_SLOTS(%rip), %rbx
  mov shim_base + SHIM_HEADER_UNIT_SHIFT(%rip), %ecx
  add $SHIM_BLOCK_SHIFT, %ecx
  mov %esi, %eax
  shr $SHIM_TABLE_SHIFT, %eax
  movzwl (%rbx,%rax,2), %eax
  shl %cl, %eax
  jz no_entry
  add %rbx, %rax
  mov %esi, %edx
  shr $SHIM_PAGE_SHIFT, %edx
  and $(SHIM_PAGES_WORDS - 1), %edx
  movzwl (%rax,%rdx,2), %eax
  shl %cl, %eax
  jz no_entry
  add %rax, %rbx

  /* By halves: how many entries of the block at rbx are not above this address. They are as many as
   * eax says, or up to edx. */
#define ENTRY_SLOT ((1 << SHIM_ENTRY_SLOT_BITS) - 1)
  mov %esi, %ecx
  shl $SHIM_ENTRY_SLOT_BITS, %ecx
  or $ENTRY_SLOT, %ecx
  xor %eax, %eax
  mov (%rbx), %edx
  jmp next_half
look_at_half:
  lea (%rax,%rdx), %esi
  shr $1, %esi
  cmp 4(%rbx,%rsi,4), %ecx
  jb lower_half
  lea 1(%rsi), %eax
  jmp next_half
lower_half:
  mov %esi, %edx
next_half:
  cmp %edx, %eax
  jb look_at_half
  test %eax, %eax
  jz no_entry
  mov (%rbx,%rax,4), %edx /* the last of them */
  xor %edx, %ecx
  shr $SHIM_ENTRY_SLOT_BITS, %ecx
  jnz no_entry
  and $ENTRY_SLOT, %edx
  jz disabled
  mov shim_base + SHIM_HEADER_UNIT_SHIFT(%rip), %ecx
  shl %cl, %edx
  add shim_base + SHIM_HEADER_SLOTS(%rip), %rdx
  pop %rsi
  lea 8(%rsp), %rsp
  mov FRAME_RIP(%rsp), %rcx
  dec %rcx
  mov %rdx, FRAME_RIP(%rsp) /* whatever happens next, resume in the slot */
  movzbl -SHIM_SLOT_LENGTH(%rdx), %eax
  test %eax, %eax
  jz no_way_back
  add %ecx, %eax
  mov %eax, FRAME_WAY_BACK(%rsp)
no_way_back:
  movzbl -SHIM_SLOT_LIST(%rdx), %eax
  mov %rcx, %rdx
  xor $SHIM_SLOT_RECORDS, %al
  jns find_ring

  /* Claim a mailbox, for the address in rdx. Low ones first, so that the host need not look at all
   * of them. */
find_mailbox:
  mov DATA, %rbx
  add $SHIM_HEAD_AT(0), %rbx
  mov $SHIM_CLAIMED, %ecx
claim:
  movzbl (%rbx), %eax
  test %eax, %eax
  jnz next_box
  lock cmpxchgb %cl, (%rbx)
  jne next_box
  mov (%rbx), %rcx /* ours alone: nobody else writes it now */
  add $SHIM_CLAIM, %rcx
  mov %rcx, (%rbx)
  xor %cl, %cl /* rcx from here on: our claim, which `answered` will be equal to */
  mov %rdx, SHIM_HEAD_ADDRESS(%rbx)

  /* After the claim, not before: the host clears `active` and then waits until no mailbox is
   * claimed, so a trap either sees the zero or is seen. */
  mov DATA, %rdx
  cmpl $0, SHIM_CONTROL_ACTIVE(%rdx)
  je late
  mov SHIM_CONTROL_HEARTBEAT(%rdx), %rax
  cmp SHIM_CONTROL_SILENT(%rdx), %rax
  je orphan

  rdtsc
  shl $32, %rdx
  or %rdx, %rax
  mov %rax, SHIM_HEAD_TSC(%rbx)
  mov shim_base + SHIM_HEADER_THIS_CPU_OFF(%rip), %rax
  mov %gs:(%rax), %rax
  mov %rax, SHIM_HEAD_PERCPU(%rbx)
  mov %cr3, %rax
  mov %rax, SHIM_HEAD_CR3(%rbx)
  mov FRAME_RFLAGS(%rsp), %rax
  mov %rax, SHIM_HEAD_RFLAGS(%rbx)
  mov %cs, %eax /* kernel mode has one cs, and an int3 in it leaves ss alone */
  mov %eax, SHIM_HEAD_SEGMENTS(%rbx)
  mov %ss, %eax
  mov %eax, SHIM_HEAD_SEGMENTS + 4(%rbx)
  testb $IS_USER, FRAME_CS(%rsp)
  jz place_known
  mov SHIM_HEAD_ADDRESS(%rbx), %rdx
  movslq SHIM_USER_DISTANCE(%rdx), %rdx
  mov FRAME_RIP(%rsp), %rax
  sub %rdx, %rax
  mov %rax, SHIM_HEAD_SEGMENTS(%rbx)
place_known:
  find_box %rdx
  mov SAVED_RAX(%rsp), %rax
  mov %rax, SHIM_BOXES + 8 * 0(%rdx)
  mov SAVED_RCX(%rsp), %rax
  mov %rax, SHIM_BOXES + 8 * 1(%rdx)
  mov SAVED_RDX(%rsp), %rax
  mov %rax, SHIM_BOXES + 8 * 2(%rdx)
  mov SAVED_RBX(%rsp), %rax
  mov %rax, SHIM_BOXES + 8 * 3(%rdx)
  mov FRAME_RSP(%rsp), %rax
  mov %rax, SHIM_BOXES + 8 * 4(%rdx)
  mov %rbp, SHIM_BOXES + 8 * 5(%rdx)
  mov %rsi, SHIM_BOXES + 8 * 6(%rdx)
  mov %rdi, SHIM_BOXES + 8 * 7(%rdx)
  mov %r8, SHIM_BOXES + 8 * 8(%rdx)
  mov %r9, SHIM_BOXES + 8 * 9(%rdx)
  mov %r10, SHIM_BOXES + 8 * 10(%rdx)
  mov %r11, SHIM_BOXES + 8 * 11(%rdx)
  mov %r12, SHIM_BOXES + 8 * 12(%rdx)
  mov %r13, SHIM_BOXES + 8 * 13(%rdx)
  mov %r14, SHIM_BOXES + 8 * 14(%rdx)
  mov %r15, SHIM_BOXES + 8 * 15(%rdx)

  /* Its task. Where there is none yet, or something else stands there, nothing is read. */
  movslq shim_base + SHIM_HEADER_CURRENT(%rip), %rax
  test %eax, %eax
  jz task_known
  mov %gs:(%rax), %rax
task_known:
  mov %rax, SHIM_BOXES + SHIM_BOX_TASK(%rdx)
  test %rax, %rax
  jns raise
  push %rsi
  mov shim_base + SHIM_HEADER_COMM(%rip), %esi
  add %rax, %rsi
  push (%rsi)
  pop SHIM_BOXES + SHIM_BOX_COMM(%rdx)
  push 8(%rsi)
  pop SHIM_BOXES + SHIM_BOX_COMM + 8(%rdx)
  mov shim_base + SHIM_HEADER_PID(%rip), %esi
  mov (%rax,%rsi), %esi
  mov %esi, SHIM_BOXES + SHIM_BOX_PID(%rdx)
  mov shim_base + SHIM_HEADER_TGID(%rip), %esi
  mov (%rax,%rsi), %esi
  mov %esi, SHIM_BOXES + SHIM_BOX_TGID(%rdx)
  mov shim_base + SHIM_HEADER_START_TIME(%rip), %esi
  mov (%rax,%rsi), %rsi
  mov %rsi, SHIM_BOXES + SHIM_BOX_START_TIME(%rdx)
  pop %rsi
raise: /* x86 keeps stores in order */
  push %rsi
  mov %rcx, %rax
  mov $SHIM_SEALED_BOX_WORDS, %esi
seal_box:
  rol $SHIM_SEAL_TURN, %rax
  add SHIM_BOXES - 8(%rdx,%rsi,8), %rax
  dec %esi
  jnz seal_box
  mov $SHIM_SEALED_HEAD_WORDS, %esi
seal_head:
  rol $SHIM_SEAL_TURN, %rax
  add SHIM_HEAD_ADDRESS - 8(%rbx,%rsi,8), %rax
  dec %esi
  jnz seal_head
  pop %rsi
  mov %rax, SHIM_BOXES + SHIM_BOX_SEAL(%rdx)
  movb $SHIM_RAISED, (%rbx)

  /* The doorbell: whoever runs this vCPU may answer before the next instruction. If nobody does, a
   * port that does not exist swallows the value, and the wait goes on as without. */
  mov DATA, %rdx
  mov SHIM_CONTROL_DOORBELL(%rdx), %edx
  test %edx, %edx
  jz no_bell
  find_head %rax
  shr $SHIM_HEAD_SHIFT, %eax
  out %eax, (%dx)

no_bell:
  mov $EAGER_LOOKS, %eax
eager:
  cmp %rcx, SHIM_HEAD_ANSWERED(%rbx)
  je release
  dec %eax
  jnz eager

  /* The timed wait: rdi is the heartbeat last seen, rsi the TSC when it was new, r8 how many looks
   * are left of it: a TSC may be slowed, or count instructions. */
  push %rsi
  push %rdi
  push %r8
new_heartbeat:
  mov DATA, %rax
  mov SHIM_CONTROL_HEARTBEAT(%rax), %rdi
  mov SHIM_CONTROL_TIMEOUT + 4(%rax), %r8d
  shl $SHIM_WAIT_SHIFT, %r8
  rdtsc
  shl $32, %rdx
  or %rdx, %rax
  mov %rax, %rsi
timed_wait:
  pause
  cmp %rcx, SHIM_HEAD_ANSWERED(%rbx)
  je timed_wait_done
  mov DATA, %rax
  cmp SHIM_CONTROL_HEARTBEAT(%rax), %rdi
  jne new_heartbeat
  rdtsc
  shl $32, %rdx
  or %rdx, %rax
  sub %rsi, %rax
  shr $SHIM_WAIT_SHIFT, %rax
  mov DATA, %rdx
  mov SHIM_CONTROL_TIMEOUT(%rdx), %edx
  cmp %rdx, %rax
  ja silence
  dec %r8
  jnz timed_wait
silence:

  /* The host is gone, or stopped. Take the request back, and only then look whether the answer came
   * just now: XCHG lets the second not pass the first. */
  mov $SHIM_CLAIMED, %eax
  xchg %al, (%rbx)
  cmp %rcx, SHIM_HEAD_ANSWERED(%rbx)
  je timed_wait_done
  mov DATA, %rdx
  mov %rdi, SHIM_CONTROL_SILENT(%rdx)
  find_box %rdx
  mov %rcx, SHIM_BOXES + SHIM_BOX_GIVEN_UP(%rdx)
  incq SHIM_BOXES + SHIM_BOX_ORPHANS(%rdx)
timed_wait_done:
  pop %r8
  pop %rdi
  pop %rsi

release:
  movb $SHIM_FREE, (%rbx)
resume:
  cmpl $0, FRAME_CS(%rsp)
  jne return_from_int3
  restore_registers
  lea FRAME_BYTES(%rsp), %rsp
  ret /* to the record, which restores the flags, and interrupts with them */

  /* Onto the stack that trapped. If the frame lies right below it, the frame and the saved registers
   * move down by a word. */
put_way_back:
  testb $IS_USER, FRAME_CS(%rsp)
  jnz return_to_user
  movslq FRAME_WAY_BACK(%rsp), %rax
  movl $0, FRAME_WAY_BACK(%rsp)
  mov FRAME_RSP(%rsp), %rcx
  sub $8, %rcx
  mov %rcx, FRAME_RSP(%rsp)
  lea FRAME_RIP + FRAME_BYTES(%rsp), %rdx
  cmp %rdx, %rcx
  jae way_is_free
  sub $8, %rsp
  .set moved, 0
  .rept (FRAME_RIP + FRAME_BYTES) / 8
  mov 8 + moved(%rsp), %rdx
  mov %rdx, moved(%rsp)
  .set moved, moved + 8
  .endr
way_is_free:
  mov %rax, (%rcx)
  jmp return_to_slot

orphan:
  find_box %rdx
  incq SHIM_BOXES + SHIM_BOX_ORPHANS(%rdx)
  jmp release
late:
  find_box %rdx
  incq SHIM_BOXES + SHIM_BOX_LATE(%rdx)
  jmp release

nested:
  add $SHIM_RING_NESTED, %rcx
  cmpb $0, SHIM_RING_BUSY(%rcx)
  je ring_found
  incq SHIM_RING_DROPPED(%rcx)
  jmp leave_ring
late_record:
  incq SHIM_RING_LATE(%rcx)
  movb $0, SHIM_RING_BUSY(%rcx)
  jmp leave_ring
ring_full:
  movb $0, SHIM_RING_BUSY(%rcx)
  pop %rsi
  mov DATA, %rax
  cmpl $0, SHIM_CONTROL_FULL_WAITS(%rax)
  jne wait_instead
  incq SHIM_RING_DROPPED(%rcx)
  jmp record_done

  /* The list's checks of the task, the last one first. rbx: three times how many are left, rax: the
   * task. */
#define TASK_CHECK SHIM_LIST_SIZE - SHIM_CHECK_SIZE
check_task:
  movslq shim_base + SHIM_HEADER_CURRENT(%rip), %rax
  mov %gs:(%rax), %rax
  test %rax, %rax
  jns is_wanted
  push %rdi
  movzbl SHIM_LIST_TASK_CHECKS(%rsi), %ebx
  lea (%rbx,%rbx,2), %ebx
next_task_check:
  movzwl TASK_CHECK + SHIM_LOAD_SOURCE(%rsi,%rbx,8), %edi
  mov (%rax,%rdi), %rdi
  and TASK_CHECK + SHIM_CHECK_MASK(%rsi,%rbx,8), %rdi
  cmp TASK_CHECK + SHIM_CHECK_WITH(%rsi,%rbx,8), %rdi
  je is_equal
  testb $SHIM_CHECK_NEGATED, TASK_CHECK + SHIM_LOAD_WORDS(%rsi,%rbx,8)
  jz not_wanted
task_check_holds:
  sub $3, %ebx
  jnz next_task_check
  pop %rdi
  jmp is_wanted
is_equal:
  testb $SHIM_CHECK_NEGATED, TASK_CHECK + SHIM_LOAD_WORDS(%rsi,%rbx,8)
  jz task_check_holds
not_wanted:
  incq SHIM_RING_UNWANTED(%rcx)
  pop %rdi
  jmp leave_ring

  /* The parts that the list asks for in eax, beyond the task's name. */
copy_more:
  test $SHIM_COPY_PERCPU, %al
  jz percpu_copied
  mov shim_base + SHIM_HEADER_THIS_CPU_OFF(%rip), %rdx
  mov %gs:(%rdx), %rdx
  mov %rdx, SHIM_RECORD_PERCPU(%rbx)
percpu_copied:
  test $SHIM_COPY_IDS, %al
  jz ids_copied
  mov SHIM_RECORD_TASK(%rbx), %rdx
  test %rdx, %rdx
  jns ids_copied
  mov shim_base + SHIM_HEADER_PID(%rip), %eax
  mov (%rdx,%rax), %eax
  mov %eax, SHIM_RECORD_PID(%rbx)
  mov shim_base + SHIM_HEADER_TGID(%rip), %eax
  mov (%rdx,%rax), %eax
  mov %eax, SHIM_RECORD_TGID(%rbx)
  mov shim_base + SHIM_HEADER_START_TIME(%rip), %eax
  mov (%rdx,%rax), %rax
  mov %rax, SHIM_RECORD_START_TIME(%rbx)
ids_copied:
  testb $SHIM_COPY_REGISTERS, SHIM_LIST_COPIES(%rsi)
  jz registers_copied
  testb $BARE_MARK, 8 + BARE_RFLAGS(%rsp) /* above the saved rsi, as all of these */
  jnz flags_of_jump
  mov 8 + FRAME_RFLAGS(%rsp), %rax
  mov 8 + FRAME_RSP(%rsp), %rdx
  testb $IS_USER, 8 + FRAME_CS(%rsp)
  jz flags_found
  mov %rax, SHIM_RECORD_RFLAGS(%rbx)
  mov %rdx, SHIM_RECORD_REGS + 8 * 4(%rbx)
  mov SHIM_RECORD_ADDRESS(%rbx), %rdx
  movslq SHIM_USER_DISTANCE(%rdx), %rdx
  mov 8 + FRAME_RIP(%rsp), %rax
  sub %rdx, %rax
  mov %rax, SHIM_RECORD_CS(%rbx)
  jmp segments_known
flags_of_jump:
  mov 8 + BARE_RFLAGS(%rsp), %rax
  lea 8 + BARE_RSP(%rsp), %rdx
flags_found:
  mov %rax, SHIM_RECORD_RFLAGS(%rbx)
  mov %rdx, SHIM_RECORD_REGS + 8 * 4(%rbx)
  mov %cs, %eax /* kernel mode has one cs, and an int3 in it leaves ss alone */
  mov %eax, SHIM_RECORD_CS(%rbx)
  mov %ss, %eax
  mov %eax, SHIM_RECORD_SS(%rbx)
segments_known:
  mov %cr3, %rax
  mov %rax, SHIM_RECORD_CR3(%rbx)
  mov 8 + SAVED_RAX(%rsp), %rax
  mov %rax, SHIM_RECORD_REGS + 8 * 0(%rbx)
  mov 8 + SAVED_RCX(%rsp), %rax
  mov %rax, SHIM_RECORD_REGS + 8 * 1(%rbx)
  mov 8 + SAVED_RDX(%rsp), %rax
  mov %rax, SHIM_RECORD_REGS + 8 * 2(%rbx)
  mov 8 + SAVED_RBX(%rsp), %rax
  mov %rax, SHIM_RECORD_REGS + 8 * 3(%rbx)
  mov %rbp, SHIM_RECORD_REGS + 8 * 5(%rbx)
  mov (%rsp), %rax
  mov %rax, SHIM_RECORD_REGS + 8 * 6(%rbx)
  mov %rdi, SHIM_RECORD_REGS + 8 * 7(%rbx)
  mov %r8, SHIM_RECORD_REGS + 8 * 8(%rbx)
  mov %r9, SHIM_RECORD_REGS + 8 * 9(%rbx)
  mov %r10, SHIM_RECORD_REGS + 8 * 10(%rbx)
  mov %r11, SHIM_RECORD_REGS + 8 * 11(%rbx)
  mov %r12, SHIM_RECORD_REGS + 8 * 12(%rbx)
  mov %r13, SHIM_RECORD_REGS + 8 * 13(%rbx)
  mov %r14, SHIM_RECORD_REGS + 8 * 14(%rbx)
  mov %r15, SHIM_RECORD_REGS + 8 * 15(%rbx)
registers_copied:
  testb $SHIM_COPY_RUNS, SHIM_LIST_COPIES(%rsi)
  jz publish

  /* The list's entries. rsi: the entry, rdi: its run, r8: struct shim_fetch, r9: how many words are
   * left, r10: where the next one goes, r11: its address, r12 and r13: free, r14: not 0 once no
   * check can be judged any more. */
  push %rcx
  push %rdi
  push %r8
  push %r9
  push %r10
  push %r11
  push %r12
  push %r13
  push %r14
  xor %r14d, %r14d
  cmpq $0, SHIM_RECORD_TASK(%rbx)
  setns %r14b
  lea shim_base + SHIM_FETCH_AT(%rip), %r8
  movzwl SHIM_LIST_RUNS(%rsi), %edi
  add %rbx, %rdi
  movzwl SHIM_LIST_ENTRIES(%rsi), %eax
  add %rax, %rsi
next_load:
  movzwl SHIM_LOAD_WORDS(%rsi), %r9d
  test %r9d, %r9d
  jz all_loaded
  btr $14, %r9d /* SHIM_LOAD_STACK */
  jc load_stack
  btr $13, %r9d /* SHIM_LOAD_CHECK */
  jc check
  movzwl SHIM_LOAD_SOURCE(%rsi), %eax
  movslq SHIM_LOAD_OFFSET(%rsi), %r11
  add $SHIM_LOAD_SIZE, %rsi
  test %eax, %eax
  jz source_added
  mov (%rbx,%rax,8), %rax
  add %rax, %r11
  and $7, %eax
  or %eax, %r14d
source_added:
  btr $12, %r9d /* SHIM_LOAD_INDEXED */
  jnc index_added
  movzwl SHIM_LOAD_SOURCE(%rsi), %eax
  mov (%rbx,%rax,8), %rax
  movzbl SHIM_INDEX_LEFT(%rsi), %ecx
  shl %cl, %rax
  movzbl SHIM_INDEX_RIGHT(%rsi), %ecx
  shr %cl, %rax
  add %rax, %r11
  add $SHIM_LOAD_SIZE, %rsi
index_added:
  and $-8, %r11
  lea SHIM_RUN_WORDS(%rdi), %r10
  mov %r11, SHIM_RUN_ADDRESS(%rdi)
  movq $0, (%r10) /* what a later entry finds, should this one fail */
  /* Addresses of the process are in the lower half, all others in the upper one. */
  mov %r11, %rax
  shr $63, %rax
  btr $15, %r9d
  adc $0, %eax
  cmp $1, %eax
  jne run_ends
new_page:
  call find_page
  jc run_ends
copy_word:
  mov (%rax), %rdx
  mov %rdx, (%r10)
  add $8, %rax
  add $8, %r10
  add $8, %r11
  dec %r9d
  jz run_ends
  test $(SHIM_PAGE - 1), %r11d
  jnz copy_word
  jmp new_page
run_ends:
  or %r9d, %r14d /* words that could not be read */
  mov %r11, SHIM_RUN_END(%rdi)
  lea (%r10,%r9,8), %rdi
  jmp next_load
all_loaded:
  restore_fetchers
  jmp publish

check:
  test $SHIM_CHECK_WAITS, %r9b
  jnz judge /* a word that could not be read is 0, and whoever looks at it has a fault */
  test %r14d, %r14d
  jnz check_done
judge:
  movzwl SHIM_LOAD_SOURCE(%rsi), %eax
  mov (%rbx,%rax,8), %rax
  movzbl SHIM_CHECK_LEFT(%rsi), %ecx
  shl %cl, %rax
  movzbl SHIM_CHECK_RIGHT(%rsi), %ecx
  test $SHIM_CHECK_SIGNED, %r9b
  jnz shift_signed
  shr %cl, %rax
  jmp compare
shift_signed:
  sar %cl, %rax
compare:
  and SHIM_CHECK_MASK(%rsi), %rax
  cmp SHIM_CHECK_WITH(%rsi), %rax
  sete %al
  setl %cl
  setb %dl
  test $SHIM_CHECK_LESS, %r9b
  cmovnz %ecx, %eax
  test $SHIM_CHECK_BELOW, %r9b
  cmovnz %edx, %eax
  xor %r9d, %eax /* its lowest bit is SHIM_CHECK_NEGATED */
  test $1, %al
  jz does_not_hold
check_done:
  add $SHIM_CHECK_SIZE, %rsi
  jmp next_load
does_not_hold:
  test $SHIM_CHECK_WAITS, %r9b
  jnz does_not_fit
  restore_fetchers
  incq SHIM_RING_UNWANTED(%rcx)
  movb $0, SHIM_RING_BUSY(%rcx)
  jmp leave_ring

load_stack:
  mov SHIM_RECORD_TASK(%rbx), %rdx
  test %rdx, %rdx
  jns does_not_fit
  mov SHIM_FETCH_TASK_STACK(%r8), %eax
  mov (%rdx,%rax), %rdx
  mov SHIM_RECORD_REGS + 8 * SHIM_REGISTER_RSP(%rbx), %r11
  and $-8, %r11
  mov %r11, %rax
  sub %rdx, %rax
  mov SHIM_FETCH_STACK_BYTES(%r8), %edx
  sub %rax, %rdx /* to its end */
  jbe does_not_fit
  shr $3, %rdx
  cmp %r9, %rdx
  ja does_not_fit
  mov %edx, %r9d
  add $SHIM_LOAD_SIZE, %rsi
  lea SHIM_RUN_WORDS(%rdi), %r10
  mov %r11, SHIM_RUN_ADDRESS(%rdi)
  jmp new_page
does_not_fit:
  restore_fetchers
  mov SHIM_RECORD_ADDRESS(%rbx), %rdx
  movb $0, SHIM_RING_BUSY(%rcx)
  pop %rsi
  jmp wait_instead

  /* rax: where the word at r11 lies in the direct map; the carry flag: nowhere that can be read. */
find_page:
  mov %r11, %rax
  mov SHIM_FETCH_ROOT(%r8), %rdx
  test %r11, %r11
  js find_in_kernel
  mov %cr3, %rdx
find_in_kernel:
  call walk
  jc not_found
  cmp %r11, %rax
  je page_found
  push %rax
  mov SHIM_FETCH_ROOT(%r8), %rdx
  call walk
  pop %rdx
  jc not_found
  cmp %rax, %rdx
  jne not_found
page_found:
  clc
  ret

  /* The same for the address in rax, by the page tables whose root is in rdx. */
walk:
  mov SHIM_FETCH_TOP_SHIFT(%r8), %ecx
  mov %rax, %r12
  add $8, %ecx
  sar %cl, %r12 /* 0 or -1, or no CPU would take it */
  inc %r12
  cmp $1, %r12
  ja not_found
  sub $8, %ecx
walk_down:
  and SHIM_FETCH_FRAMES(%r8), %rdx
  call find_frame
  jc not_found
  mov %rax, %r12
  shr %cl, %r12
  and $511, %r12d
  mov (%rdx,%r12,8), %rdx
  test $1, %dl /* present */
  jz not_found
  cmp $12, %ecx
  je leaf
  test $0x80, %dl /* a large page */
  jnz leaf
  sub $9, %ecx
  jmp walk_down
leaf:
  cmp $30, %ecx
  ja not_found
  mov $1, %r12d
  shl %cl, %r12
  dec %r12
  and %r12, %rax
  not %r12
  and SHIM_FETCH_FRAMES(%r8), %rdx
  and %r12, %rdx
  or %rax, %rdx
  call find_frame
  mov %rdx, %rax
  ret

  /* Makes of the guest-physical address in rdx the one in the direct map; the carry flag: it is not
   * in RAM, and r12d is -1, which nothing else leaves there. */
find_frame:
  mov SHIM_FETCH_RAM_COUNT(%r8), %r12d
  lea SHIM_FETCH_RAM(%r8), %r13
next_range:
  dec %r12d
  js not_found
  cmp (%r13), %rdx
  jb not_in_ram
  cmp 8(%r13), %rdx
  jb frame_found
  add $16, %r13
  jmp next_range
frame_found:
  add SHIM_FETCH_DIRECT_MAP(%r8), %rdx
  clc
  ret
not_in_ram:
  mov $-1, %r12d
not_found:
  stc
  ret

next_box:
  sub $SHIM_HEAD_SIZE, %rbx
  mov DATA, %rax
  add $SHIM_HEADS, %rax
  cmp %rax, %rbx
  jae claim
no_room:
  mov DATA, %rbx
  lock incq SHIM_CONTROL_OVERFLOWS(%rbx)
  jmp resume
no_ring:
  mov DATA, %rbx
  lock incq SHIM_CONTROL_OVERFLOWS(%rbx)
  jmp leave_ring

gone:
  pop %rsi
  pop %rdx
  mov %rcx, FRAME_RIP(%rsp)
  jmp resume

/* Where an entry is disabled the int3 may be the guest's own, or not there any more since this trap
 * began: then no handler would know it, and what stands there now is what is to run. The kernel has
 * just executed that byte, so it can be read. Or it is ours by now: this CPU may have stood still
 * for any time. An int3 of ours goes before its entry does, and no other one has come while
 * `armings` is the same: one that stands after the entry was found disabled is the guest's. So it
 * is where there was no entry. */
disabled:
  mov 16 + FRAME_RIP(%rsp), %rcx
  dec %rcx
  cmpb $0xcc, (%rcx)
  jne gone
no_entry:
  pop %rsi
  pop %rdx
  mov DATA, %rbx
  cmp SHIM_CONTROL_ARMINGS(%rbx), %rdx
  jne look_up

foreign:
  mov DATA, %rbx
  lock incq SHIM_CONTROL_FOREIGN(%rbx)
  restore_registers
pass_on:
  jmp *shim_base + SHIM_HEADER_ORIGINAL(%rip)

  /* A process's. It comes with its own GS, and is found by what its page holds (mailbox_abi.h).
   * rsi: the int3's address, rax: its page in the direct map, edi: its offset there, rbx: struct
   * shim_user_point. Interrupts are off, so no CPU frees the page tables that we read (as
   * gup_fast in the kernel). */
from_user:
  cmpl $0, shim_base + SHIM_HEADER_USER_POINTS(%rip)
  je pass_on
  cmpq $SHIM_USER_CS, 8(%rsp)
  jne pass_on
  cmpq $SHIM_USER_SS, 32(%rsp)
  jne pass_on
  swapgs
  lfence /* nothing is looked up by the process's GS, not even by guess */
  save_registers
  /* The tables of an isolated process have no more of us than the header's page, and this stack. A
   * write to CR3 flushes what it has to (no bit 63). */
  mov %cr3, %rax
  mov shim_base + SHIM_HEADER_USER_TABLES(%rip), %ecx
  and %eax, %ecx
  mov %ecx, FRAME_USER_TABLES(%rsp)
  jz on_kernels_tables
  xor %rcx, %rax
  mov %rax, %cr3
on_kernels_tables:
  movb $USER_MARK, FRAME_CS(%rsp)
  push %rsi
  push %rdi
  push %r8
  push %r12
  push %r13
  mov USER_SAVED + FRAME_RIP(%rsp), %rsi
  dec %rsi
  mov %rsi, %rax
  lea shim_base + SHIM_FETCH_AT(%rip), %r8
  mov %cr3, %rdx
  call walk
  jc no_page
  and $-SHIM_PAGE, %rax
  mov %esi, %edi
  and $(SHIM_PAGE - 1), %edi
  mov %edi, %ecx
  shr $SHIM_USER_LIST_SHIFT, %ecx
  mov shim_base + SHIM_HEADER_USER_POINTS(%rip), %rdx
  lea (%rdx,%rcx,4), %rbx
next_user_point:
  movslq (%rbx), %rbx /* SHIM_USER_NEXT */
  test %rbx, %rbx
  jz no_user_point
  cmp SHIM_USER_OFFSET(%rbx), %di
  jne next_user_point
  movzwl SHIM_USER_CODE(%rbx), %ecx
  mov (%rax,%rcx), %rdx
  and SHIM_USER_MASK(%rbx), %rdx
  cmp SHIM_USER_BYTES(%rbx), %rdx
  jne next_user_point
  mov %rsi, %rcx
  movslq SHIM_USER_DISTANCE(%rbx), %rax
  add %rax, %rsi
  mov %rsi, %rax /* a process may map its page alone: never leave the half that is its own */
  xor %rcx, %rax
  shr $SHIM_USER_REACH, %rax
  jnz out_of_reach
  call end_search
  mov SHIM_USER_DOWN(%rbx), %eax
  lea 1(%rax,%rax), %eax
  mov %eax, FRAME_WAY_BACK(%rsp)
  mov %rbx, %rdx
  movzbl -SHIM_SLOT_LIST(%rdx), %eax
  xor $SHIM_SLOT_RECORDS, %al
  jns find_ring
  jmp find_mailbox

  /* Where no page can be read, the kernel may be moving it, and the process finds it when it tries
   * again. Memory that is not RAM is not ours (find_frame). */
no_page:
  test %r12d, %r12d
  js not_ours
  jmp try_again
no_user_point:
  cmpb $0xcc, (%rax,%rdi)
  je not_ours
try_again: /* no int3 stands there any more */
  call end_search
return_to_user:
  restore_tables
  mov FRAME_WAY_BACK(%rsp), %eax
  shr $1, %eax
  cmp $SHIM_USER_FRAME, %eax
  jne 1f
  mov FRAME_RSP(%rsp), %rbp
  xor %eax, %eax
1:
  sub %rax, FRAME_RSP(%rsp)
  movl $0, FRAME_WAY_BACK(%rsp)
  movl $SHIM_USER_CS, FRAME_CS(%rsp)
  restore_registers
  swapgs
  iretq /* to segments that we know: it cannot fault */
out_of_reach:
  mov %rcx, %rsi
not_ours:
  inc %rsi
  call end_search
  restore_tables
  movb $SHIM_USER_CS, FRAME_CS(%rsp)
  restore_registers
  swapgs
  jmp pass_on

  /* Makes rsi the address at which the process goes on, and restores what the search used. */
end_search:
  pop %rcx
  mov %rsi, USER_SAVED + FRAME_RIP(%rsp)
  pop %r13
  pop %r12
  pop %r8
  pop %rdi
  pop %rsi
  jmp *%rcx

shim_end:
