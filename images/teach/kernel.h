// "teach": a small 64-bit kernel to look into from outside. Several CPUs, a timer, a few system
// calls, two user programs, and a bank account with a race that shows only on two CPUs.
// README.md says what is where; docs/lesson.md is the lesson that goes with it.
// Everything runs at the top of the address space (-mcmodel=kernel), user programs at the bottom.
#ifndef TEACH_KERNEL_H
#define TEACH_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMaxCpus = 16, kMaxTasks = 8, kPageSize = 4096 };

// Where physical memory (its first GiB) and devices (its fourth) are seen by the kernel.
#define KERNEL_BASE 0xffffffff80000000ul
#define DEVICE_BASE 0xffffffffc0000000ul  // physical 3 GiB
#define LOCAL_APIC 0xfffffffffee00000ul   // physical 0xfee00000

// Selectors of the descriptor table, in the order that syscall and sysret demand (Intel SDM 5.8.8).
#define KERNEL_CODE 0x08
#define KERNEL_DATA 0x10
#define USER_DATA 0x1b
#define USER_CODE 0x23
#define TASK_STATE 0x28

static inline void* at_physical(uint64_t address) {
  return (void*)(KERNEL_BASE + address);
}
static inline uint64_t physical_of(const void* p) {
  return (uint64_t)p - KERNEL_BASE;
}

// The registers of an interrupted program, as entry.S pushes them.
struct frame {
  uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
  uint64_t vector, error;
  uint64_t rip, cs, rflags, rsp, ss;
};

struct lock {
  volatile unsigned taken;
};

enum task_state { kUnused, kReady, kRunning, kEnded };

struct task {
  int id;
  const char* name;
  volatile enum task_state state;
  uint64_t page_table;    // physical
  uint64_t kernel_stack;  // its top
  uint64_t saved_rsp;     // while it does not run
  uint64_t ticks;         // of the timer, while it ran
};

// One a CPU; %gs points at it in the kernel. entry.S knows the first three offsets.
struct cpu {
  struct cpu* self;
  uint64_t kernel_stack;  // of the current task
  uint64_t user_rsp;      // scratch at system call entry
  int id;
  uint64_t scheduler_rsp;
  struct task* current;
  uint64_t ticks;
};

static inline struct cpu* this_cpu(void) {
  struct cpu* cpu;
  __asm__ volatile("mov %%gs:0, %0" : "=r"(cpu));
  return cpu;
}

static inline void out8(uint16_t port, uint8_t value) {
  __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}
static inline void out16(uint16_t port, uint16_t value) {
  __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}
static inline uint8_t in8(uint16_t port) {
  uint8_t value;
  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}
static inline void write_msr(uint32_t index, uint64_t value) {
  __asm__ volatile("wrmsr" : : "c"(index), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}
static inline uint64_t read_msr(uint32_t index) {
  uint32_t low, high;
  __asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(index));
  return low | (uint64_t)high << 32;
}

// main.c
void kernel_end(void) __attribute__((noreturn));

// console.c
void console_start(void);
void print(const char* text);
void print_number(uint64_t number);
void print_bytes(const char* bytes, uint64_t size);

// acpi.c
/// Local APIC ids of the enabled CPUs, from the MADT; at least one.
int find_cpus(uint64_t rsdp, uint8_t ids[kMaxCpus]);
void power_off(void) __attribute__((noreturn));

// cpu.c
void cpu_start(int id);
void set_kernel_stack(uint64_t top);
void start_other_cpus(const uint8_t ids[kMaxCpus], int count);
void lock(struct lock* lock);
void unlock(struct lock* lock);
void panic(const char* why, uint64_t value) __attribute__((noreturn));

// task.c
struct task* task_create(const char* name, uint64_t entry, uint64_t argument);
void schedule(void) __attribute__((noreturn));
void task_yield(void);
void task_exit(void) __attribute__((noreturn));
int tasks_alive(void);

// bank.c
extern bool careful;  // "careful" on the command line: take the lock
uint64_t read_balance(void);
void deposit(uint64_t amount);

// syscall.c
enum {
  kSysWrite = 1,
  kSysDeposit = 2,
  kSysBalance = 3,
  kSysTaskId = 4,
  kSysYield = 5,
  kSysExit = 6
};
uint64_t system_call(uint64_t number, uint64_t first, uint64_t second);

// user.c: in user memory
void teller(uint64_t deposits);
void auditor(uint64_t looks);

// entry.S
void switch_stacks(uint64_t* save_rsp, uint64_t load_rsp);
void task_first_entry(void);
void system_call_entry(void);

#endif
