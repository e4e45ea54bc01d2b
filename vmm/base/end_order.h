// Whether this process, or the work of this thread, has been ordered to end. Signals go to the
// process and not to an object, so theirs is one state for the process; cli/messages/signals.h
// writes it. A program that uses libringside orders one handle to end: while a call works for a
// handle, an EndOrderScope makes that handle's state the thread's. Code that may wait or work for
// more than a second or two asks end_order(). Fire context: yes. Threads: any.
// Does not: end anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ringside {

/// In the order in which they come.
enum class EndOrder : std::uint8_t {
  None,
  Given,   ///< what waits for a trace to begin gives up; what takes our things out goes on
  Hurried  ///< ordered again: what must be taken out is, and nothing is waited for
};

using EndOrderState = std::atomic<EndOrder>;
static_assert(EndOrderState::is_always_lock_free);

namespace detail {
inline EndOrderState end_order{EndOrder::None};
inline constinit thread_local const EndOrderState* end_order_of_thread = nullptr;
}  // namespace detail

inline EndOrder end_order() {
  const EndOrderState* const own = detail::end_order_of_thread;
  return (own != nullptr ? *own : detail::end_order).load(std::memory_order_relaxed);
}
/// The process's. For who reads the signals, and for tests.
inline void set_end_order(EndOrder order) {
  detail::end_order.store(order, std::memory_order_relaxed);
}

/// While it lives, end_order() on this thread is `state`, which must outlive it.
class EndOrderScope {
 public:
  explicit EndOrderScope(const EndOrderState& state)
      : before_(std::exchange(detail::end_order_of_thread, &state)) {}
  ~EndOrderScope() { detail::end_order_of_thread = before_; }
  EndOrderScope(const EndOrderScope&) = delete;
  EndOrderScope& operator=(const EndOrderScope&) = delete;

 private:
  const EndOrderState* before_;
};

}  // namespace ringside
