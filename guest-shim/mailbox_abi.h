/* The layout that the shim (in the guest) and the host share: one region of guest RAM that nobody
 * else uses. C11 and C++; fixed widths; the comment of each field names its writer. Both sides
 * compile this file with its asserts. Bump SHIM_VERSION on any change; the host refuses a shim
 * image of another version.
 *
 * The region has these parts, each at the start of a page. vmm/shim/ decides their addresses and
 * sizes, and the header has them:
 *
 *   code    struct shim_header, instructions       read + execute; SHIM_CODE_SIZE
 *           then, where there are rings,             the same; the host writes it
 *           struct shim_fetch
 *   slots   the table; then, in any order, the     read + execute; the host writes them
 *           blocks that it leads to, displaced
 *           instructions, records of jumps, lists
 *   data    struct shim_control, heads, boxes      read + write, no execute; SHIM_DATA_SIZE
 *           then, where there are any, rings         the same
 *
 * Each word has one writer, so the host needs no compare-and-swap and may reach the region by
 * copies. The host reads a head, then the box, then the head again. It writes `answered` alone and
 * last. It may also copy heads and boxes in one call, whose loads come in any order: a processor's
 * string instruction promises none. So a box ends with a seal, a sum over all that the guest has
 * written for the trap: a copy whose sum is another one is of several moments, and is made anew.
 */
#ifndef GUEST_SHIM_MAILBOX_ABI_H
#define GUEST_SHIM_MAILBOX_ABI_H

#ifdef __ASSEMBLER__
#define SHIM_U(x) x
#else
#define SHIM_U(x) x##u
#endif

#define SHIM_VERSION SHIM_U(26)
#define SHIM_MAGIC SHIM_U(0x53474e52) /* "RNGS" */

#define SHIM_PAGE SHIM_U(0x1000)
#define SHIM_CODE_SIZE SHIM_PAGE
#define SHIM_MAILBOXES SHIM_U(64)

/* In the data part. Heads lie below SHIM_BOXES, the first one highest; boxes lie above it, the
 * first one lowest. So the heads and boxes of the first n mailboxes are one range, and one copy
 * fetches them. A copy from one page is quicker than one from two pages. So the heads and boxes of
 * the first SHIM_NEAR_MAILBOXES lie on one page; most machines have fewer vCPUs than that. */
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

/* Rings. A trap point that records does not wait for the host: its trap goes into the ring of its
 * CPU, as the mailbox would have it, and the guest goes on. Each CPU has a struct shim_ring, by the
 * kernel's own number; they lie one after the other, behind the mailboxes. Each has two rings. A
 * trap inside of a trap (in an NMI or a machine check) finds the first one busy and takes the
 * second.
 *
 * `head` and `tail` count records and only grow. Record n lies at (n & most) * record_bytes. It is
 * a struct shim_record, whose `head` is n, and then what its fetch list names.
 * The guest writes it, then `head`; the host copies it, then writes `tail`. A full ring drops the
 * trap and counts it, or lets it wait in a mailbox (`full_waits`). The guest reads its TSC while
 * `busy` is set. So once the host has seen `busy` clear, all that will come into the ring has a
 * later TSC than that moment. */
#define SHIM_RING_SHIFT 8
#define SHIM_RING_SIZE SHIM_U(256)   /* 1 << SHIM_RING_SHIFT */
#define SHIM_RING_NESTED 128         /* the second ring of a CPU, in its struct shim_ring */
#define SHIM_RECORD_SIZE SHIM_U(128) /* the least that a record has; a power of two, as all */
#define SHIM_REGISTER_RSP 4          /* of enum shim_register */

/* Fetch lists. Each trap point that records has one, which says what the guest copies into the
 * record: a struct shim_list, the checks of the task, and then entries.
 *
 * Memory in records. A clause may need words of the guest's memory, which may have changed when it
 * is evaluated. The guest copies what the list names into the record, as runs of words. They begin
 * behind the registers or, where these are left out, in their place. The entries are struct
 * shim_load, up to one without words. Each says where a run begins: at an offset from a word of the
 * record itself. That may be a register, the task, or the first word of an earlier run, so a list
 * can follow pointers. A number out of another word of the record may be added, as a kernel's
 * sk_buff has it, whose headers are distances from its buffer.
 *
 * The guest looks every address up in its page tables, so no load can fault. It looks user
 * addresses up in the tables that CR3 names, and all others in the kernel's. It reads a page at its
 * address in the direct map (Documentation/arch/x86/x86_64/mm.rst), because another CPU may unmap
 * the other address at any moment. Some pages are not in the direct map (memfd_secret, KFENCE), so
 * that address is looked up, too. No frame outside `ram` is read: it could be a device. A run ends
 * where a page cannot be read.
 *
 * A stack is copied whole, as its last entry, or not at all: a part of it would be a wrong stack.
 * If the record has no room for it, or if the CPU is on another stack (an interrupt's), the trap is
 * not recorded, but waits in a mailbox.
 *
 * Between the loads there may be checks (struct shim_check), which compare a word of the record
 * with a constant. Where one does not hold, the trap is not recorded: no predicate would be true.
 * None is judged if the task is not known, or once a load has failed or its base was not aligned.
 * None compares what an entry with a struct shim_index has copied, since that number may be any.
 * Those that compare 8 bytes of the task come first, and are judged before the guest looks for a
 * ring: then a trap whose predicate is false costs the least.
 *
 * The lists lie among the slots, where the guest cannot write. */
