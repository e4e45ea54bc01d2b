/* The layout shared by the shim (guest) and the host: one region of reserved guest RAM.
 * C11 and C++; fixed widths; every field names its writer. Compiled, with its asserts, on both
 * sides. Bump SHIM_VERSION on any change; the host refuses a shim image that differs.
 *
 * The region: SHIM_REGION_SIZE bytes, 2 MiB aligned, mapped by 2 MiB pages at a 2 MiB-aligned
 * virtual address in the kernel image's own region.
 *
 *   0           struct shim_header, code (SHIM_CODE_SIZE)  read + execute
 *   CODE_SIZE   lookup table (SHIM_TABLE_ENTRIES * 8) read + execute (the host writes it)
 *   SLOTS       slots                                 read + execute (the host writes them)
 *   DATA        struct shim_control, mailboxes        read + write, no execute
 */
#ifndef GUEST_SHIM_MAILBOX_ABI_H
#define GUEST_SHIM_MAILBOX_ABI_H

#ifdef __ASSEMBLER__
#define SHIM_U(x) x
#else
#define SHIM_U(x) x##u
#endif

#define SHIM_VERSION SHIM_U(5)
#define SHIM_MAGIC SHIM_U(0x53474e52) /* "RNGS" */

#define SHIM_REGION_SIZE SHIM_U(0x1000000) /* 16 MiB */
#define SHIM_CODE_SIZE SHIM_U(0x1000)
#define SHIM_TABLE_OFFSET SHIM_U(0x200000)
#define SHIM_TABLE_BITS 18
#define SHIM_TABLE_ENTRIES SHIM_U(0x40000) /* 1 << SHIM_TABLE_BITS; 2 MiB of 8-byte entries */
#define SHIM_SLOTS_OFFSET SHIM_U(0x400000)
#define SHIM_SLOTS_SIZE SHIM_U(0xa00000) /* 10 MiB */
#define SHIM_DATA_OFFSET SHIM_U(0xe00000)
#define SHIM_MAILBOX_OFFSET SHIM_U(0xe01000)
#define SHIM_MAILBOX_SHIFT 8
#define SHIM_MAILBOX_SIZE SHIM_U(256) /* 1 << SHIM_MAILBOX_SHIFT */
#define SHIM_MAILBOXES SHIM_U(64)

/* The table is open-addressed: hash = (low 32 bits of the address * SHIM_HASH) >> (32 - BITS),
 * then linear. An entry is key | slot offset << 32; key 0 is empty. Entries stay for ever, so that
 * walks stay whole; one with slot offset 0 was taken out: an int3 there is not ours any more, and
 * where there is none, a trap that began before resumes at the address itself. */
#define SHIM_HASH SHIM_U(0x9e3779b1)

/* The state byte of a mailbox. */
#define SHIM_FREE 0     /* nobody uses the mailbox */
#define SHIM_CLAIMED 1  /* guest: being filled */
#define SHIM_RAISED 2   /* guest: the host may look */
#define SHIM_ANSWERED 3 /* host: the guest may go on */

/* Byte offsets for shim.S; asserted against the structs below. */
#define SHIM_HEADER_THIS_CPU_OFF 24
#define SHIM_HEADER_ORIGINAL 16
#define SHIM_HEADER_SIZE 64
#define SHIM_CONTROL_ACTIVE 0
#define SHIM_CONTROL_HEARTBEAT 8
#define SHIM_CONTROL_PATIENCE 16
#define SHIM_CONTROL_DOORBELL 24
#define SHIM_CONTROL_SILENT 64
#define SHIM_CONTROL_LEFT 72
#define SHIM_CONTROL_FOREIGN 128
#define SHIM_CONTROL_OVERFLOWS 136
#define SHIM_BOX_ADDRESS 8
#define SHIM_BOX_TSC 16
#define SHIM_BOX_PERCPU 24
#define SHIM_BOX_CR3 32
#define SHIM_BOX_RFLAGS 40
#define SHIM_BOX_SEGMENTS 48
#define SHIM_BOX_REGS 64
#define SHIM_BOX_TRAP_BYTES 192 /* what one trap writes: three cache lines */
#define SHIM_BOX_ORPHANS 192
#define SHIM_BOX_LATE 200

#ifndef __ASSEMBLER__

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* At the start of the code page. The image carries magic to image_bytes; the host fills in the
 * rest before the guest can reach the shim, and the guest only reads it (the page is not
 * writable for it). */
struct shim_header {
  uint32_t magic;        /* image: SHIM_MAGIC */
  uint32_t version;      /* image: SHIM_VERSION */
  uint32_t entry;        /* image: offset of the first instruction of the #BP handler */
  uint32_t image_bytes;  /* image: its own size */
  uint64_t original;     /* host: the kernel's own handler, for traps that are not ours */
  uint64_t this_cpu_off; /* host: %gs offset of the word that holds the per-cpu base */
  uint64_t reserved[4];
};

