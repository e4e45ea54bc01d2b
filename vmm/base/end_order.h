// Whether the user has ordered this process to end. Signals go to the process and not to an object,
// so this is one state for the process. cli/messages/signals.h writes it. Code that may wait or
// work for more than a second or two asks it. Fire context: yes. Threads: any.
// Does not: end anything.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringside {

/// In the order in which they come.
enum class EndOrder : std::uint8_t {
  None,
  Given,   ///< what waits for a trace to begin gives up; what takes our things out goes on
  Hurried  ///< ordered again: what must be taken out is, and nothing is waited for
};

namespace detail {
inline std::atomic<EndOrder> end_order{EndOrder::None};
static_assert(std::atomic<EndOrder>::is_always_lock_free);
}  // namespace detail

inline EndOrder end_order() {
  return detail::end_order.load(std::memory_order_relaxed);
}
/// For who reads the signals, and for tests.
inline void set_end_order(EndOrder order) {
  detail::end_order.store(order, std::memory_order_relaxed);
}

}  // namespace ringside