#define SHIM_LISTS SHIM_U(128) /* number 0 copies registers and ids, and no memory */
/* In `copies` of struct shim_list: */
#define SHIM_COPY_IDS 1              /* pid, tgid and start_time */
#define SHIM_COPY_REGISTERS 2        /* cr3 to regs */
#define SHIM_COPY_RUNS 4             /* the list has entries */
#define SHIM_COPY_PERCPU 8           /* percpu */
#define SHIM_FETCH_AT SHIM_CODE_SIZE /* struct shim_fetch, from the header */
#define SHIM_RAM_RANGES 16
/* In `words`. */
#define SHIM_LOAD_USER SHIM_U(0x8000) /* the address is the process's */
#define SHIM_LOAD_STACK \
  SHIM_U(0x4000) /* all of the task's kernel stack, from its stack pointer on */
#define SHIM_LOAD_CHECK \
  SHIM_U(0x2000) /* not a load, but a struct shim_check, which compares as these bits say: */
#define SHIM_LOAD_INDEXED SHIM_U(0x1000) /* a struct shim_index follows the entry */
#define SHIM_CHECK_NEGATED SHIM_U(1)     /* holds if the comparison is false */
#define SHIM_CHECK_LESS SHIM_U(2)        /* signed; without it and the next: equal */
#define SHIM_CHECK_BELOW SHIM_U(4)       /* unsigned */
#define SHIM_CHECK_SIGNED SHIM_U(8)      /* the shift to the right keeps the sign */
#define SHIM_CHECK_WAITS SHIM_U(16)      /* the trap waits unless it holds; always judged */

/* The table leads from an address of a trap point to its slot, as page tables would. It lies at the
 * beginning of the slots and has a word of 16 bits for each 2 MiB of the last 4 GiB of addresses:
 * where the words of its pages are, again of 16 bits, which say where the page's block is. Both are
 * distances from the table's beginning, in units of 8 << unit_shift bytes; 0: there are none.
 *
 * A block is a count and as many entries, all of 32 bits, sorted. An entry's highest 12 bits are
 * the address in the page, the others say where the slot is, as a distance from the table's
 * beginning in units of 1 << unit_shift bytes. 0 is a disabled entry:
 * an int3 at its address is not ours, or not ours any more. If there is no int3, a trap that began
 * earlier resumes at the address itself. An entry is disabled until its int3 is written, and while
 * a jump of ours stands there. Entries are never removed. A page that gets more of them has a new
 * block, and the old one stays as it is, because a CPU may be looking there.
 *
 * Before each slot are three bytes: SHIM_SLOT_RECORDS with the number of the fetch list if its trap
 * points record; the length of its instruction, if that ends with a return; and the first byte of
 * the instruction, which the int3 replaces.
 *
 * A slot that ends with a return serves all trap points with the same instruction: the way back,
 * behind the instruction in the text, is on the stack when it begins. In the others a jump follows
 * the instruction. */
#define SHIM_TABLE_WORDS 2048
#define SHIM_TABLE_SHIFT 21
#define SHIM_PAGES_WORDS 512
#define SHIM_PAGE_SHIFT 12
#define SHIM_BLOCK_SHIFT 3 /* more than unit_shift */
#define SHIM_ENTRY_SLOT_BITS 20
#define SHIM_SLOT_HEADER 3
#define SHIM_SLOT_LIST 3 /* these three: so far before the slot */
#define SHIM_SLOT_LENGTH 2
#define SHIM_SLOT_REPLACED 1
#define SHIM_SLOT_RECORDS SHIM_U(0x80)

/* A jump that stands in the text instead of an int3 leads into its record, among the slots. The
 * record is: the number of its fetch list (a byte), the low half of the jump's address, the bytes
 * of text that the jump replaced, and then, where the jump leads, pushfq; cli; call
 * SHIM_JUMP_ENTRY; popfq; the displaced instructions; a jump back The return address of the call
 * tells the shim which record it is. Where the trap point records into a ring, the call leads to
 * SHIM_RECORDING_JUMP_ENTRY. */
#define SHIM_JUMP_BYTES 5
#define SHIM_JUMP_CALL_END 7                                         /* from where the jump leads */
#define SHIM_JUMP_ADDRESS (SHIM_JUMP_CALL_END + SHIM_JUMP_BYTES + 4) /* before the call's end */
#define SHIM_JUMP_LIST (SHIM_JUMP_ADDRESS + 1)
#define SHIM_JUMP_ENTRY SHIM_HEADER_SIZE /* from the header */
#define SHIM_RECORDING_JUMP_ENTRY (SHIM_JUMP_ENTRY + 8)

