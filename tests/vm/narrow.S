// A system of 32 bits that is no Linux, for QEMU's -kernel (Multiboot 1): it turns paging on with pages
// of 4 MiB, says so at the port of QEMU's debug console, and runs in a loop. Used by
// test_attach_bad_input.py.
#define MAGIC 0x1badb002
#define LOADED_AT 0x100000
#define HAS_ADDRESSES 0x10000  // in the header: no ELF is read

	.code32
	.text
header:
	.long MAGIC, HAS_ADDRESSES, -(MAGIC + HAS_ADDRESSES)
	.long LOADED_AT, LOADED_AT, 0, 0, LOADED_AT + start - header

	.balign 4096
table:
	.long 0x83  // the first 4 MiB, where they are: present, writable, large
	.fill 1023, 4, 0

start:
	movl %cr4, %eax
	orl $0x10, %eax  // CR4.PSE
	movl %eax, %cr4
	movl $(LOADED_AT + table - header), %eax
	movl %eax, %cr3
	movl %cr0, %eax
	orl $0x80000000, %eax  // CR0.PG
	movl %eax, %cr0
	movb $'P', %al
	outb %al, $0xe9
1:	pause
	jmp 1b
