/* For programs that work in the background when they are told to, and say what they have done. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* Returns in the background. In the foreground it says the background's process number, and ends. */
static inline void go_to_background(void) {
  const pid_t child = fork();
  if (child != 0) {
    printf("process %d\n", child);
    fflush(stdout);
    _exit(0);
  }
  setsid();
  const int nowhere = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(nowhere, fd);
}

/* Not by usleep(), which a test counts. */
static inline void wait_for_word(void) {
  while (access("/tmp/go", F_OK) != 0) poll(NULL, 0, 10);
}

/* Text that is written between these two is in /tmp/said at once. */
static inline FILE *begin_saying(void) {
  return fopen("/tmp/saying", "w");
}
static inline void end_saying(FILE *said) {
  fclose(said);
  rename("/tmp/saying", "/tmp/said");
}