/* Trap points in the text of processes. Such text is at other addresses in each process, and the
 * kernel may move its pages. So the guest knows a trap point by what its page holds: an int3 at
 * this offset, and some bytes of ours, or of the text, at another one. The displaced instruction
 * runs in the same page, in bytes between two functions, and the host writes it there. Programs of
 * Go have no such bytes: there the stub does what the instruction does, or the process goes on at
 * another instruction of the text that does the same.
 *
 * Each has a struct shim_user_point in place of a slot, with the same three bytes before it. Its
 * address is the trap point's name, in mailboxes and records, too. They are in as many lists as
 * there are words in a page, by the word that the int3 lies in; the low halves of the addresses of
 * the first ones lie together (`user_points`). None is ever taken out of its list. */
#define SHIM_USER_LIST_SHIFT 2
#define SHIM_USER_LISTS SHIM_U(0x400)
#define SHIM_USER_SLOT_BYTES 32
#define SHIM_USER_REACH 47 /* no process goes on in another part of this many bits of address */
#define SHIM_USER_NOWHERE SHIM_U(0xffff) /* as its offset: it is not used any more */
/* The segments of a process of 64 bits (__USER_CS, __USER_DS; arch/x86/include/asm/segment.h).
 * A trap point of any other is none of ours. */
#define SHIM_USER_CS 0x33
#define SHIM_USER_SS 0x2b

/* An entry in the list of faults: three words among the slots, written by the host. */
#define SHIM_FAULT_NEXT 0   /* address of the next entry; 0: this is the last */
#define SHIM_FAULT_SLOT 8   /* address of an instruction in a slot */
#define SHIM_FAULT_PLACE 16 /* its own address, which is in the kernel's exception table */

/* The code of two special slots (slot_code.S): its size, and the end of the instruction in it that
 * uses a word elsewhere: `left` of struct shim_control, or the word with the first fault. */
#define SHIM_KEXEC_NOTICE_LEFT_END 11
#define SHIM_KEXEC_NOTICE_BYTES 22
#define SHIM_FAULT_SEARCH_FIRST_END 9
#define SHIM_FAULT_SEARCH_BYTES 31

/* The state byte of a head. */
#define SHIM_FREE 0              /* nobody uses the mailbox */
#define SHIM_CLAIMED 1           /* being filled, or going on */
#define SHIM_RAISED 2            /* the host may read it; the guest waits for `answered` */
#define SHIM_CLAIM SHIM_U(0x100) /* one claim, in the head's count */
#define SHIM_WAIT_SHIFT 10       /* both halves of `timeout` are in units of 1 << this */

