// Tasks: a page table, a kernel stack, a place in the list. Each CPU takes the next one that is
// ready, and halts when there is none; the timer makes it look again.
#include "kernel.h"

enum { kUserText = 0x400000, kUserStackTop = 0x600000, kStackSize = 8192, kUser = 7 };

extern const uint8_t user_begin[], user_end[];
extern const uint64_t boot_page_table[];

static struct task tasks[kMaxTasks];
static struct lock tasks_lock;
static uint8_t kernel_stacks[kMaxTasks][kStackSize] __attribute__((aligned(16)));

// Pages for user memory and page tables; never given back.
static uint8_t pages[kMaxTasks * 16][kPageSize] __attribute__((aligned(4096)));
static unsigned pages_used;

static void* new_page(void) {
  if (pages_used == sizeof pages / sizeof pages[0]) panic("no page left after", pages_used);
  return pages[pages_used++];
}

// The entry for `address` in a table of `level` (4 is the root), made with what is below it.
static void map_user_page(uint64_t* table, uint64_t address, const void* page) {
  for (int level = 4; level > 1; --level) {
    uint64_t* entry = &table[address >> (12 + 9 * (level - 1)) & 511];
    if (!*entry) *entry = physical_of(new_page()) | kUser;
    table = at_physical(*entry & ~0xffful);
  }
  table[address >> 12 & 511] = physical_of(page) | kUser;
}

static uint64_t new_page_table(void) {
  uint64_t* root = new_page();
  root[511] = boot_page_table[511];
  for (const uint8_t* from = user_begin; from < user_end; from += kPageSize) {
    map_user_page(root, kUserText + (uint64_t)(from - user_begin), from);
  }
  map_user_page(root, kUserStackTop - kPageSize, new_page());
  return physical_of(root);
}

struct task* task_create(const char* name, uint64_t entry, uint64_t argument) {
  lock(&tasks_lock);
  int id = 0;
  while (id < kMaxTasks && tasks[id].state != kUnused) ++id;
  if (id == kMaxTasks) panic("too many tasks:", kMaxTasks);
  struct task* task = &tasks[id];
  task->id = id;
  task->name = name;
  task->page_table = new_page_table();
  task->kernel_stack = (uint64_t)(kernel_stacks[id] + kStackSize);
  struct frame* frame = (struct frame*)task->kernel_stack - 1;
  *frame = (struct frame){.rdi = argument,
                          .rip = entry,
                          .cs = USER_CODE,
                          .rflags = 0x202,
                          .rsp = kUserStackTop - 8,
                          .ss = USER_DATA};
  // switch_stacks() pops six registers and where to go on.
  uint64_t* stack = (uint64_t*)frame;
  *--stack = (uint64_t)task_first_entry;
  for (int n = 0; n < 6; ++n) *--stack = 0;
  task->saved_rsp = (uint64_t)stack;
  task->state = kReady;
  unlock(&tasks_lock);
  return task;
}

static struct task* pick_task(int after) {
  for (int n = 1; n <= kMaxTasks; ++n) {
    struct task* task = &tasks[(after + n) % kMaxTasks];
    if (task->state == kReady) return task;
  }
  return NULL;
}

static void run_task(struct task* task) {
  struct cpu* cpu = this_cpu();
  cpu->current = task;
  set_kernel_stack(task->kernel_stack);
  __asm__ volatile("mov %0, %%cr3" : : "r"(task->page_table) : "memory");
  switch_stacks(&cpu->scheduler_rsp, task->saved_rsp);
  __asm__ volatile("mov %0, %%cr3" : : "r"(physical_of(boot_page_table)) : "memory");
  cpu->current = NULL;
}

static void idle(void) {
  __asm__ volatile("sti; hlt; cli");
}

// The lock goes from hand to hand: whoever switches away holds it, whoever comes on lets it go.
void schedule(void) {
  int last = 0;
  for (;;) {
    lock(&tasks_lock);
    struct task* task = pick_task(last);
    if (task) {
      task->state = kRunning;
      unlock(&tasks_lock);
      last = task->id;
      run_task(task);
      if (task->state == kRunning) task->state = kReady;
      continue;
    }
    unlock(&tasks_lock);
    if (this_cpu()->id == 0 && tasks_alive() == 0) kernel_end();
    idle();
  }
}

void task_yield(void) {
  struct cpu* cpu = this_cpu();
  switch_stacks(&cpu->current->saved_rsp, cpu->scheduler_rsp);
}

void task_exit(void) {
  this_cpu()->current->state = kEnded;
  task_yield();
  panic("an ended task ran:", 0);
}

int tasks_alive(void) {
  int alive = 0;
  for (int n = 0; n < kMaxTasks; ++n) {
    if (tasks[n].state == kReady || tasks[n].state == kRunning) ++alive;
  }
  return alive;
}
