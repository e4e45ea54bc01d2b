/* The layout shared by the shim (guest) and the host: one region of guest RAM that nobody else
 * uses. C11 and C++; fixed widths; every field names its writer. Compiled, with its asserts, on
 * both sides. Bump SHIM_VERSION on any change; the host refuses a shim image that differs.
 *
 * The parts of the region, each at a page's start. The header tells their addresses and sizes,
 * which vmm/shim/ decides:
 *
 *   code    struct shim_header, instructions       read + execute; SHIM_CODE_SIZE
 *   table   table_entries of 8 bytes               read + execute; the host writes it
 *   slots   displaced instructions, each after     read + execute; the host writes them
 *           what its int3 or jump has replaced
 *   data    struct shim_control, heads, boxes      read + write, no execute; SHIM_DATA_SIZE
 *
 * No word is written by both sides in turn, so the host needs no compare-and-swap and may reach the
 * region by copies. It must read a head before the box and again after it, and write `answered`
 * alone and last. A copy of both at once it may make in either direction: then a box is of the
 * claim that it names, which the guest writes last, and at the end of what it writes of the box.
 */
#ifndef GUEST_SHIM_MAILBOX_ABI_H
#define GUEST_SHIM_MAILBOX_ABI_H

#ifdef __ASSEMBLER__
#define SHIM_U(x) x
#else
#define SHIM_U(x) x##u
#endif

#define SHIM_VERSION SHIM_U(15)
#define SHIM_MAGIC SHIM_U(0x53474e52) /* "RNGS" */

#define SHIM_PAGE SHIM_U(0x1000)
#define SHIM_CODE_SIZE SHIM_PAGE
#define SHIM_MAILBOXES SHIM_U(64)

/* In the data part. Heads count down to where boxes begin, and boxes count up from there: those of
 * the first n mailboxes are one range, so that one copy fetches them. To copy from one page takes
 * less than from two, so those of the first SHIM_NEAR_MAILBOXES, which is more than most machines
 * have vCPUs, lie on one page. */
#define SHIM_HEADS SHIM_U(0x400)
#define SHIM_HEAD_SHIFT 6
#define SHIM_HEAD_SIZE SHIM_U(64) /* 1 << SHIM_HEAD_SHIFT: a cache line */
#define SHIM_BOXES SHIM_U(0x1400)
#define SHIM_BOX_SHIFT 8
#define SHIM_BOX_SIZE SHIM_U(256) /* 1 << SHIM_BOX_SHIFT */
#define SHIM_HEAD_AT(mailbox) (SHIM_BOXES - SHIM_HEAD_SIZE * ((mailbox) + 1))
#define SHIM_BOX_AT(mailbox) (SHIM_BOXES + SHIM_BOX_SIZE * (mailbox))
#define SHIM_NEAR_MAILBOXES SHIM_U(12)
#define SHIM_DATA_SIZE SHIM_U(0x6000)

/* The table is open-addressed: its first entry for an address is
 * (low 32 bits of the address * SHIM_HASH, in 32 bits) * table_entries >> 32, then linear. An entry
 * is key | slot offset << 32, with the offset from the header; key 0 is empty. Entries are never
 * removed, so that no walk breaks off. One with slot offset 0 is disabled: an int3 there is not
 * ours, or no longer; if there is none, a trap that began before resumes at the address itself. An
 * entry is disabled before its int3 is written, and where a jump of ours stands. */
#define SHIM_HASH SHIM_U(0x9e3779b1)

/* A jump that stands in the text in an int3's stead leads to the middle of its record, among the
 * slots: the low half of its address, the bytes of the text that it has replaced, and then
 *   pushfq; cli; call SHIM_JUMP_ENTRY; popfq; what the jump has displaced; a jump back
 * The shim finds the address by where the call returns to. */
#define SHIM_JUMP_BYTES 5
#define SHIM_JUMP_CALL_END 7                                         /* from where the jump leads */
#define SHIM_JUMP_ADDRESS (SHIM_JUMP_CALL_END + SHIM_JUMP_BYTES + 4) /* before the call's end */
#define SHIM_JUMP_ENTRY SHIM_HEADER_SIZE                             /* from the header */

/* An entry in the list of faults, three words among the slots that the host writes. */
#define SHIM_FAULT_NEXT 0   /* address of the next entry; 0: there is none */
#define SHIM_FAULT_SLOT 8   /* address of an instruction in a slot */
#define SHIM_FAULT_PLACE 16 /* where the kernel knows how to mend its fault */

/* The code of two special slots (slot_code.S): its size, and where in it the instruction ends that
 * names the word `left` of struct shim_control, or the word that leads to the first fault. */
