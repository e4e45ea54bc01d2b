// SIGINT, SIGTERM and SIGHUP: which of them count as one order to end, which as a second order, and
// what each order does. A thread reads them for as long as a session lasts. Code that waits polls
// fd(), or asks end_order() (vmm/base/end_order.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

/// Makes orders of signals. One order often comes as several signals: timeout(1) sends SIGTERM to
/// its child and to its group, and a terminal that closes sends SIGHUP by the kernel and by the
/// shell. So a signal is another order only if it comes later than a user could press the key
/// again, and no signal was waiting then. SIGHUP never is another order: no key sends it.
class EndOrders {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kKeyPause{500};
  /// How long it may take to leave a guest in order after the second order.
  static constexpr std::chrono::seconds kTimeToLeave{10};

  enum class Order : std::uint8_t { None, End, Hurry, AtOnce };
  Order order() const { return order_; }
  /// A signal was read.
  Order take_signal(int signal, Time now);
  /// No signal was there to be read.
  Order note_silence(Time now);
  /// When to look again whether there is silence; never: nothing changes without a signal.
  std::optional<Time> next_check() const;

 private:
  Order order_ = Order::None;
  Time last_{};       // when order_ came
  bool open_ = true;  // the next signal is an order
};

/// Orders to end, as a session waits for them. The command has them from signals, a program that
/// uses libringside gives them itself.
class EndEvents {
 public:
  virtual ~EndEvents() = default;

  /// Readable from the first order on.
  virtual int fd() const = 0;
  /// From now on a guest that outlives us has something of ours in it. `last_words` are for an end
  /// that leaves it there.
  virtual void owe_guest(std::string last_words) = 0;
  /// Nothing of ours is in a guest any more.
  virtual void settle_with_guest() = 0;

 protected:
  EndEvents() = default;
  EndEvents(const EndEvents&) = default;
  EndEvents& operator=(const EndEvents&) = default;
};

class Signals final : public EndEvents {
 public:
  /// Blocks the signals in this thread and in all threads that it starts later. Ignores SIGPIPE:
  /// writes fail with EPIPE instead. Call it before any other thread is started. Only one may
  /// exist.
  static Result<Signals> block();
  Signals(Signals&&) = default;
  ~Signals() override;

  int fd() const override;

  /// A second order leaves the guest in order first, a third one ends the process at once, with
  /// these words. Before this a second one ends it at once.
  void owe_guest(std::string last_words) override;
  /// Ends the process if that was the order meanwhile.
  void settle_with_guest() override;

 private:
  struct Shared;
  struct End {
    void operator()(Shared* shared) const;
  };

  explicit Signals(std::unique_ptr<Shared, End> shared) : shared_(std::move(shared)) {}
  std::unique_ptr<Shared, End> shared_;
};

}  // namespace ringside::cli
