#include "cli/messages/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "vmm/base/end_order.h"

namespace ringside::cli {
namespace {

using std::chrono::milliseconds;
using Order = EndOrders::Order;

EndOrders::Time at(int ms) {
  return EndOrders::Time() + std::chrono::hours(1) + milliseconds(ms);
}

struct Signal {
  int signal;  // 0: there was none
  int ms;
};

Order order_after(const std::vector<Signal>& all) {
  EndOrders orders;
  for (const Signal& one : all) {
    if (one.signal == 0) {
      orders.note_silence(at(one.ms));
    } else {
      orders.take_signal(one.signal, at(one.ms));
    }
  }
  return orders.order();
}

TEST(EndOrders, SignalsAtOnceAreOneOrder) {
  EXPECT_EQ(order_after({{SIGTERM, 0}}), Order::End);
  EXPECT_EQ(order_after({{SIGTERM, 0}, {SIGTERM, 0}}), Order::End);               // timeout(1)
  EXPECT_EQ(order_after({{SIGHUP, 0}, {SIGHUP, 1}, {SIGTERM, 40}}), Order::End);  // ssh that drops
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 499}, {SIGINT, 499}}), Order::End);
}

TEST(EndOrders, SignalsThatAreReadLateAreOneOrderStill) {
  EXPECT_EQ(order_after({{SIGTERM, 0}, {SIGTERM, 3000}}), Order::End) << "both were there before";
}

TEST(EndOrders, AnotherOneAfterThePauseOfAKeyIsASecondOrder) {
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 500}, {SIGINT, 501}}), Order::Hurry);
  EXPECT_EQ(order_after({{SIGHUP, 0}, {0, 500}, {SIGTERM, 900}}), Order::Hurry);
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 500}, {SIGINT, 600}, {SIGINT, 700}}), Order::Hurry);
}

TEST(EndOrders, AHangUpIsNeverASecondOrder) {
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 500}, {SIGHUP, 9000}, {SIGHUP, 20'000}}), Order::End);
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 500}, {SIGHUP, 600}, {SIGINT, 601}}), Order::Hurry);
}

TEST(EndOrders, AThirdOneOrTheLimitIsTheEnd) {
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 500}, {SIGINT, 600}, {0, 1100}, {SIGINT, 1200}}),
            Order::AtOnce);
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 500}, {SIGINT, 600}, {0, 10'599}}), Order::Hurry);
  EXPECT_EQ(order_after({{SIGINT, 0}, {0, 500}, {SIGINT, 600}, {0, 10'600}}), Order::AtOnce);
}

TEST(EndOrders, SilenceIsLookedForOnlyWhileItMatters) {
  EndOrders orders;
  EXPECT_EQ(orders.next_check(), std::nullopt);
  orders.take_signal(SIGINT, at(0));
  EXPECT_EQ(orders.next_check(), at(500));
  orders.note_silence(at(500));
  EXPECT_EQ(orders.next_check(), std::nullopt);
  orders.take_signal(SIGINT, at(700));
  orders.note_silence(at(1300));
  EXPECT_EQ(orders.next_check(), at(10'700));
}

/// Returns once somebody has taken it.
void send(int signal) {
  kill(getpid(), signal);
  sigset_t pending;
  do {
    usleep(100);
    sigpending(&pending);
  } while (sigismember(&pending, signal) == 1);
}

/// As a user whose finger is quick, until it has become this order or the process has ended.
void press(EndOrder order) {
  while (end_order() < order) send(SIGINT);
}

void press_for_ever() {
  for (;;) send(SIGINT);
}

/// As a process of its own, whose session does this.
template <class Do>
[[noreturn]] void run(Do session) {
  {
    auto signals = Signals::block();
    if (!signals) _exit(9);
    session(*signals);
  }
  _exit(0);
}

TEST(SignalsTest, TwoAtOnceAreAnOrderToEndAndNoMore) {
  EXPECT_EXIT(run([](Signals&) {
                send(SIGTERM);
                send(SIGTERM);
                send(SIGHUP);
                press(EndOrder::Given);
                if (end_order() != EndOrder::Given) _exit(1);
              }),
              testing::ExitedWithCode(0), "^$");
}

TEST(SignalsTest, ASecondOrderEndsAProcessAtOnceThatOwesNothing) {
  EXPECT_EXIT(run([](Signals&) { press_for_ever(); }), testing::KilledBySignal(SIGINT), "^$");
  EXPECT_EXIT(run([](Signals& signals) {
                signals.owe_guest("some stayed");
                signals.settle_with_guest();
                press_for_ever();
              }),
              testing::KilledBySignal(SIGINT), "^$");
}

TEST(SignalsTest, ASecondOrderWaitsUntilTheGuestIsLeftInOrder) {
  EXPECT_EXIT(run([](Signals& signals) {
                signals.owe_guest("some stayed");
                press(EndOrder::Hurried);
                signals.settle_with_guest();
              }),
              testing::KilledBySignal(SIGINT),
              "taking everything out of the guest.*\n.*before the results were printed\n$");
}

TEST(SignalsTest, AThirdOrderEndsItAtOnceAndSaysWhatMayHaveStayed) {
  EXPECT_EXIT(run([](Signals& signals) {
                signals.owe_guest("some stayed");
                press_for_ever();
              }),
              testing::KilledBySignal(SIGINT), ": some stayed\n$");
}

}  // namespace
}  // namespace ringside::cli
