// A CPU's own set-up: descriptor tables, system call registers, local APIC and its timer, and
// waking the others. Intel SDM volume 3A: 3 and 6 (tables), 5.8.8 (syscall), 9.4, 10 (APIC).
#include "kernel.h"

enum {
  kTimerVector = 32,
  kSpuriousVector = 255,
  kTicksPerSecond = 100,
  kApicHertz = 1000000000 / 16,  // KVM's and QEMU's APIC timer runs at 1 GHz; divided by 16
  kTrampoline = 0x8000,
  kStackSize = 8192,
};

// Offsets of the local APIC's registers.
enum {
  kApicEndOfInterrupt = 0xb0,
  kApicSpurious = 0xf0,
  kApicCommand = 0x300,
  kApicCommandTo = 0x310,
  kApicTimer = 0x320,
  kApicTimerStart = 0x380,
  kApicTimerDivide = 0x3e0,
};

// Model-specific registers.
#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_SYSCALL_MASK 0xc0000084u
#define MSR_GS_BASE 0xc0000101u
#define MSR_KERNEL_GS_BASE 0xc0000102u

struct gate {
  uint16_t offset_low, selector, kind, offset_middle;
  uint32_t offset_high, zero;
} __attribute__((packed));

struct table_pointer {
  uint16_t limit;
  uint64_t base;
} __attribute__((packed));

struct task_state_segment {
  uint32_t reserved;
  uint64_t rsp0;
  uint8_t rest[92];
} __attribute__((packed));

extern const uint8_t vector_table[], trampoline[], trampoline_end[];

static struct cpu cpus[kMaxCpus];
static struct task_state_segment states[kMaxCpus];
static uint64_t descriptors[kMaxCpus][7];
static struct gate gates[256];
static uint8_t stacks[kMaxCpus][kStackSize] __attribute__((aligned(16)));
static volatile int started = 1;

// For boot.S, which one new CPU at a time reads.
uint64_t other_cpu_stack;
int other_cpu_id;

void lock(struct lock* lock) {
  while (__atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE)) __asm__ volatile("pause");
}

void unlock(struct lock* lock) {
  __atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}

void panic(const char* why, uint64_t value) {
  print("teach: panic: ");
  print(why);
  print(" ");
  print_number(value);
  print("\n");
  power_off();
}

static void load_descriptors(int id) {
  const uint64_t state = (uint64_t)&states[id];
  uint64_t* table = descriptors[id];
  table[1] = 0x00af9b000000ffff;  // kernel code
  table[2] = 0x00cf93000000ffff;  // kernel data
  table[3] = 0x00cff3000000ffff;  // user data
  table[4] = 0x00affb000000ffff;  // user code
  table[5] =
      (sizeof states[0] - 1) | (state & 0xffffff) << 16 | 0x89ul << 40 | (state >> 24 & 0xff) << 56;
  table[6] = state >> 32;
  const struct table_pointer gdt = {sizeof descriptors[0] - 1, (uint64_t)table};
  const struct table_pointer idt = {sizeof gates - 1, (uint64_t)gates};
  __asm__ volatile(
      "lgdt %0; lidt %1; ltr %w2; mov %w3, %%ds; mov %w3, %%es; mov %w3, %%ss; mov %w4, %%fs;"
      "mov %w4, %%gs"
      :
      : "m"(gdt), "m"(idt), "r"(TASK_STATE), "r"(KERNEL_DATA), "r"(0)
      : "memory");
}

static void fill_gates(void) {
  for (int n = 0; n < 256; ++n) {
    // Each stub of entry.S is 16 bytes long.
    const uint64_t handler = (uint64_t)(vector_table + 16 * n);
    gates[n] = (struct gate){(uint16_t)handler,
                             KERNEL_CODE,
                             0x8e00,
                             (uint16_t)(handler >> 16),
                             (uint32_t)(handler >> 32),
                             0};
  }
}

void set_kernel_stack(uint64_t top) {
  struct cpu* cpu = this_cpu();
  cpu->kernel_stack = top;
  states[cpu->id].rsp0 = top;
}

static void apic_write(uint32_t offset, uint32_t value) {
  *(volatile uint32_t*)(LOCAL_APIC + offset) = value;
}

static void apic_end_of_interrupt(void) {
  apic_write(kApicEndOfInterrupt, 0);
}

static void apic_start(void) {
  apic_write(kApicSpurious, 0x100 | kSpuriousVector);
  apic_write(kApicTimerDivide, 3);                 // by 16
  apic_write(kApicTimer, 0x20000 | kTimerVector);  // periodic
  apic_write(kApicTimerStart, kApicHertz / kTicksPerSecond);
}

// The old interrupt controllers keep quiet: the firmware may have left the timer on vector 8.
static void mask_old_controllers(void) {
  out8(0x21, 0xff);
  out8(0xa1, 0xff);
}

void cpu_start(int id) {
  if (id == 0) {
    mask_old_controllers();
    fill_gates();
  }
  load_descriptors(id);
  cpus[id].self = &cpus[id];
  cpus[id].id = id;
  write_msr(MSR_GS_BASE, (uint64_t)&cpus[id]);
  write_msr(MSR_KERNEL_GS_BASE, 0);
  // sysret takes user data from the selector at bit 48 plus 8, and user code from that plus 16.
  write_msr(MSR_STAR, (uint64_t)KERNEL_CODE << 32 | (uint64_t)KERNEL_DATA << 48);
  write_msr(MSR_LSTAR, (uint64_t)system_call_entry);
  write_msr(MSR_SYSCALL_MASK, 0x200 | 0x400);  // interrupts off, direction forward
  apic_start();
}

void start_other_cpus(const uint8_t ids[kMaxCpus], int count) {
  uint8_t* page = at_physical(kTrampoline);
  for (const uint8_t* from = trampoline; from < trampoline_end; ++from) *page++ = *from;
  for (int n = 1; n < count; ++n) {
    other_cpu_stack = (uint64_t)(stacks[n] + kStackSize);
    other_cpu_id = n;
    apic_write(kApicCommandTo, (uint32_t)ids[n] << 24);
    apic_write(kApicCommand, 0x4500);  // INIT
    apic_write(kApicCommandTo, (uint32_t)ids[n] << 24);
    apic_write(kApicCommand, 0x4600 | kTrampoline >> 12);  // start-up
    while (started <= n) __asm__ volatile("pause");
  }
}

void other_cpu_main(int id) {
  cpu_start(id);
  started = id + 1;
  schedule();
}

void interrupt(struct frame* frame) {
  if (frame->vector < kTimerVector) panic("exception", frame->vector);
  if (frame->vector != kTimerVector) return;
  struct cpu* cpu = this_cpu();
  ++cpu->ticks;
  apic_end_of_interrupt();
  if (frame->cs != USER_CODE) return;  // the kernel itself is not preempted
  ++cpu->current->ticks;
  task_yield();
}