/* Byte offsets for shim.S; asserted against the structs below. */
#define SHIM_HEADER_ORIGINAL 16
#define SHIM_HEADER_THIS_CPU_OFF 24
#define SHIM_HEADER_DATA 32
#define SHIM_HEADER_SLOTS 40
#define SHIM_HEADER_UNIT_SHIFT 48
#define SHIM_HEADER_CURRENT 80
#define SHIM_HEADER_COMM 84
#define SHIM_HEADER_PID 88
#define SHIM_HEADER_TGID 92
#define SHIM_HEADER_CPU_NUMBER 120
#define SHIM_HEADER_RINGS 124
#define SHIM_HEADER_RING_CONTROLS 128
#define SHIM_HEADER_START_TIME 136
#define SHIM_HEADER_FULL_LIST 144
#define SHIM_HEADER_LEAST_LIST 152
#define SHIM_HEADER_USER_TABLES 164
#define SHIM_USER_TABLES 0x1800 /* there, where the guest isolates page tables */
#define SHIM_HEADER_USER_POINTS 184 /* the only word that changes while the shim is there */
#define SHIM_HEADER_SIZE 192
#define SHIM_USER_NEXT 0
#define SHIM_USER_OFFSET 4
#define SHIM_USER_CODE 6
#define SHIM_USER_DISTANCE 8
#define SHIM_USER_MASK 16
#define SHIM_USER_BYTES 24
#define SHIM_USER_DOWN 52
#define SHIM_USER_FRAME 1 /* no frame has so few bytes */
#define SHIM_CONTROL_ACTIVE 0
#define SHIM_CONTROL_HEARTBEAT 8
#define SHIM_CONTROL_TIMEOUT 16
#define SHIM_CONTROL_DOORBELL 24
#define SHIM_CONTROL_ARMINGS 32
#define SHIM_CONTROL_FULL_WAITS 40
#define SHIM_CONTROL_SILENT 64
#define SHIM_CONTROL_LEFT 72
#define SHIM_CONTROL_FOREIGN 128
#define SHIM_CONTROL_OVERFLOWS 136
#define SHIM_RING_HEAD 0
#define SHIM_RING_DROPPED 8
#define SHIM_RING_BUSY 16
#define SHIM_RING_LATE 24
#define SHIM_RING_UNWANTED 32
#define SHIM_RING_TAIL 64
#define SHIM_RING_MOST 72
#define SHIM_RING_DATA 80
#define SHIM_RING_RECORD_BYTES 88
#define SHIM_FETCH_ROOT 0
#define SHIM_FETCH_DIRECT_MAP 8
#define SHIM_FETCH_FRAMES 16
#define SHIM_FETCH_TOP_SHIFT 24
#define SHIM_FETCH_RAM_COUNT 28
#define SHIM_FETCH_RAM 32
#define SHIM_FETCH_LISTS 288
#define SHIM_FETCH_TASK_STACK 1312
#define SHIM_FETCH_STACK_BYTES 1316
#define SHIM_LIST_COPIES 0
#define SHIM_LIST_TASK_CHECKS 1
#define SHIM_LIST_RUNS 2
#define SHIM_LIST_ENTRIES 4
#define SHIM_LIST_SIZE 8
#define SHIM_LOAD_SOURCE 0
#define SHIM_LOAD_WORDS 2
#define SHIM_LOAD_OFFSET 4
#define SHIM_LOAD_SIZE 8
#define SHIM_INDEX_LEFT 2
#define SHIM_INDEX_RIGHT 3
#define SHIM_CHECK_LEFT 4
#define SHIM_CHECK_RIGHT 5
#define SHIM_CHECK_MASK 8
#define SHIM_CHECK_WITH 16
#define SHIM_CHECK_SIZE 24
#define SHIM_RUN_ADDRESS 0
#define SHIM_RUN_END 8
#define SHIM_RUN_WORDS 16
#define SHIM_RECORD_HEAD 0
#define SHIM_RECORD_ADDRESS 8
#define SHIM_RECORD_TSC 16
#define SHIM_RECORD_PERCPU 24
#define SHIM_RECORD_TASK 32
#define SHIM_RECORD_COMM 40
#define SHIM_RECORD_PID 56
#define SHIM_RECORD_TGID 60
#define SHIM_RECORD_START_TIME 64
#define SHIM_RECORD_CR3 72 /* also where the runs begin, if no registers are copied */
#define SHIM_RECORD_RFLAGS 80
#define SHIM_RECORD_CS 88
#define SHIM_RECORD_SS 92
#define SHIM_RECORD_REGS 96
#define SHIM_RECORD_RUNS 224 /* where they begin else */
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
#define SHIM_BOX_START_TIME 160
#define SHIM_BOX_GIVEN_UP 168
#define SHIM_BOX_SEAL 176
#define SHIM_SEALED_BOX_WORDS 21
#define SHIM_SEALED_HEAD_WORDS 6
#define SHIM_SEAL_TURN 7
#define SHIM_BOX_TRAP_BYTES 184 /* what one trap writes of its box */
#define SHIM_BOX_ORPHANS 192
#define SHIM_BOX_LATE 200

#ifndef __ASSEMBLER__

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* The beginning of a fetch list, host-written. */
struct shim_list {
  uint8_t copies;      /* SHIM_COPY_ bits */
  uint8_t task_checks; /* how many struct shim_check follow at once, before the entries. `source` of
                          these is an offset in the task, of 8 bytes. They compare for equality */
  uint16_t runs;       /* where the runs begin in the record */
  uint16_t entries;    /* where the entries begin, from here */
  uint16_t unused;
};

/* At the start of the code. The image has the fields from magic to image_bytes. The host fills in
 * the rest before the guest can reach the shim. The guest cannot write this page. Addresses are
 * virtual, as the guest's page tables map them. */
struct shim_header {
  uint32_t magic;        /* image: SHIM_MAGIC */
  uint32_t version;      /* image: SHIM_VERSION */
  uint32_t entry;        /* image: offset of the first instruction of the #BP handler */
  uint32_t image_bytes;  /* image: its own size */
  uint64_t original;     /* host: the kernel's own handler, for traps that are not ours */
  uint64_t this_cpu_off; /* host: %gs offset of the word that holds the per-cpu base */
  uint64_t data;         /* host: address of struct shim_control; heads and boxes follow it */
  uint64_t slots;        /* host: address of the slots, which begin with the table */
  uint32_t unit_shift;   /* host: of distances in the table */
  uint32_t page_bytes;   /* host: of the pages that map the region, 4 KiB or 2 MiB */
  uint64_t base;         /* host: address of this header */
  uint64_t region_bytes; /* host: from `base` on, all parts */
  uint64_t slots_bytes;  /* host */
  /* Where the shim finds the task of the trapping CPU, its name and its ids. Nearly every program
   * uses them, and for the host each would take one or two reads more. */
  int32_t current;    /* host: %gs offset of the word that holds it; 0: the shim does not look */
  uint32_t comm;      /* host: offsets in struct task_struct */
  uint32_t pid, tgid; /* host */
  /* For the next tracer, if this one dies: the process that installed the shim, and the start time
   * of that process (field 22 of /proc/PID/stat), because process ids are reused. `machine` has the
   * same of the process that ran the machine: a migrated guest brings its memory to another
   * process, which the first tracer does not trace. */
  uint64_t owner;         /* host; 0: no owner any more; only tasks that sleep in a slot need it */
  uint64_t owner_start;   /* host */
  uint64_t machine;       /* host: number | start << 22; 0: not known */
  int32_t cpu_number;     /* host: %gs offset of the word that holds the CPU's number */
  uint32_t rings;         /* host: how many CPUs have rings; 0: no trap point records */
  uint64_t ring_controls; /* host: address of the first struct shim_ring */
  uint32_t start_time;    /* host: as pid and tgid, of when it was forked */
  uint32_t padding;
  struct shim_list full_list;  /* host: number 0 */
  struct shim_list least_list; /* host: of numbers that no trap point has; copies nothing */
  uint32_t trap_points;        /* host: for how many the parts were measured; 0: as many as fit */
  /* host: bits of CR3 that tell the tables of a process in user mode from those that it has in the
   * kernel (PTI_USER_PGTABLE_AND_PCID_MASK of arch/x86/entry/calling.h); 0: they are the same */
  uint32_t user_tables;
  uint32_t unused[4];
  uint64_t user_points; /* host: address of the first words of the lists of struct shim_user_point;
                           0: there are none, and no trap of a process is ours */
};

