/* From the boot protocol's first instruction to C, for the first CPU and for the others.
 * The first comes by PVH: 32-bit protected mode, no paging, ebx = hvm_start_info (Xen's
 * include/public/arch-x86/hvm/start_info.h). The others come by a start-up IPI: real mode, at the
 * trampoline's page (Intel SDM volume 3A, 9.4).
 */
#define KERNEL_BASE 0xffffffff80000000
#define PHYSICAL(symbol) ((symbol) - KERNEL_BASE)
#define TRAMPOLINE 0x8000
#define EFER 0xc0000080

  .section .note.pvh, "a", @note
  .long 4, 4, 18 /* name, descriptor, XEN_ELFNOTE_PHYS32_ENTRY */
  .asciz "Xen"
  .long PHYSICAL(pvh_entry)

  .section .boot, "ax"
  .code32
  .globl pvh_entry
  .type pvh_entry, @function /* tracing looks for functions, not for labels */
pvh_entry:
  mov %ebx, %esi /* kept: nothing up to kernel_main changes it */
  mov $PHYSICAL(first_stack_top), %esp /* PVH gives no stack */
  lgdt PHYSICAL(boot_gdt_pointer)
  call to_long_mode
  ljmp $0x08, $PHYSICAL(first_cpu_64)

/* Paging on, with the tables below: the first GiB where it is and at KERNEL_BASE, the fourth (the
 * APIC's) at the very top. */
  .type to_long_mode, @function
to_long_mode:
  mov $0x20, %eax /* PAE */
  mov %eax, %cr4
  mov $PHYSICAL(boot_page_table), %eax
  mov %eax, %cr3
  mov $EFER, %ecx
  mov $0x101, %eax /* LME, SCE */
  xor %edx, %edx
  wrmsr
  mov $0x80010001, %eax /* PG, WP, PE */
  mov %eax, %cr0
  ret
  int3 /* as the C compiler leaves one: room for a breakpoint of two bytes */

  .code64
first_cpu_64:
  mov $0x10, %eax
  mov %eax, %ds
  mov %eax, %es
  mov %eax, %ss
  mov $first_stack_top, %rsp
  mov %esi, %edi
  xor %ebp, %ebp
  movabs $kernel_main, %rax
  call *%rax
halt:
  hlt
  jmp halt

/* Copied to TRAMPOLINE; runs there. */
  .code16
  .globl trampoline
trampoline:
  cli
  mov %cs, %ax
  mov %ax, %ds
  lgdtl trampoline_gdt - trampoline
  mov $1, %eax
  mov %eax, %cr0
  ljmpl $0x18, $(TRAMPOLINE + trampoline_32 - trampoline)
  .code32
trampoline_32:
  mov $0x10, %eax
  mov %eax, %ds
  mov %eax, %ss
  mov $(TRAMPOLINE + 0x1000), %esp
  mov $PHYSICAL(to_long_mode), %eax
  call *%eax
  ljmp $0x08, $PHYSICAL(other_cpu_64)
trampoline_gdt:
  .word boot_gdt_end - boot_gdt - 1
  .long PHYSICAL(boot_gdt)
  .globl trampoline_end
trampoline_end:

  .code64
other_cpu_64:
  mov other_cpu_stack, %rsp
  movslq other_cpu_id, %rdi
  xor %ebp, %ebp
  movabs $other_cpu_main, %rax
  call *%rax
  jmp halt

  .balign 8
boot_gdt:
  .quad 0
  .quad 0x00af9b000000ffff /* 64-bit code */
  .quad 0x00cf93000000ffff /* data */
  .quad 0x00cf9b000000ffff /* 32-bit code, for the trampoline */
boot_gdt_end:
boot_gdt_pointer:
  .word boot_gdt_end - boot_gdt - 1
  .long PHYSICAL(boot_gdt)

  .section .data
  .balign 4096
  .globl boot_page_table
boot_page_table:
  .quad PHYSICAL(low_directory) + 3
  .fill 510, 8, 0
  .quad PHYSICAL(high_directory) + 3
low_directory:
  .quad PHYSICAL(first_gib) + 3
  .fill 511, 8, 0
high_directory:
  .fill 510, 8, 0
  .quad PHYSICAL(first_gib) + 3
  .quad PHYSICAL(fourth_gib) + 3
first_gib: /* 2 MiB pages, present and writable */
  .set page, 0
  .rept 512
  .quad (page << 21) + 0x83
  .set page, page + 1
  .endr
fourth_gib: /* the same, not cached: devices */
  .set page, 0
  .rept 512
  .quad 0xc0000000 + (page << 21) + 0x93
  .set page, page + 1
  .endr

  .section .bss
  .balign 4096
  .fill 8192
first_stack_top:
