// A known number of what vminfo and sysinfo count, in phases that begin with getppid(): the test of
// them (test_counters.py) says how many. Any failure is status 1 and a line on stderr.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

enum { kPage = 4096, kPiece = 65536, kPages = 500 };

static void reads_and_writes(int zero, int null) {
  char buffer[10];
  struct iovec both[2] = {{buffer, 4}, {buffer + 4, 6}}, seven = {buffer, 7};
  phase();  // 1
  for (int i = 0; i < 40; i++) need(read(zero, buffer, 10) == 10, "read");
  for (int i = 0; i < 4; i++) need(pread(zero, buffer, 10, 0) == 10, "pread");
  for (int i = 0; i < 3; i++) need(readv(zero, both, 2) == 10, "readv");
  for (int i = 0; i < 2; i++) need(preadv(zero, both, 2, 0) == 10, "preadv");
  phase();  // 2
  for (int i = 0; i < 30; i++) need(write(null, buffer, 7) == 7, "write");
  for (int i = 0; i < 2; i++) need(pwrite(null, buffer, 7, 0) == 7, "pwrite");
  for (int i = 0; i < 5; i++) need(writev(null, &seven, 1) == 7, "writev");
  for (int i = 0; i < 6; i++) need(pwritev(null, &seven, 1, 0) == 7, "pwritev");
}

static void processes(void) {
  phase();  // 3
  for (int i = 0; i < 5; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    need(waitpid(child, NULL, 0) == child, "fork");
  }
  for (int i = 0; i < 3; i++) {
    const pid_t child = vfork();
    if (child == 0) _exit(0);
    need(waitpid(child, NULL, 0) == child, "vfork");
  }
}

static void names(void) {
  struct stat what;
  char* const none[] = {NULL};
  phase();  // 4
  for (int i = 0; i < 2; i++) need(execve("/nothing", none, none) != 0, "execve");
  for (int i = 0; i < 6; i++) need(stat("/dev/null", &what) == 0, "stat");
  for (int i = 0; i < 3; i++) close(open("/dev/null", O_RDONLY));
}

static void messages(void) {
  struct {
    long type;
    char text[8];
  } message = {1, "hello"};
  struct sembuf up = {0, 1, 0};
  const int queue = msgget(IPC_PRIVATE, 0600), semaphore = semget(IPC_PRIVATE, 1, 0600);
  need(queue >= 0 && semaphore >= 0, "ipc");
  phase();  // 5
  for (int i = 0; i < 4; i++) {
    need(msgsnd(queue, &message, 8, 0) == 0, "msgsnd");
    need(msgrcv(queue, &message, 8, 0, 0) == 8, "msgrcv");
  }
  for (int i = 0; i < 3; i++) need(semop(semaphore, &up, 1) == 0, "semop");
}

static void pages(int disk) {
  char* const memory =
      mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(memory != MAP_FAILED && madvise(memory, kPages * kPage, MADV_NOHUGEPAGE) == 0, "mmap");
  phase();  // 6
  for (int i = 0; i < kPages; i++) ((volatile char*)memory)[i * kPage] = 1;
  if (disk < 0) return;
  phase();  // 7
  for (int i = 0; i < 8; i++) need(pread(disk, memory, kPiece, i * kPiece) == kPiece, "disk");
  for (int i = 0; i < 4; i++) need(pwrite(disk, memory, kPiece, 7 * kPiece) == kPiece, "disk");
}

static void major_faults(void) {
  const int disk = open("/dev/loop0", O_RDONLY);
  char* const memory = mmap(NULL, 64 * kPage, PROT_READ, MAP_PRIVATE, disk, 0);
  need(memory != MAP_FAILED && madvise(memory, 64 * kPage, MADV_RANDOM) == 0, "mmap");
  need(posix_fadvise(disk, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
  phase();  // 8
  for (int i = 0; i < 5; i++) (void)((volatile char*)memory)[i * 8 * kPage];
}

// With a word after its name it leaves out phases 7 and 8, those of the disk.
int main(int count, char** words) {
  const int has_disk = count == 1;
  (void)words;
  const int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
  const int disk = has_disk ? open("/dev/loop0", O_RDWR | O_DIRECT) : -1;
  need(zero >= 0 && null >= 0 && (disk >= 0 || !has_disk), "open");
  reads_and_writes(zero, null);
  processes();
  names();
  messages();
  pages(disk);
  if (has_disk) major_faults();
  phase();  // the last
  struct tms used;
  do times(&used);
  while (used.tms_utime < 20);
  return 0;
}