/* One cache line a writer, so that no two of them fight for it. */
struct shim_control {
  uint64_t active;    /* host, and the guest with `left`: 0 lets every trap resume at once, unfired
                         and uncounted as lost */
  uint64_t heartbeat; /* host: counts up while it lives; starts at 1 */
  uint64_t patience;  /* host: TSC ticks to wait for without a change of heartbeat */
  uint64_t doorbell;  /* host: the I/O port to which the shim writes a mailbox's index (32 bits)
                         once it is raised, so that whoever runs the vCPU can answer before the
                         next instruction; 0: nobody to ring. The wait is the same either way */
  uint64_t host_line[4];
  uint64_t silent; /* guest: the heartbeat at which it gave up waiting; 0 never */
  uint64_t left;   /* guest, from a slot: 1 once it leaves its kernel for another one. The region is
                      that one's from then on, and the host writes nothing any more */
  uint64_t silent_line[6];
  uint64_t foreign;   /* guest: kernel-mode int3s passed on to the kernel's own handler */
  uint64_t overflows; /* guest: traps of ours that found no free mailbox (resumed unfired) */
  uint64_t counter_line[6];
};

/* Order of shim_mailbox::regs. */
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

/* All guest-written, except that the host turns RAISED into ANSWERED. */
struct shim_mailbox {
  uint64_t head;    /* state | count of claims << 8. The host answers by a compare-and-swap of the
                       whole word, so it never answers a trap that it has not looked at */
  uint64_t address; /* of the int3 */
  uint64_t tsc;     /* at entry */
  uint64_t percpu;  /* per-cpu base of the trapping CPU */
  uint64_t cr3;
  uint64_t rflags;
  uint64_t segments; /* cs | ss << 32 */
  uint64_t reserved;
  uint64_t regs[SHIM_REGISTERS]; /* enum shim_register, as before the int3 */
  uint64_t orphans;              /* claims that were resumed without an answer: lost firings */
  uint64_t late;                 /* claims that found `active` 0 */
  uint64_t counters_line[6];
};

static_assert(sizeof(struct shim_header) == SHIM_HEADER_SIZE, "shim.S lays it out");
static_assert(offsetof(struct shim_header, original) == SHIM_HEADER_ORIGINAL, "shim.S reads it");
static_assert(offsetof(struct shim_header, this_cpu_off) == SHIM_HEADER_THIS_CPU_OFF,
              "shim.S reads it");
static_assert(offsetof(struct shim_control, active) == SHIM_CONTROL_ACTIVE, "shim.S reads it");
static_assert(offsetof(struct shim_control, heartbeat) == SHIM_CONTROL_HEARTBEAT,
              "shim.S reads it");
static_assert(offsetof(struct shim_control, patience) == SHIM_CONTROL_PATIENCE, "shim.S reads it");
static_assert(offsetof(struct shim_control, doorbell) == SHIM_CONTROL_DOORBELL, "shim.S reads it");
static_assert(offsetof(struct shim_control, silent) == SHIM_CONTROL_SILENT, "shim.S writes it");
static_assert(offsetof(struct shim_control, left) == SHIM_CONTROL_LEFT, "slots write it");
static_assert(offsetof(struct shim_control, foreign) == SHIM_CONTROL_FOREIGN, "shim.S writes it");
static_assert(offsetof(struct shim_control, overflows) == SHIM_CONTROL_OVERFLOWS,
              "shim.S writes it");
static_assert(SHIM_CONTROL_DOORBELL + 8 <= SHIM_CONTROL_SILENT, "the host's line is the host's");
static_assert(sizeof(struct shim_control) <= SHIM_MAILBOX_OFFSET - SHIM_DATA_OFFSET,
              "mailboxes follow");
static_assert(offsetof(struct shim_mailbox, address) == SHIM_BOX_ADDRESS, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, tsc) == SHIM_BOX_TSC, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, percpu) == SHIM_BOX_PERCPU, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, cr3) == SHIM_BOX_CR3, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, rflags) == SHIM_BOX_RFLAGS, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, segments) == SHIM_BOX_SEGMENTS, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, regs) == SHIM_BOX_REGS, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, orphans) == SHIM_BOX_ORPHANS, "shim.S writes it");
static_assert(offsetof(struct shim_mailbox, late) == SHIM_BOX_LATE, "shim.S writes it");
static_assert(SHIM_BOX_REGS + 8 * SHIM_REGISTERS == SHIM_BOX_TRAP_BYTES, "three cache lines");
static_assert(sizeof(struct shim_mailbox) == SHIM_MAILBOX_SIZE, "shim.S steps by it");
static_assert(1 << SHIM_MAILBOX_SHIFT == SHIM_MAILBOX_SIZE, "shim.S makes an index of it");
static_assert(SHIM_MAILBOX_OFFSET + SHIM_MAILBOXES * SHIM_MAILBOX_SIZE <= SHIM_REGION_SIZE,
              "all in the region");
static_assert(SHIM_SLOTS_OFFSET + SHIM_SLOTS_SIZE <= SHIM_DATA_OFFSET, "slots end before data");

#ifdef __cplusplus
extern "C" {
#endif
/* The assembled shim, embedded at build time (guest-shim/embed.py). */
extern const unsigned char shim_image[];
extern const unsigned int shim_image_size;
#ifdef __cplusplus
}
#endif

#endif /* __ASSEMBLER__ */
#endif
