// faults GOOD ABSENT BAD: makes known numbers of system calls that reach user memory by single
// loads and stores of the kernel: where the page is there, where it has to be brought first, and
// where it may not be reached. Made by test_faults.py and put into a guest's initrd. As often as
// each number says, after its first and until its second call of getppid(2):
//   getdents64(2)  of an empty directory: "." and ".."
//   poll(2)        of one file that can be read
//   pwrite64(2)    of 64 bytes
// The result of each is checked; "wrong N" is printed last.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096, kEntry = 24, kNameAt = 19, kBytes = 64 };
enum Kind { kGood, kAbsent, kBad };

// A page of `file`, or of zeros: one that is there, that is not, or that has less than `access`.
static char* page(enum Kind kind, int access, int file) {
  static char* last;
  if (last != NULL) munmap(last, kPage);
  const int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0);
  last = mmap(NULL, kPage, access | PROT_READ, flags, file, 0);
  if (last == MAP_FAILED) abort();
  if (kind == kGood) *(volatile char*)last = *(volatile char*)last;
  if (kind == kBad && mprotect(last, kPage, access == PROT_READ ? PROT_NONE : PROT_READ) != 0)
    abort();
  return last;
}

static unsigned wrong;

static void expect(enum Kind kind, long result, int fine) {
  if (kind == kBad ? result != -1 || errno != EFAULT : !fine) ++wrong;
}

static void list(enum Kind kind, int folder) {
  char* const out = page(kind, PROT_WRITE, -1);
  if (lseek(folder, 0, SEEK_SET) != 0) abort();
  const long got = syscall(SYS_getdents64, folder, out, kPage);
  expect(kind, got,
         got == 2 * kEntry && strcmp(out + kNameAt, ".") == 0 &&
             strcmp(out + kEntry + kNameAt, "..") == 0);
}

// The page is read first, so that the store is what finds it absent.
static void wait_for(enum Kind kind, int file) {
  struct pollfd* const what = (struct pollfd*)page(kind, PROT_WRITE, file);
  const long ready = syscall(SYS_poll, what, 1, 0);
  expect(kind, ready, ready == 1 && what->revents == POLLIN);
}

static void write_to(enum Kind kind, int file) {
  const char* const from = page(kind, kind == kGood ? PROT_READ | PROT_WRITE : PROT_READ, -1);
  const long wrote = pwrite(file, from, kBytes, kPage);
  char back[kBytes] = "not written";
  const char zeros[kBytes] = {0};
  expect(kind, wrote,
         wrote == kBytes && pread(file, back, kBytes, kPage) == kBytes &&
             memcmp(back, zeros, kBytes) == 0);
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const int file = memfd_create("poll", 0);
  (void)mkdir("/tmp/empty", 0700);
  const int folder = open("/tmp/empty", O_RDONLY | O_DIRECTORY);
  const struct pollfd what = {.fd = file, .events = POLLIN};
  if (file < 0 || folder < 0 || write(file, &what, sizeof what) != sizeof what) return 1;
  if (ftruncate(file, kPage) != 0) return 1;

  syscall(SYS_getppid);
  for (enum Kind kind = kGood; kind <= kBad; ++kind) {
    for (int n = atoi(words[1 + kind]); n > 0; --n) {
      list(kind, folder);
      wait_for(kind, file);
      write_to(kind, file);
    }
  }
  syscall(SYS_getppid);
  printf("wrong %u\n", wrong);
  return wrong != 0;
}
