/* `crowd NUMBER`: so many processes that sleep, all of this program. Says the process number of the last one. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline, noclone)) long adds(long a, long b) {
  __asm__ volatile("" : : : "memory");
  return a + b;
}

int main(int count, char **words) {
  if (count != 2) return 2;
  int last = 0;
  for (long left = atol(words[1]); left > 0; --left) {
    last = fork();
    if (last < 0) return 1;
    if (last == 0) {
      close(0), close(1), close(2);
      for (;;) pause();
    }
  }
  printf("process %d sum %ld\n", last, adds(1, 2));
  return 0;
}
