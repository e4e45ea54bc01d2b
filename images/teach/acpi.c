// The machine's own words for itself: the CPUs in ACPI's MADT, and power-off.
// ACPI Specification 6.4: 5.2.5 (RSDP), 5.2.8 (XSDT), 5.2.12 (MADT), 4.8.3.2 (PM1 control).
// The tables are the machine's, which we trust as every kernel must.
#include "kernel.h"

struct table {
  char signature[4];
  uint32_t length;
  uint8_t rest[28];
} __attribute__((packed));

enum {
  kLocalApic = 0,
  kEnabled = 1,
  kMadtEntries = 44,
  kPm1Control = 0x604,
  kSleepEnable = 1 << 13
};

static bool is(const struct table* table, const char* signature) {
  for (int n = 0; n < 4; ++n) {
    if (table->signature[n] != signature[n]) return false;
  }
  return true;
}

static int read_madt(const struct table* madt, uint8_t ids[kMaxCpus]) {
  const uint8_t* bytes = (const uint8_t*)madt;
  int count = 0;
  for (uint32_t at = kMadtEntries; at + 2 <= madt->length && bytes[at + 1] != 0;
       at += bytes[at + 1]) {
    if (bytes[at] != kLocalApic || !(bytes[at + 4] & kEnabled) || count == kMaxCpus) continue;
    ids[count++] = bytes[at + 3];
  }
  return count;
}

int find_cpus(uint64_t rsdp, uint8_t ids[kMaxCpus]) {
  ids[0] = 0;
  if (rsdp == 0) return 1;
  const uint8_t* root = at_physical(rsdp);
  const bool extended = root[15] >= 2;  // an XSDT has 64-bit pointers, an RSDT 32-bit ones
  const uint64_t where = extended ? *(const uint64_t*)(root + 24) : *(const uint32_t*)(root + 16);
  const struct table* list = at_physical(where);
  const uint32_t width = extended ? 8 : 4;
  for (uint32_t at = 36; at + width <= list->length; at += width) {
    const uint8_t* entry = (const uint8_t*)list + at;
    const uint64_t address = extended ? *(const uint64_t*)entry : *(const uint32_t*)entry;
    const struct table* table = at_physical(address);
    if (!is(table, "APIC")) continue;
    const int count = read_madt(table, ids);
    return count > 0 ? count : 1;
  }
  return 1;
}

void power_off(void) {
  out16(kPm1Control, kSleepEnable);
  for (;;) __asm__ volatile("cli; hlt");
}