#define SHIM_KEXEC_NOTICE_LEFT_END 11
#define SHIM_KEXEC_NOTICE_BYTES 22
#define SHIM_FAULT_SEARCH_FIRST_END 9
#define SHIM_FAULT_SEARCH_BYTES 31

/* The state byte of a head. */
#define SHIM_FREE 0              /* nobody uses the mailbox */
#define SHIM_CLAIMED 1           /* being filled, or going on */
#define SHIM_RAISED 2            /* the host may look, and the guest waits for `answered` */
#define SHIM_CLAIM SHIM_U(0x100) /* one claim, in the head's count */
#define SHIM_WAIT_SHIFT 10       /* both halves of `timeout` are shifted right by so much */

/* Byte offsets for shim.S; asserted against the structs below. */
#define SHIM_HEADER_ORIGINAL 16
#define SHIM_HEADER_THIS_CPU_OFF 24
#define SHIM_HEADER_DATA 32
#define SHIM_HEADER_TABLE 40
#define SHIM_HEADER_TABLE_ENTRIES 48
#define SHIM_HEADER_CURRENT 88
#define SHIM_HEADER_COMM 92
#define SHIM_HEADER_PID 96
#define SHIM_HEADER_TGID 100
#define SHIM_HEADER_SIZE 128
#define SHIM_CONTROL_ACTIVE 0
#define SHIM_CONTROL_HEARTBEAT 8
#define SHIM_CONTROL_TIMEOUT 16
#define SHIM_CONTROL_DOORBELL 24
#define SHIM_CONTROL_ARMINGS 32
#define SHIM_CONTROL_SILENT 64
#define SHIM_CONTROL_LEFT 72
#define SHIM_CONTROL_FOREIGN 128
#define SHIM_CONTROL_OVERFLOWS 136
#define SHIM_HEAD_ANSWERED 8
#define SHIM_HEAD_ADDRESS 16
#define SHIM_HEAD_TSC 24
#define SHIM_HEAD_PERCPU 32
#define SHIM_HEAD_CR3 40
#define SHIM_HEAD_RFLAGS 48
#define SHIM_HEAD_SEGMENTS 56
#define SHIM_BOX_TASK 128
#define SHIM_BOX_COMM 136
#define SHIM_BOX_PID 152
#define SHIM_BOX_TGID 156
#define SHIM_BOX_GIVEN_UP 160
#define SHIM_BOX_CLAIM 168
#define SHIM_BOX_TRAP_BYTES 176 /* what one trap writes of its box */
#define SHIM_BOX_ORPHANS 192
#define SHIM_BOX_LATE 200

#ifndef __ASSEMBLER__

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* At the start of the code. The image carries magic to image_bytes; the host fills in the rest
 * before the guest can reach the shim, and the guest only reads it (the page is not writable for
 * it). Addresses are virtual, as the guest's page tables map them. */
struct shim_header {
  uint32_t magic;         /* image: SHIM_MAGIC */
  uint32_t version;       /* image: SHIM_VERSION */
  uint32_t entry;         /* image: offset of the first instruction of the #BP handler */
  uint32_t image_bytes;   /* image: its own size */
  uint64_t original;      /* host: the kernel's own handler, for traps that are not ours */
  uint64_t this_cpu_off;  /* host: %gs offset of the word that holds the per-cpu base */
  uint64_t data;          /* host: address of struct shim_control; heads and boxes follow it */
  uint64_t table;         /* host: address of the table */
  uint32_t table_entries; /* host: any number, not only powers of two */
  uint32_t page_bytes;    /* host: of the pages that map the region, 4 KiB or 2 MiB */
  uint64_t base;          /* host: address of this header */
  uint64_t region_bytes;  /* host: from `base` on, all parts */
  uint64_t slots;         /* host: address of the slots */
  uint64_t slots_bytes;   /* host */
  /* Where to find the trapping CPU's task, its name and its numbers. Nearly every program asks for
   * them, and to look for them from outside is a look or two more. */
  int32_t current;    /* host: %gs offset of the word that holds it; 0: the shim does not look */
  uint32_t comm;      /* host: offsets in struct task_struct */
  uint32_t pid, tgid; /* host */
  /* For the next tracer, when this one has died: the process that put it here, and when that
   * process began (field 22 of /proc/PID/stat), which its number alone does not tell for ever. The
   * same of the process that ran the machine: a guest that was moved brings its memory to another
   * one, which the first tracer does not trace. */
  uint64_t owner;       /* host; 0: nobody's any more, and nobody but who sleeps there needs it */
  uint64_t owner_start; /* host */
  uint64_t machine;     /* host: number | start << 22; 0: not known */
};

