#include "cli/web/own_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/messages/messages.h"
#include "vmm/base/process.h"

namespace ringside::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// In the child, before exec: standard streams, and signals as a shell's child has them.
int take_streams(int input, int output, int errors) {
  const int fds[] = {input, output, errors};
  for (int as = 0; as < 3; ++as) {
    if (dup2(fds[as], as) < 0) return errno;
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  return 0;
}

/// False at the end of the stream.
bool read_some(const UniqueFd& from, std::string& to) {
  char buffer[64 << 10];
  const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
  if (got > 0) to.append(buffer, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

}  // namespace

Result<OwnCommand> start_own_command(std::vector<std::string> words, int input) {
  auto output = make_pipe(), errors = make_pipe();
  if (!output || !errors) {
    return fail(ErrorCode::Io, fmt::format("no pipe: {}", std::strerror(errno)));
  }
  UniqueFd nothing;
  if (input < 0) nothing = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int from = input < 0 ? nothing.get() : input;
  words.insert(words.begin(), program_name());
  const StartedProgram started = start_program("/proc/self/exe", words, [&] {
    return take_streams(from, output->writer.get(), errors->writer.get());
  });
  if (started.problem != 0) {
    return fail(ErrorCode::Io,
                fmt::format("cannot run {}: {}", program_name(), std::strerror(started.problem)));
  }
  return OwnCommand{started.child, open_pidfd(started.child), std::move(output->reader),
                    std::move(errors->reader)};
}

Result<CommandResult> run_own_command(std::vector<std::string> words, int input, std::size_t most,
                                      std::chrono::seconds time) {
  const std::string name = words.front();
  const OwnCommand command = TRY(start_own_command(std::move(words), input));
  const Clock::time_point end = Clock::now() + time;
  CommandResult result;
  std::string trouble;
  bool open[] = {true, true};
  while (trouble.empty() && (open[0] || open[1])) {
    pollfd fds[] = {{open[0] ? command.output.get() : -1, POLLIN, 0},
                    {open[1] ? command.errors.get() : -1, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    ::poll(fds, 2, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (fds[0].revents != 0) open[0] = read_some(command.output, result.output);
    if (fds[1].revents != 0) open[1] = read_some(command.errors, result.errors);
    if (left <= 0) trouble = fmt::format("{}: no answer for {} s", name, time.count());
    if (result.output.size() + result.errors.size() > most)
      trouble = fmt::format("{}: its answer is longer than {} MiB", name, most >> 20);
  }
  if (!trouble.empty()) signal_pidfd(command.process.get(), SIGKILL);
  const auto status = await_child(command.pid);
  if (!trouble.empty()) return fail(ErrorCode::Limit, trouble);
  result.status = status ? shell_status(*status) : kExitFailure;
  return result;
}

int shell_status(int wait_status) {
  constexpr int kSignalled = 128;
  return WIFSIGNALED(wait_status) ? kSignalled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace ringside::cli