/* A trap point in the text of processes, host-written. */
struct shim_user_point {
  uint32_t next;      /* low half of the address of the next one in its list; 0: this is the last */
  uint16_t offset;    /* of the int3 in its page, or SHIM_USER_NOWHERE */
  uint16_t code;      /* offset in the page of 8 bytes that tell whether it is ours */
  int32_t distance;   /* from the int3 to where the process goes on */
  uint32_t semaphore; /* for the host: offset in the file of a counter of 2 bytes that is one higher
                         while the trap point is there; 0: none */
  uint64_t mask;      /* of these bytes */
  uint64_t bytes;     /* as they are, masked */
  /* For the host: where it stands, and what to put back. */
  uint64_t inode; /* address of the file's struct inode */
  uint64_t page;  /* which page of the file */
  uint16_t slot;  /* offset in the page of what the host has written for the instruction */
  uint16_t slot_bytes;
  uint32_t down; /* the instruction is a sub of so many bytes from %rsp, which the stub does; flags
                    stay as they are. SHIM_USER_FRAME: it is mov %rsp, %rbp. 0: it is another one */
  uint8_t before[SHIM_USER_SLOT_BYTES]; /* what stood there */
};

/* Guest-physical addresses from `begin` on, below `end`. */
struct shim_ram {
  uint64_t begin, end;
};

/* All host-written. */
struct shim_fetch {
  uint64_t root;       /* guest-physical address of the kernel's page tables (init_top_pgt) */
  uint64_t direct_map; /* address at which the kernel maps all RAM in one piece */
  uint64_t frames;     /* the bits of a page-table entry that are the address of a frame */
  uint32_t top_shift;  /* of the bits of an address that the root is indexed by: 39, or 48 */
  uint32_t ram_count;
  struct shim_ram ram[SHIM_RAM_RANGES]; /* whole pages, by address */
  uint64_t lists[SHIM_LISTS];           /* addresses of struct shim_list */
  uint32_t task_stack;  /* offset in struct task_struct of its stack's lowest address */
  uint32_t stack_bytes; /* of a task's stack */
};

/* One entry of a fetch list, host-written. */
struct shim_load {
  uint16_t source; /* the word of the record that the run's address is counted from; 0: none */
  uint16_t words;  /* how many, and SHIM_LOAD_USER; 0: the list's end */
  int32_t offset;  /* bytes; the sum is rounded down to a word */
};

/* Behind an entry, host-written: its address grows by a word of the record, which is shifted to the
 * left, then to the right. */
struct shim_index {
  uint16_t source;
  uint8_t left, right; /* bits */
  uint32_t unused;
};

/* A check, host-written, in the place of three entries. The word is shifted to the left, then to
 * the right, then masked, then compared with `with`. */
struct shim_check {
  uint16_t source;     /* a word of the record */
  uint16_t words;      /* SHIM_LOAD_CHECK and how it compares */
  uint8_t left, right; /* bits */
  uint16_t unused;
  uint64_t mask;
  uint64_t with;
};

/* A run, guest-written; then come its words, with room for all that its entry asks for. */
struct shim_run {
  uint64_t address; /* of its first word */
  uint64_t end;     /* the address after the last word that was read */
};

