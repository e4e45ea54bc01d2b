/* The layout shared by the shim (guest) and the host: one region of reserved guest RAM.
 * C11 and C++; fixed widths; every field names its writer. Compiled, with its asserts, on both
 * sides. Bump SHIM_VERSION on any change; the host refuses a shim image that differs.
 *
 * The region: SHIM_REGION_SIZE bytes, 2 MiB aligned, mapped by 2 MiB pages at a 2 MiB-aligned
 * virtual address in the kernel image's own region.
 *
 *   0           code (SHIM_CODE_SIZE)                 read + execute
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

#define SHIM_VERSION SHIM_U(1)
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
#define SHIM_MAILBOX_SIZE SHIM_U(256)
#define SHIM_MAILBOXES SHIM_U(64)

/* The table is open-addressed: hash = (low 32 bits of the address * SHIM_HASH) >> (32 - BITS),
 * then linear. An entry is key | slot offset << 32; key 0 is empty; entries are never removed. */
#define SHIM_HASH SHIM_U(0x9e3779b1)

#define SHIM_FREE 0     /* state: nobody uses the mailbox */
#define SHIM_CLAIMED 1  /* guest: being filled */
#define SHIM_RAISED 2   /* guest: the host may look */
#define SHIM_ANSWERED 3 /* host: the guest may go on */

#endif
