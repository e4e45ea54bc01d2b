// In this file, top to bottom: what signals mean, the thread that reads them, the session's side.
#include "cli/messages/signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "cli/messages/messages.h"
#include "vmm/base/end_order.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {
namespace {

using Order = EndOrders::Order;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kSecondOrder =
    "taking everything out of the guest before the end; once more ends at once";
constexpr std::string_view kNoResults = "ended by a second signal, before the results were printed";

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

/// Of a signal that came, its number; 0 when there is none.
int take_from(int fd) {
  signalfd_siginfo info;
  return ::read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

/// Nothing may delay the end: no thread that writes to stderr, and no reader that reads no more.
void say_now(std::string_view words) {
  const std::string line = fmt::format("{}: {}\n", program_name(), words);
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1) (void)!::write(STDERR_FILENO, line.data(), line.size());
}

/// As the signal would have done, had nobody blocked it.
void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(signal);
}

}  // namespace

Order EndOrders::take_signal(int signal, Time now) {
  const bool counts = open_ && (order_ == Order::None || signal != SIGHUP);
  if (!counts || order_ == Order::AtOnce) return order_;
  order_ = static_cast<Order>(static_cast<unsigned>(order_) + 1);
  last_ = now;
  open_ = false;
  return order_;
}

Order EndOrders::note_silence(Time now) {
  open_ |= now - last_ >= kKeyPause;
  if (order_ == Order::Hurry && now - last_ >= kTimeToLeave) order_ = Order::AtOnce;
  return order_;
}

std::optional<EndOrders::Time> EndOrders::next_check() const {
  if (!open_) return last_ + kKeyPause;
  if (order_ == Order::Hurry) return last_ + kTimeToLeave;
  return std::nullopt;
}

struct Signals::Shared {
  Shared(UniqueFd from, UniqueFd to, UniqueFd end)
      : signals(std::move(from)), ordered(std::move(to)), stop(std::move(end)) {}

  void read_all();
  void obey(Order order);
  void end_if_ordered();

  UniqueFd signals, ordered, stop;
  EndOrders orders;  // the thread's
  std::mutex mutex;  // of what follows
  bool owes = false;
  std::string last_words;
  Order told = Order::None;
  int signal = SIGTERM;  // the last one
  std::thread thread;    // waits until `stop` is readable
};

void Signals::Shared::read_all() {
  for (;;) {
    const auto look = orders.next_check();
    int nap = -1;
    if (look) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*look - Clock::now()).count();
      nap = static_cast<int>(std::max<std::int64_t>(left, 0));
    }
    pollfd fds[] = {{signals.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}};
    const int ready = ::poll(fds, 2, nap);
    if (fds[1].revents != 0) return;
    const int came = ready > 0 ? take_from(signals.get()) : 0;
    if (came != 0) {
      const std::lock_guard lock(mutex);
      signal = came;
    }
    obey(came != 0 ? orders.take_signal(came, Clock::now()) : orders.note_silence(Clock::now()));
  }
}

void Signals::Shared::obey(Order order) {
  const std::lock_guard lock(mutex);
  if (order == std::exchange(told, order)) return;
  set_end_order(order == Order::End ? EndOrder::Given : EndOrder::Hurried);
  raise_event(ordered);
  if (order == Order::Hurry && owes) say_now(kSecondOrder);
  if (order == Order::AtOnce && owes) {
    say_now(last_words);
    end_by(signal);
  }
  end_if_ordered();
}

void Signals::Shared::end_if_ordered() {
  if (!owes && told >= Order::Hurry) end_by(signal);
}

void Signals::End::operator()(Shared* shared) const {
  raise_event(shared->stop);
  shared->thread.join();
  delete shared;
}

Result<Signals> Signals::block() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is its writer's error
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  UniqueFd ordered(eventfd(0, EFD_CLOEXEC)), stop(eventfd(0, EFD_CLOEXEC));
  if (!fd || !ordered || !stop) {
    return fail(ErrorCode::Io, fmt::format("signalfd: {}", std::strerror(errno)));
  }
  set_end_order(EndOrder::None);
  auto* const shared = new Shared(std::move(fd), std::move(ordered), std::move(stop));
  shared->thread = std::thread([shared] { shared->read_all(); });
  return Signals(std::unique_ptr<Shared, End>(shared));
}

Signals::~Signals() = default;

int Signals::fd() const {
  return shared_->ordered.get();
}

void Signals::owe_guest(std::string last_words) {
  const std::lock_guard lock(shared_->mutex);
  shared_->owes = true;
  shared_->last_words = std::move(last_words);
}

void Signals::settle_with_guest() {
  const std::lock_guard lock(shared_->mutex);
  const bool owed = std::exchange(shared_->owes, false);
  if (owed && shared_->told >= Order::Hurry) say_now(kNoResults);
  shared_->end_if_ordered();
}

}  // namespace ringside::cli