/* Each writer has cache lines of its own, so that none of them slows down another. */
struct shim_control {
  uint64_t active;     /* host, and the guest with `left`: 0 lets every trap resume at once. Such a
                          trap does not fire and does not count as lost */
  uint64_t heartbeat;  /* host: counts up while it lives; starts at 1 */
  uint64_t timeout;    /* host: how long to wait for the same heartbeat: TSC ticks | looks << 32 */
  uint64_t doorbell;   /* host: the I/O port to which the shim writes a mailbox's index (32 bits)
                          once it is raised, so that the thread that runs the vCPU can answer before
                          the next instruction; 0: no doorbell. The shim waits in the same way */
  uint64_t armings;    /* host: counts up before it writes int3s into the text */
  uint64_t full_waits; /* host: 1 lets a trap that finds its ring full wait as others do; 0: it
                          is dropped */
  uint64_t host_line[2];
  uint64_t silent; /* guest: the heartbeat at which it gave up waiting; 0 never */
  uint64_t left;   /* guest, from a slot: 1 once it starts another kernel. The region is then that
                      kernel's memory, and the host writes nothing any more */
  uint64_t silent_line[6];
  uint64_t foreign; /* guest: kernel-mode int3s passed on to the kernel's own handler */
  uint64_t
      overflows; /* guest: traps of ours that found no free mailbox, or no ring (resumed unfired) */
  uint64_t counter_line[6];
};

/* A mailbox is a head and a box with the same index. Its layout also fits a trap from user mode:
 * segments and cr3 tell mode and address space, and a word of the box (task_line) is free. */
