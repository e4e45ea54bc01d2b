// The first CPU's way from boot to the scheduler, and the end.
#include "kernel.h"

// PVH's struct hvm_start_info, as far as we read it.
struct start_info {
  uint32_t magic, version, flags, modules;
  uint64_t module_list, command_line, rsdp;
};

enum { kStartMagic = 0x336ec578, kDefaultDeposits = 100000 };

static uint64_t deposits = kDefaultDeposits;

// The text behind `word` where the command line has it, else NULL.
static const char* find_word(const char* line, const char* word) {
  for (; *line; ++line) {
    const char* at = line;
    const char* wanted = word;
    while (*wanted && *at == *wanted) ++at, ++wanted;
    if (!*wanted) return at;
  }
  return NULL;
}

static void read_command_line(const char* line) {
  careful = find_word(line, "careful") != NULL;
  const char* digits = find_word(line, "deposits=");
  if (!digits) return;
  deposits = 0;
  for (; *digits >= '0' && *digits <= '9' && deposits < 10000000; ++digits) {
    deposits = deposits * 10 + (uint64_t)(*digits - '0');
  }
}

static void create_programs(void) {
  task_create("teller", (uint64_t)teller, deposits);
  task_create("teller", (uint64_t)teller, deposits);
  task_create("auditor", (uint64_t)auditor, 3);
}

void kernel_main(uint64_t start_info) {
  const struct start_info* info = at_physical(start_info);
  uint8_t ids[kMaxCpus];
  console_start();
  cpu_start(0);
  print("teach: hello\n");
  if (info->magic != kStartMagic) panic("no PVH start info, but", info->magic);
  if (info->command_line) read_command_line(at_physical(info->command_line));
  const int count = find_cpus(info->rsdp, ids);
  print("teach: CPUs: ");
  print_number((uint64_t)count);
  print("\n");
  create_programs();
  start_other_cpus(ids, count);
  schedule();
}

void kernel_end(void) {
  print("teach: balance ");
  print_number(read_balance());
  print(" of ");
  print_number(2 * deposits);
  print("\nteach: bye\n");
  power_off();
}
