#include "library/handles.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace ringside::library {
namespace {

TEST(LibraryValues, ShowTypesAndParts) {
  const Tree tree = {{"small", -1}, {"large", UINT64_MAX}, {"real", 0.5},         {"flag", true},
                     {"text", "a"}, {"none", nullptr},     {"list", Tree{1U, 2U}}};
  const ringside_value* const value = lend_value(tree);

  EXPECT_EQ(ringside_value_kind(value), RINGSIDE_MAP);
  EXPECT_EQ(ringside_value_count(value), 7U);
  EXPECT_STREQ(ringside_value_name(value, 1, nullptr), "large");
  EXPECT_EQ(ringside_value_integer(ringside_value_field(value, "small")), -1);
  EXPECT_EQ(ringside_value_kind(ringside_value_field(value, "large")), RINGSIDE_UNSIGNED);
  EXPECT_EQ(ringside_value_unsigned(ringside_value_field(value, "large")), UINT64_MAX);
  EXPECT_EQ(ringside_value_real(ringside_value_field(value, "real")), 0.5);
  EXPECT_EQ(ringside_value_kind(ringside_value_field(value, "flag")), RINGSIDE_BOOL);
  EXPECT_EQ(ringside_value_kind(ringside_value_field(value, "none")), RINGSIDE_NULL);
  const ringside_value* const list = ringside_value_field(value, "list");
  EXPECT_EQ(ringside_value_kind(list), RINGSIDE_LIST);
  EXPECT_EQ(ringside_value_kind(ringside_value_at(list, 1)), RINGSIDE_INTEGER);
}

TEST(LibraryValues, OfAnotherKindOrAbsentAreEmpty) {
  const Tree text = "abc";
  std::size_t size = 7;

  EXPECT_EQ(ringside_value_kind(nullptr), RINGSIDE_NULL);
  EXPECT_EQ(ringside_value_integer(lend_value(text)), 0);
  EXPECT_EQ(ringside_value_count(lend_value(text)), 0U);
  EXPECT_EQ(ringside_value_at(lend_value(text), 0), nullptr);
  EXPECT_EQ(ringside_value_field(nullptr, "a"), nullptr);
  EXPECT_STREQ(ringside_value_text(nullptr, &size), "");
  EXPECT_EQ(size, 0U);
}

TEST(LibraryValues, TextsMayHaveNulsInside) {
  const Tree text = std::string("a\0b", 3);
  std::size_t size = 0;

  const char* const bytes = ringside_value_text(lend_value(text), &size);

  EXPECT_EQ(std::string(bytes, size), std::string("a\0b", 3));
}

TEST(LibraryErrors, AreUtf8AndMayBeLeftOut) {
  ringside_error* error = nullptr;

  tell_error(nullptr, Error{ErrorCode::Io, "nobody asks"});
  tell_error(&error, Error{ErrorCode::MachineGone, "gone \xff"});

  EXPECT_EQ(ringside_error_get_code(error), RINGSIDE_ERROR_GONE);
  EXPECT_STREQ(ringside_error_message(error), "gone \xef\xbf\xbd");
  EXPECT_EQ(ringside_error_line(error), 0);
  ringside_error_free(error);
}

TEST(LibraryCalls, SignalsWaitForTheirEnd) {
  static volatile std::sig_atomic_t handled;
  handled = 0;
  std::signal(SIGUSR1, [](int) { handled = 1; });
  {
    const BlockedSignals blocked;
    raise(SIGUSR1);
    EXPECT_EQ(handled, 0);
  }
  EXPECT_EQ(handled, 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(LibraryCalls, APeerThatHangsUpEndsNobody) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  {
    const BlockedSignals blocked;
    EXPECT_EQ(write(ends[1], "", 1), -1);
  }
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  close(ends[1]);
}

TEST(LibraryCalls, MessagesGoToTheHandleOfTheThread) {
  std::vector<std::string> first, second;
  const HandleOrder order;
  const cli::MessageReceiver to_first = [&](std::string_view line) { first.emplace_back(line); };
  const cli::MessageReceiver to_second = [&](std::string_view line) { second.emplace_back(line); };

  const Call call(order, to_first);
  std::thread([&] {
    const Call other(order, to_second);
    cli::say("second");
  }).join();
  cli::say("first");

  EXPECT_EQ(first, std::vector<std::string>{"first"});
  EXPECT_EQ(second, std::vector<std::string>{"second"});
}

TEST(LibraryOrders, AreAboutTheirOwnHandle) {
  HandleOrder ordered, other;
  const cli::MessageReceiver nobody = [](std::string_view) {};

  ordered.give();

  {
    const Call call(ordered, nobody);
    EXPECT_EQ(end_order(), EndOrder::Given);
    const Call inner(other, nobody);
    EXPECT_EQ(end_order(), EndOrder::None);
  }
  EXPECT_EQ(end_order(), EndOrder::None);
  pollfd event{ordered.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 0), 1);
  ordered.give();
  EXPECT_EQ(ordered.state().load(), EndOrder::Hurried);
}

TEST(LibraryMachines, ThatAreNotThereAreErrors) {
  ringside_error* error = nullptr;

  EXPECT_EQ(ringside_open("qmp:/nowhere/at/all", &error), nullptr);

  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(ringside_error_message(error)).find("/nowhere/at/all"), std::string::npos);
  ringside_error_free(error);
}

}  // namespace
}  // namespace ringside::library
