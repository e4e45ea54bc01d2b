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
constexpr std::string_view kGoOn = "#00$c#63";

/// Lets the guest go on and sees to it that QEMU hears of it.
void let_guest_go_on(int gdb) {
  std::string_view left = kGoOn;
  while (!left.empty()) {
    const ssize_t sent = send(gdb, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    pollfd entry{gdb, POLLOUT, 0};
    if (errno == EINTR) continue;
    if (errno != EAGAIN || poll(&entry, 1, kPatience) != 1) return;  // QEMU has gone, or hangs
  }
  await_taken(gdb, kPatience);
}

[[noreturn]] void guard(int gdb, int life) {
  setsid();  // the terminal's signals are not for us
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "ringside-guard");
  // Only these two stay open: our copies of others would hide the end of either side.
  const int low = std::min(gdb, life), high = std::max(gdb, life);
  if (low > 0) close_range(0, static_cast<unsigned>(low) - 1, 0);
  if (high > low + 1) {
    close_range(static_cast<unsigned>(low) + 1, static_cast<unsigned>(high) - 1, 0);
  }
  close_range(static_cast<unsigned>(high) + 1, ~0U, 0);
  char word;
  ssize_t got;
  do {
    got = read(life, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 0) let_guest_go_on(gdb);
  _exit(0);
}

}  // namespace

Result<Guardian> Guardian::start(int gdb) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  const UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    return fail(ErrorCode::Io,
                fmt::format("cannot start the kept guest's guardian: {}", std::strerror(errno)));
  }
  if (pid == 0) guard(gdb, theirs.get());
  return Guardian(pid, std::move(ours));
}

void Guardian::release() {
  if (pid_ == 0) return;
  (void)!send(life_.get(), "", 1, MSG_NOSIGNAL);  // fails only when it is gone already
  life_.reset();
  await_child(pid_);
  pid_ = 0;
}

}  // namespace ringside::vmm
