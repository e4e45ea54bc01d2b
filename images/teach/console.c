// The serial port COM1 (PC16550D), polled: one character, one access of the port, one exit.
#include "kernel.h"

enum { kPort = 0x3f8, kLineStatus = 5, kTransmitterEmpty = 0x20 };

static struct lock console_lock;

void console_start(void) {
  out8(kPort + 3, 0x80);  // divisor: 115200 baud
  out8(kPort + 0, 1);
  out8(kPort + 1, 0);
  out8(kPort + 3, 3);  // 8 bits, no parity, one stop bit
}

static void put_character(char c) {
  while (!(in8(kPort + kLineStatus) & kTransmitterEmpty)) {
  }
  out8(kPort, (uint8_t)c);
}

void print_bytes(const char* bytes, uint64_t size) {
  lock(&console_lock);
  for (uint64_t n = 0; n < size; ++n) put_character(bytes[n]);
  unlock(&console_lock);
}

void print(const char* text) {
  uint64_t size = 0;
  while (text[size]) ++size;
  print_bytes(text, size);
}

void print_number(uint64_t number) {
  char digits[20];
  int first = sizeof digits;
  do {
    digits[--first] = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  print_bytes(digits + first, sizeof digits - (unsigned)first);
}
