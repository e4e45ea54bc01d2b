// Throws and catches exceptions a known number of times: `throws NUMBER` goes to the background,
// says its process number, and waits until /tmp/go exists. Then /tmp/said gets the numbers.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

__attribute__((noinline)) void fail(long n) {
  if (n % 2 == 0) throw std::runtime_error("even");
  throw n;
}

int main(int, char **arguments) {
  const long number = std::atol(arguments[1]);
  if (const int child = fork(); child != 0) {
    std::printf("process %d\n", child);
    return 0;
  }
  if (std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
  while (access("/tmp/go", F_OK) != 0) usleep(10000);
  long caught = 0;
  for (long n = 0; n < number; ++n) {
    try {
      fail(n);
    } catch (const std::exception &) {
      ++caught;
    } catch (long) {
      ++caught;
    }
  }
  std::FILE *said = std::fopen("/tmp/saying", "w");
  std::fprintf(said, "throw %ld\ncatch %ld\n", number, caught);
  std::fclose(said);
  std::rename("/tmp/saying", "/tmp/said");
  pause();
}
