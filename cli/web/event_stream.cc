#include "cli/web/event_stream.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace ringside::cli {
namespace {

constexpr std::size_t kMostWaiting = 8 << 20;
/// A line without meaning, so that nobody takes the connection for dead.
constexpr int kPulseMs = 10'000;
constexpr std::string_view kNothing = ":\n\n";

enum class Came : std::uint8_t { Event, Nothing, Hangup };

/// Waits until `changed` is raised or the peer of the connection has gone.
Came wait_for_event(int changed, int connection) {
  pollfd fds[] = {{changed, POLLIN, 0}, {connection, POLLRDHUP, 0}};
  if (::poll(fds, 2, kPulseMs) == 0) return Came::Nothing;
  if (fds[1].revents != 0) return Came::Hangup;
  std::uint64_t count = 0;
  (void)!::read(changed, &count, sizeof count);
  return Came::Event;
}

}  // namespace

EventStream::EventStream() : changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void EventStream::append(std::string_view event) {
  waiting_ += "data: ";
  waiting_ += event;
  waiting_ += "\n\n";
}

bool EventStream::add(std::string_view event, bool urgent) {
  const std::lock_guard lock(mutex_);
  if (closed_ || (!urgent && waiting_.size() - taken_ > kMostWaiting)) return false;
  append(event);
  raise_event(changed_);
  return true;
}

void EventStream::set_latest(const std::string& name, std::string event) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  latest_[name] = std::move(event);
  raise_event(changed_);
}

void EventStream::settle(std::string_view prefix) {
  const std::lock_guard lock(mutex_);
  auto each = latest_.lower_bound(prefix);
  while (each != latest_.end() && each->first.starts_with(prefix)) {
    append(each->second);
    each = latest_.erase(each);
  }
}

std::size_t EventStream::read(char* buffer, std::size_t size, int connection) {
  std::unique_lock lock(mutex_);
  while (!closed_ && taken_ == waiting_.size() && latest_.empty()) {
    lock.unlock();
    const Came came = changed_ ? wait_for_event(changed_.get(), connection) : Came::Hangup;
    lock.lock();
    if (came == Came::Hangup) return 0;
    if (came == Came::Nothing) waiting_ += kNothing;
  }
  if (closed_) return 0;
  if (taken_ == waiting_.size()) {
    waiting_.clear();
    taken_ = 0;
    for (const auto& [name, event] : latest_) append(event);
    latest_.clear();
  }
  const std::size_t count = std::min(size, waiting_.size() - taken_);
  std::memcpy(buffer, waiting_.data() + taken_, count);
  taken_ += count;
  // Bytes that were taken go once they are more than those that wait, so each moves a few times.
  if (taken_ > waiting_.size() / 2) waiting_.erase(0, std::exchange(taken_, 0));
  return count;
}

void EventStream::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  raise_event(changed_);
}

bool EventStream::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace ringside::cli