/* One cache line a writer, so that no two of them fight for it. */
struct shim_control {
  uint64_t active;    /* host, and the guest with `left`: 0 lets every trap resume at once, unfired
                         and uncounted as lost */
  uint64_t heartbeat; /* host: counts up while it lives; starts at 1 */
  uint64_t timeout;   /* host: how long to wait for the same heartbeat: TSC ticks | looks << 32 */
  uint64_t doorbell;  /* host: the I/O port to which the shim writes a mailbox's index (32 bits)
                         once it is raised, so that whoever runs the vCPU can answer before the
                         next instruction; 0: nobody to ring. The wait is the same either way */
  uint64_t armings;   /* host: counts up before it writes int3s into the text */
  uint64_t host_line[3];
  uint64_t silent; /* guest: the heartbeat at which it gave up waiting; 0 never */
  uint64_t left;   /* guest, from a slot: 1 once it leaves its kernel for another one. The region is
                      that one's from then on, and the host writes nothing any more */
  uint64_t silent_line[6];
  uint64_t foreign;   /* guest: kernel-mode int3s passed on to the kernel's own handler */
  uint64_t overflows; /* guest: traps of ours that found no free mailbox (resumed unfired) */
  uint64_t counter_line[6];
};

/* A mailbox is a head and a box, of the same index. It has room for a trap from user mode: segments
 * and cr3 tell mode and address space, and two words of the box (task_line) are free. */
struct shim_head {
  uint64_t head;     /* guest: state | count of claims << 8 */
  uint64_t answered; /* host: the claim that it has answered, as in the head but without its state.
                        The guest compares for equality: an answer to a trap that has timed
                        out is not taken for an answer to the next one */
  uint64_t address;  /* guest, as all that follows: of the int3 or jump */
  uint64_t tsc;      /* at entry */
  uint64_t percpu;   /* per-cpu base of the trapping CPU */
  uint64_t cr3;
  uint64_t rflags;
  uint64_t segments; /* cs | ss << 32 */
};

/* Order of shim_box::regs. */
enum shim_register {
  SHIM_RAX,
  SHIM_RCX,
  SHIM_RDX,
  SHIM_RBX,
  SHIM_RSP,
  SHIM_RBP,
  SHIM_RSI,
  SHIM_RDI,
  SHIM_R8,
  SHIM_R9,
  SHIM_R10,
  SHIM_R11,
  SHIM_R12,
  SHIM_R13,
  SHIM_R14,
  SHIM_R15,
  SHIM_REGISTERS
};

/* All guest-written. */
struct shim_box {
  uint64_t regs[SHIM_REGISTERS]; /* enum shim_register, as before it */
  uint64_t task;                 /* `current`; 0: the shim does not know */
  uint64_t comm[2];              /* of that task, as the two that follow; else unspecified */
  uint32_t pid, tgid;
  uint64_t given_up; /* the last claim that was raised and then resumed without an answer; the host
                        may have taken it before, and then it has fired */
  uint64_t claim;    /* whose all before `given_up` is: as in the head, but without its state;
                        written last */
  uint64_t task_line[2];
  uint64_t orphans; /* claims that were resumed without an answer: lost firings */
  uint64_t late;    /* claims that found `active` 0 */
  uint64_t counters_line[6];
};

static_assert(sizeof(struct shim_header) == SHIM_HEADER_SIZE, "shim.S lays it out");
static_assert(offsetof(struct shim_header, original) == SHIM_HEADER_ORIGINAL, "shim.S reads it");
static_assert(offsetof(struct shim_header, this_cpu_off) == SHIM_HEADER_THIS_CPU_OFF,
              "shim.S reads it");
static_assert(offsetof(struct shim_header, data) == SHIM_HEADER_DATA, "shim.S reads it");
static_assert(offsetof(struct shim_header, table) == SHIM_HEADER_TABLE, "shim.S reads it");
static_assert(offsetof(struct shim_header, table_entries) == SHIM_HEADER_TABLE_ENTRIES,
              "shim.S reads it");
static_assert(offsetof(struct shim_header, current) == SHIM_HEADER_CURRENT, "shim.S reads it");
static_assert(offsetof(struct shim_header, comm) == SHIM_HEADER_COMM, "shim.S reads it");
static_assert(offsetof(struct shim_header, pid) == SHIM_HEADER_PID, "shim.S reads it");
static_assert(offsetof(struct shim_header, tgid) == SHIM_HEADER_TGID, "shim.S reads it");
static_assert(offsetof(struct shim_control, active) == SHIM_CONTROL_ACTIVE, "shim.S reads it");
static_assert(offsetof(struct shim_control, heartbeat) == SHIM_CONTROL_HEARTBEAT,
              "shim.S reads it");