struct shim_head {
  uint64_t head;     /* guest: state | count of claims << 8 */
  uint64_t answered; /* host: the claim that it has answered, as in `head` but without the state.
                        The guest compares for equality, so a late answer to a trap that has
                        timed out is no answer to the next trap */
  uint64_t address;  /* guest, like all fields below: of the int3 or jump */
  uint64_t tsc;      /* at entry */
  uint64_t percpu;   /* per-cpu base of the trapping CPU */
  uint64_t cr3;
  uint64_t rflags;
  uint64_t segments; /* cs | ss << 32; of a trap of a process instead the address of its int3 */
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

/* A CPU's ring. */
struct shim_ring_words {
  uint64_t head;     /* guest: how many records it has written */
  uint64_t dropped;  /* guest: traps that found it full */
  uint64_t busy;     /* guest: 1 while it writes a record */
  uint64_t late;     /* guest: traps that found `active` 0 */
  uint64_t unwanted; /* guest: traps whose list had a check that did not hold; of checks of the
                        task also those that found `active` 0 */
  uint64_t guest_line[3];
  uint64_t tail;         /* host: how many records it has copied */
  uint64_t most;         /* host: how many fit, less one; they are a power of two */
  uint64_t data;         /* host: address of the first record */
  uint64_t record_bytes; /* host: of each record, a power of two */
  uint64_t host_line[4];
};
struct shim_ring {
  struct shim_ring_words first, nested;
};

/* A record, guest-written. The list says whether it has the parts that are named here. */
struct shim_record {
  uint64_t head;       /* its number */
  uint64_t address;    /* of the int3 or jump */
  uint64_t tsc;        /* while `busy` was set */
  uint64_t percpu;     /* SHIM_COPY_PERCPU: per-cpu base of the trapping CPU */
  uint64_t task;       /* `current`; 0: the shim does not know */
  uint64_t comm[2];    /* of `task`, as pid to start_time are; without one unspecified */
  uint32_t pid, tgid;  /* SHIM_COPY_IDS */
  uint64_t start_time; /* likewise; ns since boot */
  uint64_t cr3;        /* SHIM_COPY_REGISTERS, as all that follows */
  uint64_t rflags;
  uint32_t cs, ss; /* of a trap of a process instead, together, the address of its int3 */
  uint64_t regs[SHIM_REGISTERS]; /* by enum shim_register; values before the trap */
};

/* All guest-written. */
struct shim_box {
  uint64_t regs[SHIM_REGISTERS]; /* by enum shim_register; values before the trap */
  uint64_t task;                 /* `current`; 0: the shim does not know */
  uint64_t comm[2];              /* comm to start_time: of `task`; without one unspecified */
  uint32_t pid, tgid;
  uint64_t start_time; /* likewise; ns since boot */
  uint64_t given_up; /* the last claim that was raised and then resumed without an answer. The host
                      may have taken it before that; then it has fired */
  uint64_t seal; /* from the claim, as in the head but without the state, on: turned left by
                    SHIM_SEAL_TURN bits before each word is added, of `start_time` to `regs`, then of
                    `segments` to `address` in the head */
  uint64_t task_line;
  uint64_t orphans; /* claims that were resumed without an answer: lost firings */
  uint64_t late;    /* claims that found `active` 0 */
  uint64_t counters_line[6];
};

static_assert(sizeof(struct shim_header) == SHIM_HEADER_SIZE, "shim.S lays it out");
static_assert(offsetof(struct shim_header, original) == SHIM_HEADER_ORIGINAL, "shim.S reads it");
static_assert(offsetof(struct shim_header, this_cpu_off) == SHIM_HEADER_THIS_CPU_OFF,
              "shim.S reads it");
static_assert(offsetof(struct shim_header, data) == SHIM_HEADER_DATA, "shim.S reads it");
static_assert(offsetof(struct shim_header, slots) == SHIM_HEADER_SLOTS, "shim.S reads it");
static_assert(offsetof(struct shim_header, unit_shift) == SHIM_HEADER_UNIT_SHIFT,
              "shim.S reads it");
static_assert(offsetof(struct shim_header, current) == SHIM_HEADER_CURRENT, "shim.S reads it");
static_assert(offsetof(struct shim_header, comm) == SHIM_HEADER_COMM, "shim.S reads it");
static_assert(offsetof(struct shim_header, pid) == SHIM_HEADER_PID, "shim.S reads it");
static_assert(offsetof(struct shim_header, tgid) == SHIM_HEADER_TGID, "shim.S reads it");
static_assert(offsetof(struct shim_header, user_tables) == SHIM_HEADER_USER_TABLES,
              "shim.S reads it");
static_assert(offsetof(struct shim_header, user_points) == SHIM_HEADER_USER_POINTS,
              "shim.S reads it");
static_assert(offsetof(struct shim_user_point, next) == SHIM_USER_NEXT, "shim.S reads it");
static_assert(offsetof(struct shim_user_point, offset) == SHIM_USER_OFFSET, "shim.S reads it");
static_assert(offsetof(struct shim_user_point, code) == SHIM_USER_CODE, "shim.S reads it");
static_assert(offsetof(struct shim_user_point, distance) == SHIM_USER_DISTANCE, "shim.S reads it");
static_assert(offsetof(struct shim_user_point, mask) == SHIM_USER_MASK, "shim.S reads it");
static_assert(offsetof(struct shim_user_point, bytes) == SHIM_USER_BYTES, "shim.S reads it");
static_assert(offsetof(struct shim_user_point, down) == SHIM_USER_DOWN, "shim.S reads it");
static_assert(SHIM_USER_LISTS << SHIM_USER_LIST_SHIFT == SHIM_PAGE, "each offset has a list");
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
static_assert(offsetof(struct shim_control, full_waits) == SHIM_CONTROL_FULL_WAITS,
              "shim.S reads it");
static_assert(SHIM_CONTROL_FULL_WAITS + 8 <= SHIM_CONTROL_SILENT, "the host's line is the host's");
static_assert(offsetof(struct shim_header, cpu_number) == SHIM_HEADER_CPU_NUMBER,
              "shim.S reads it");
static_assert(offsetof(struct shim_header, rings) == SHIM_HEADER_RINGS, "shim.S reads it");
static_assert(offsetof(struct shim_header, ring_controls) == SHIM_HEADER_RING_CONTROLS,
              "shim.S reads it");
static_assert(offsetof(struct shim_header, start_time) == SHIM_HEADER_START_TIME,
              "shim.S reads it");
static_assert(offsetof(struct shim_ring_words, dropped) == SHIM_RING_DROPPED, "shim.S writes it");
static_assert(offsetof(struct shim_ring_words, busy) == SHIM_RING_BUSY, "shim.S writes it");
static_assert(offsetof(struct shim_ring_words, late) == SHIM_RING_LATE, "shim.S writes it");
static_assert(offsetof(struct shim_ring_words, unwanted) == SHIM_RING_UNWANTED, "shim.S writes it");
static_assert(offsetof(struct shim_ring_words, tail) == SHIM_RING_TAIL, "shim.S reads it");
static_assert(offsetof(struct shim_ring_words, most) == SHIM_RING_MOST, "shim.S reads it");
static_assert(offsetof(struct shim_ring_words, data) == SHIM_RING_DATA, "shim.S reads it");
static_assert(offsetof(struct shim_ring_words, record_bytes) == SHIM_RING_RECORD_BYTES,
              "shim.S reads it");
static_assert(offsetof(struct shim_ring, nested) == SHIM_RING_NESTED, "shim.S finds it");
static_assert(sizeof(struct shim_ring) == SHIM_RING_SIZE, "shim.S makes an address of it");
static_assert(1 << SHIM_RING_SHIFT == SHIM_RING_SIZE, "shim.S finds it by the CPU's number");
static_assert(SHIM_REGISTER_RSP == SHIM_RSP, "shim.S reads it");
static_assert(offsetof(struct shim_record, head) == SHIM_RECORD_HEAD, "shim.S writes it");
static_assert(offsetof(struct shim_record, address) == SHIM_RECORD_ADDRESS, "shim.S writes it");
static_assert(offsetof(struct shim_record, tsc) == SHIM_RECORD_TSC, "shim.S writes it");
static_assert(offsetof(struct shim_record, percpu) == SHIM_RECORD_PERCPU, "shim.S writes it");
static_assert(offsetof(struct shim_record, task) == SHIM_RECORD_TASK, "shim.S writes it");
static_assert(offsetof(struct shim_record, comm) == SHIM_RECORD_COMM, "shim.S writes it");
static_assert(offsetof(struct shim_record, pid) == SHIM_RECORD_PID, "shim.S writes it");
static_assert(offsetof(struct shim_record, tgid) == SHIM_RECORD_TGID, "shim.S writes it");
static_assert(offsetof(struct shim_record, start_time) == SHIM_RECORD_START_TIME,
              "shim.S writes it");
static_assert(offsetof(struct shim_record, cr3) == SHIM_RECORD_CR3, "shim.S writes it");
static_assert(offsetof(struct shim_record, rflags) == SHIM_RECORD_RFLAGS, "shim.S writes it");
static_assert(offsetof(struct shim_record, cs) == SHIM_RECORD_CS, "shim.S writes it");
static_assert(offsetof(struct shim_record, ss) == SHIM_RECORD_SS, "shim.S writes it");
static_assert(offsetof(struct shim_record, regs) == SHIM_RECORD_REGS, "shim.S writes it");
static_assert(sizeof(struct shim_record) == SHIM_RECORD_RUNS, "runs follow");
static_assert(SHIM_RECORD_CR3 <= SHIM_RECORD_SIZE, "the least record fits");
static_assert(offsetof(struct shim_header, least_list) == SHIM_HEADER_LEAST_LIST,
              "the host finds it");
static_assert(offsetof(struct shim_header, full_list) == SHIM_HEADER_FULL_LIST,
              "the host finds it");
static_assert(offsetof(struct shim_list, copies) == SHIM_LIST_COPIES, "shim.S reads it");
static_assert(offsetof(struct shim_list, task_checks) == SHIM_LIST_TASK_CHECKS, "shim.S reads it");
static_assert(offsetof(struct shim_list, runs) == SHIM_LIST_RUNS, "shim.S reads it");
static_assert(offsetof(struct shim_list, entries) == SHIM_LIST_ENTRIES, "shim.S reads it");
static_assert(sizeof(struct shim_list) == SHIM_LIST_SIZE, "shim.S steps by it");
static_assert(offsetof(struct shim_fetch, root) == SHIM_FETCH_ROOT, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, direct_map) == SHIM_FETCH_DIRECT_MAP, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, frames) == SHIM_FETCH_FRAMES, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, top_shift) == SHIM_FETCH_TOP_SHIFT, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, ram_count) == SHIM_FETCH_RAM_COUNT, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, ram) == SHIM_FETCH_RAM, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, lists) == SHIM_FETCH_LISTS, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, task_stack) == SHIM_FETCH_TASK_STACK, "shim.S reads it");
static_assert(offsetof(struct shim_fetch, stack_bytes) == SHIM_FETCH_STACK_BYTES,
              "shim.S reads it");
