// The guardian's process makes only async-signal-safe calls: it is forked and never execs.
#include "vmm/qemu/guardian.h"

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
#include <string_view>

#include "vmm/base/await_child.h"
#include "vmm/qemu/peer_socket.h"

namespace ringside::vmm {
namespace {

constexpr int kPatience = 30'000;  // milliseconds; QEMU may be starting, or the host may swap

/// Right in whatever state we left the stub (QEMU 7.2 and 10.0, gdb_read_byte): a guest that runs
/// is stopped by the first byte, a packet cut short ends at the '#', anything else is skipped; then
/// the whole packet lets the guest go on.
constexpr std::string_view kDebuggerGoOn = "#00$c#63";
/// The byte ends a command that we left half-sent (QEMU docs: interop/qmp-spec, "Synchronization").
constexpr std::string_view kMonitorGoOn = "\xff\n{\"execute\": \"cont\"}\n";

constexpr char kHold = 'h', kLetBe = 'l', kRelease = 'r';

/// Lets the guest go on and sees to it that QEMU hears of it.
void let_guest_go_on(int connection, std::string_view words) {
  while (!words.empty()) {
    const ssize_t sent = send(connection, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      words.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    pollfd entry{connection, POLLOUT, 0};
    if (errno == EINTR) continue;
    if (errno != EAGAIN || poll(&entry, 1, kPatience) != 1) return;  // QEMU has gone, or hangs
  }
  await_taken(connection, kPatience);
}

/// Obeys until we end or send it home; whether the guest is to be let go then.
bool obey(int life, bool holds) {
  for (;;) {
    char word = 0;
    const ssize_t got = read(life, &word, 1);
    if (got == 0) return holds;
    if (got < 0 && errno != EINTR) return holds;
    if (got < 0) continue;
    if (word == kRelease) return false;
    holds = word == kHold;
  }
}

[[noreturn]] void guard(int connection, int life, Guardian::Peer peer, Guardian::When when) {
  setsid();  // the terminal's signals are not for us
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "ringside-guard");
  // Only these two stay open: our copies of others would hide the end of either side.
  const int low = std::min(connection, life), high = std::max(connection, life);
  if (low > 0) close_range(0, static_cast<unsigned>(low) - 1, 0);
  if (high > low + 1) {
    close_range(static_cast<unsigned>(low) + 1, static_cast<unsigned>(high) - 1, 0);
  }
  close_range(static_cast<unsigned>(high) + 1, ~0U, 0);
  const bool debugger = peer == Guardian::Peer::Debugger;
  if (obey(life, when == Guardian::When::Always)) {
    let_guest_go_on(connection, debugger ? kDebuggerGoOn : kMonitorGoOn);
  }
  _exit(0);
}

}  // namespace

Result<Guardian> Guardian::start(int connection, Peer peer, When when) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  const UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    return fail(ErrorCode::Io,
                fmt::format("cannot start the guest's guardian: {}", std::strerror(errno)));
  }
  if (pid == 0) guard(connection, theirs.get(), peer, when);
  return Guardian(pid, std::move(ours));
}

void Guardian::send_word(char word) {
  (void)!send(life_.get(), &word, 1, MSG_NOSIGNAL);  // fails only when it is gone already
}

void Guardian::release() {
  if (pid_ == 0) return;
  send_word(kRelease);
  life_.reset();
  await_child(pid_);
  pid_ = 0;
}

}  // namespace ringside::vmm