static_assert(offsetof(struct shim_control, timeout) == SHIM_CONTROL_TIMEOUT, "shim.S reads it");
static_assert(offsetof(struct shim_control, doorbell) == SHIM_CONTROL_DOORBELL, "shim.S reads it");
static_assert(offsetof(struct shim_control, armings) == SHIM_CONTROL_ARMINGS, "shim.S reads it");
static_assert(offsetof(struct shim_control, silent) == SHIM_CONTROL_SILENT, "shim.S writes it");
static_assert(offsetof(struct shim_control, left) == SHIM_CONTROL_LEFT, "slots write it");
static_assert(offsetof(struct shim_control, foreign) == SHIM_CONTROL_FOREIGN, "shim.S writes it");
static_assert(offsetof(struct shim_control, overflows) == SHIM_CONTROL_OVERFLOWS,
              "shim.S writes it");
static_assert(SHIM_CONTROL_ARMINGS + 8 <= SHIM_CONTROL_SILENT, "the host's line is the host's");
static_assert(sizeof(struct shim_control) <= SHIM_HEADS, "heads follow");
static_assert(SHIM_HEADS % SHIM_HEAD_SIZE == 0, "a head is a cache line");
static_assert(offsetof(struct shim_head, answered) == SHIM_HEAD_ANSWERED, "shim.S reads it");
static_assert(offsetof(struct shim_head, address) == SHIM_HEAD_ADDRESS, "shim.S writes it");
static_assert(offsetof(struct shim_head, tsc) == SHIM_HEAD_TSC, "shim.S writes it");
static_assert(offsetof(struct shim_head, percpu) == SHIM_HEAD_PERCPU, "shim.S writes it");
static_assert(offsetof(struct shim_head, cr3) == SHIM_HEAD_CR3, "shim.S writes it");
static_assert(offsetof(struct shim_head, rflags) == SHIM_HEAD_RFLAGS, "shim.S writes it");
static_assert(offsetof(struct shim_head, segments) == SHIM_HEAD_SEGMENTS, "shim.S writes it");
static_assert(sizeof(struct shim_head) == SHIM_HEAD_SIZE, "shim.S steps by it");
static_assert(1 << SHIM_HEAD_SHIFT == SHIM_HEAD_SIZE, "shim.S makes an index of it");
static_assert(offsetof(struct shim_box, orphans) == SHIM_BOX_ORPHANS, "shim.S writes it");
static_assert(offsetof(struct shim_box, late) == SHIM_BOX_LATE, "shim.S writes it");
static_assert(offsetof(struct shim_box, task) == SHIM_BOX_TASK, "shim.S writes it");
static_assert(offsetof(struct shim_box, comm) == SHIM_BOX_COMM, "shim.S writes it");
static_assert(offsetof(struct shim_box, pid) == SHIM_BOX_PID, "shim.S writes it");
static_assert(offsetof(struct shim_box, tgid) == SHIM_BOX_TGID, "shim.S writes it");
static_assert(offsetof(struct shim_box, given_up) == SHIM_BOX_GIVEN_UP, "shim.S writes it");
static_assert(offsetof(struct shim_box, claim) == SHIM_BOX_CLAIM, "shim.S writes it");
static_assert(offsetof(struct shim_box, task_line) == SHIM_BOX_TRAP_BYTES, "those and no more");
static_assert(SHIM_BOX_CLAIM + 8 == SHIM_BOX_TRAP_BYTES, "a copy from the end begins with it");
static_assert(sizeof(struct shim_box) == SHIM_BOX_SIZE, "shim.S steps by it");
static_assert(1 << SHIM_BOX_SHIFT == SHIM_BOX_SIZE, "shim.S finds it by its head");
static_assert(SHIM_HEAD_AT(SHIM_MAILBOXES - 1) == SHIM_HEADS, "shim.S ends its search there");
static_assert(SHIM_HEAD_AT(SHIM_NEAR_MAILBOXES - 1) / SHIM_PAGE ==
                  (SHIM_BOX_AT(SHIM_NEAR_MAILBOXES) - 1) / SHIM_PAGE,
              "near ones lie on one page");
static_assert(SHIM_BOX_AT(SHIM_MAILBOXES) <= SHIM_DATA_SIZE, "that is all");

#ifdef __cplusplus
extern "C" {
#endif
/* The assembled shim, embedded at build time (guest-shim/embed.py). */
extern const unsigned char shim_image[];
extern const unsigned int shim_image_size;
/* The code of two special slots (guest-shim/slot_code.S). */
extern const unsigned char shim_kexec_notice[SHIM_KEXEC_NOTICE_BYTES];
extern const unsigned char shim_fault_search[SHIM_FAULT_SEARCH_BYTES];
#ifdef __cplusplus
}
#endif

#endif /* __ASSEMBLER__ */
#endif
