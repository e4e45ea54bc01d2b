// The watching thread. It ends when QEMU has, or when told to.
#include "vmm/qemu/qemu_watcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "vmm/base/process.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kConsoleTail = 16 << 10, kErrorTail = 4 << 10;
constexpr std::chrono::seconds kStatusTimeout(5);
// A chatty guest, or QEMU, must not keep us from the other descriptors.
constexpr unsigned kMaxReads = 64, kMaxRounds = 16;

}  // namespace

bool drain_into(TextTail& text, int fd) {
  std::array<char, 4096> chunk;
  for (unsigned reads = 0; reads < kMaxReads; ++reads) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got > 0) {
      text.append({chunk.data(), static_cast<std::size_t>(got)});
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
  return true;
}

QemuWatcher::QemuWatcher(ChildProcess& child, QmpClient monitor, UniqueFd console)
    : child_(child),
      monitor_(std::move(monitor)),
      console_(std::move(console)),
      console_text_(kConsoleTail),
      error_text_(kErrorTail) {}

Result<void> QemuWatcher::start() {
  state_event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state_event_ || !stop_event_ || fcntl(console_.get(), F_SETFL, O_NONBLOCK) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot watch QEMU: {}", std::strerror(errno)));
  }
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
  return {};
}

void QemuWatcher::stop() {
  if (!thread_.joinable()) return;
  raise_event(stop_event_);
  thread_.join();
}

void QemuWatcher::await_end() {
  if (thread_.joinable()) thread_.join();
}

std::string QemuWatcher::console_tail() const {
  const std::lock_guard lock(text_mutex_);
  return console_text_.text();
}

std::string QemuWatcher::exit_reason() const {
  if (state() != MachineState::Died) return {};
  const std::lock_guard lock(text_mutex_);
  const std::string_view last = error_text_.last_line();
  return last.empty() ? child_.ended_how() : fmt::format("{}: {}", child_.ended_how(), last);
}

void QemuWatcher::run() {
  follow_monitor();  // for events that came with the answer to the handshake
  for (;;) {
    pollfd entries[] = {{stop_event_.get(), POLLIN, 0},
                        {child_.pidfd(), POLLIN, 0},
                        {console_.get(), POLLIN, 0},
                        {errors_open_ ? child_.stderr_fd() : -1, POLLIN, 0},
                        {monitor_open_ ? monitor_.fd() : -1, POLLIN, 0}};
    if (poll(entries, std::size(entries), -1) < 0) continue;  // EINTR
    if (entries[0].revents != 0) return;
    drain_text();
    if (entries[4].revents != 0) follow_monitor();
    if (entries[1].revents != 0) return finish();
  }
}

void QemuWatcher::drain_text() {
  const std::lock_guard lock(text_mutex_);
  if (console_ && !drain_into(console_text_, console_.get())) console_.reset();
  if (errors_open_) errors_open_ = drain_into(error_text_, child_.stderr_fd());
}

/// Takes what has arrived, and no more: a monitor that talks on wakes poll again, which also looks
/// after all else. Only what a query brought along would not, so after one it looks once more.
void QemuWatcher::follow_monitor() {
  for (unsigned round = 0; round < kMaxRounds; ++round) {
    const auto taken = monitor_.take_in();
    bool stopped = false;
    while (const auto event = monitor_.next_event()) {
      end_.note(*event);
      stopped |= event->name == "STOP";
    }
    if (!taken) {
      monitor_open_ = false;
      // A monitor that closes is a QEMU that ends; one that talks nonsense cannot be trusted on.
      if (taken.error().code != ErrorCode::MachineGone) child_.kill();
      return;
    }
    if (!stopped || !check_why_stopped()) return;
  }
}

/// QEMU stops a guest that it cannot run on (KVM: an instruction that it cannot emulate) and waits
/// for somebody to look at it. Nobody will, and it would seem to hang.
/// False when it does not answer.
bool QemuWatcher::check_why_stopped() {
  if (paused_by_us_.load(std::memory_order_acquire)) return true;
  const auto answer = monitor_.execute("query-status", kStatusTimeout);
  if (!answer) return false;
  const std::string status = json_text(*answer, "status");
  if (status == "internal-error" || status == "io-error") child_.kill();
  return true;
}

/// QEMU has ended, so what its sockets hold now is all there will ever be.
void QemuWatcher::finish() {
  for (bool more = true; more;) {
    const std::lock_guard lock(text_mutex_);
    more = false;
    pollfd entry{console_.get(), POLLIN, 0};
    if (console_ && poll(&entry, 1, 0) > 0) {
      more = drain_into(console_text_, console_.get());
    }
  }
  if (monitor_open_) {
    bool open = true;  // until take_in() says that the peer has closed
    for (unsigned round = 0; open && round < kMaxRounds; ++round) {
      open = monitor_.take_in().has_value();
      while (const auto event = monitor_.next_event()) end_.note(*event);
    }
  }
  child_.reap();
  std::string console;
  {
    const std::lock_guard lock(text_mutex_);
    console = console_text_.text();
  }
  state_.store(end_.judge(console), std::memory_order_release);
  raise_event(state_event_);
}

}  // namespace ringside::vmm