static_assert(sizeof(struct shim_ram) == 16, "shim.S steps by it");
static_assert(offsetof(struct shim_load, source) == SHIM_LOAD_SOURCE, "shim.S reads it");
static_assert(offsetof(struct shim_load, words) == SHIM_LOAD_WORDS, "shim.S reads it");
static_assert(offsetof(struct shim_load, offset) == SHIM_LOAD_OFFSET, "shim.S reads it");
static_assert(sizeof(struct shim_load) == SHIM_LOAD_SIZE, "shim.S steps by it");
static_assert(offsetof(struct shim_index, source) == SHIM_LOAD_SOURCE, "shim.S reads it");
static_assert(offsetof(struct shim_index, left) == SHIM_INDEX_LEFT, "shim.S reads it");
static_assert(offsetof(struct shim_index, right) == SHIM_INDEX_RIGHT, "shim.S reads it");
static_assert(sizeof(struct shim_index) == SHIM_LOAD_SIZE, "shim.S steps by it");
static_assert(offsetof(struct shim_check, source) == SHIM_LOAD_SOURCE &&
                  offsetof(struct shim_check, words) == SHIM_LOAD_WORDS,
              "an entry begins like a load");
static_assert(offsetof(struct shim_check, left) == SHIM_CHECK_LEFT, "shim.S reads it");
static_assert(offsetof(struct shim_check, right) == SHIM_CHECK_RIGHT, "shim.S reads it");
static_assert(offsetof(struct shim_check, mask) == SHIM_CHECK_MASK, "shim.S reads it");
static_assert(offsetof(struct shim_check, with) == SHIM_CHECK_WITH, "shim.S reads it");
static_assert(sizeof(struct shim_check) == SHIM_CHECK_SIZE, "shim.S steps by it");
static_assert(offsetof(struct shim_run, address) == SHIM_RUN_ADDRESS, "shim.S writes it");
static_assert(offsetof(struct shim_run, end) == SHIM_RUN_END, "shim.S writes it");
static_assert(sizeof(struct shim_run) == SHIM_RUN_WORDS, "shim.S writes the words behind it");
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
static_assert(offsetof(struct shim_box, start_time) == SHIM_BOX_START_TIME, "shim.S writes it");
static_assert(offsetof(struct shim_box, given_up) == SHIM_BOX_GIVEN_UP, "shim.S writes it");
static_assert(offsetof(struct shim_box, seal) == SHIM_BOX_SEAL, "shim.S writes it");
static_assert(offsetof(struct shim_box, task_line) == SHIM_BOX_TRAP_BYTES, "those and no more");
static_assert(SHIM_SEALED_BOX_WORDS * 8 == SHIM_BOX_GIVEN_UP, "all before it");
static_assert(SHIM_HEAD_ADDRESS + SHIM_SEALED_HEAD_WORDS * 8 == SHIM_HEAD_SIZE, "from it on");
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
