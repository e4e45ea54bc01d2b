// The guardian's process makes only async-signal-safe calls: it is forked and never execs.
#include "vmm/qemu/guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "vmm/base/process.h"
#include "vmm/qemu/peer_socket.h"

namespace ringside::vmm {
namespace {

constexpr int kTimeout = 30'000;  // milliseconds; QEMU may be starting, or the host may swap
/// A monitor that stops the guest listens again when all I/O of the guest has ended.
constexpr int kMonitorTimeout = 3'600'000;

/// Right in whatever state we left QEMU's gdbstub (guardian_test.cc and live_guardian_test.cc have
/// them all). '+' acknowledges the news of a stop: without it the stub skips everything up to a
/// '$'.
/// '#00' ends a packet that was cut short. A byte that is neither stops a guest that runs. The
/// first `c` lets the guest go on, but for one that ran when a packet was cut short: there the
/// packet takes it in, and the second one counts. After a `c` that counted the second '+' stops the
/// guest again, and the second `c` lets it go on again.
constexpr std::string_view kDebuggerGoOn = "+#00$c#63+$c#63";
/// The byte ends a command that we left half-sent (QEMU docs: interop/qmp-spec, "Synchronization").
constexpr std::string_view kMonitorGoOn = "\xff\n{\"execute\": \"cont\"}\n";

constexpr int kLookEvery = 100;  // milliseconds; at a master that holds a guest

constexpr std::string_view kStoppedTooLong =
    "ringside: ended by its guardian: it was stopped while it held the guest still\n";

constexpr char kHold = 'h', kLetBe = 'l', kRelease = 'r';

/// Lets the guest go on and sees to it that QEMU hears of it; whether it has.
bool let_guest_go_on(int connection, std::string_view words, int timeout) {
  while (!words.empty()) {
    const ssize_t sent = send(connection, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      words.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    pollfd entry{connection, POLLOUT, 0};
    if (errno == EINTR) continue;
    if (errno != EAGAIN || poll(&entry, 1, timeout) != 1) return false;  // it has gone, or hangs
  }
  return await_taken(connection, timeout);
}

/// The process that is guarded, with the paths under /proc that belong to it.
struct Master {
  pid_t pid = getpid();
  std::string stat = fmt::format("/proc/{}/stat", pid), errors = fmt::format("/proc/{}/fd/2", pid);
};

/// By a signal; not by a debugger, whose user knows what stands still.
bool is_stopped(const Master& master) {
  char text[64];  // "PID (NAME) STATE ...", NAME of at most 15 bytes
  const UniqueFd file(open(master.stat.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = read(file.get(), text, sizeof text);
  const std::string_view said(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const std::size_t name_end = said.rfind(") ");
  return name_end != said.npos && said.substr(name_end + 2).starts_with('T');
}

/// Waits for an order, or for the master's end. Ends a master that is stopped for longer than that.
void await_order(int life, const Master& master, int timeout) {
  pollfd entry{life, POLLIN, 0};
  for (int stopped = 0; poll(&entry, 1, kLookEvery) == 0;) {
    stopped = is_stopped(master) ? stopped + kLookEvery : 0;
    if (stopped <= timeout) continue;
    const UniqueFd errors(open(master.errors.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    (void)!write(errors.get(), kStoppedTooLong.data(), kStoppedTooLong.size());
    kill(master.pid, SIGKILL);
    return;
  }
}

/// Obeys until we end or send it home; whether the guest is to be let go then. `timeout` is
/// negative where nobody tells when the guest is held.
bool obey(int life, bool holds, const Master& master, int timeout) {
  for (;;) {
    if (holds && timeout >= 0) await_order(life, master, timeout);
    char word = 0;
    const ssize_t got = read(life, &word, 1);
    if (got == 0) return holds;
    if (got < 0 && errno != EINTR) return holds;
    if (got < 0) continue;
    if (word == kRelease) return false;
    holds = word == kHold;
  }
}

/// Only these two stay open, or one where the other is negative: our copies of others would hide
/// the end of either side.
void close_others(int one, int other) {
  unsigned from = 0;
  for (const int kept : {std::min(one, other), std::max(one, other)}) {
    if (kept < 0) continue;
    const auto open = static_cast<unsigned>(kept);
    if (open > from) close_range(from, open - 1, 0);
    from = open + 1;
  }
  close_range(from, ~0U, 0);
}

[[noreturn]] void guard(int connection, int life, Guardian::Peer peer, const Master& master,
                        const std::string& mark, int timeout) {
  setsid();  // the terminal's signals are not for us
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "ringside-guard");
  close_others(connection, life);
  const bool debugger = peer == Guardian::Peer::Debugger;
  if (obey(life, timeout < 0, master, timeout) && peer != Guardian::Peer::None) {
    const bool gone = let_guest_go_on(connection, debugger ? kDebuggerGoOn : kMonitorGoOn,
                                      debugger ? kTimeout : kMonitorTimeout);
    if (gone && !mark.empty()) unlink(mark.c_str());
  }
  _exit(0);
}

}  // namespace

Result<Guardian> Guardian::start(int connection, Peer peer, When when, const std::string& mark,
                                 std::chrono::milliseconds timeout) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  const UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  const Master master;  // made here: the other process must not allocate
  const int stopped = when == When::Always ? -1 : static_cast<int>(timeout.count());
  const pid_t pid = fork();
  if (pid < 0) {
    return fail(ErrorCode::Io,
                fmt::format("cannot start the guest's guardian: {}", std::strerror(errno)));
  }
  if (pid == 0) guard(connection, theirs.get(), peer, master, mark, stopped);
  return Guardian(pid, std::move(ours));
}

void Guardian::send_word(char word) {
  (void)!send(life_.get(), &word, 1, MSG_NOSIGNAL);  // fails only when it is gone already
}

void Guardian::outlive_us() {
  hold();
  pid_ = 0;
  life_.reset();
}

void Guardian::release() {
  if (pid_ == 0) return;
  send_word(kRelease);
  life_.reset();
  await_child(pid_);
  pid_ = 0;
}

}  // namespace ringside::vmm
