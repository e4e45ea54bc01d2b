#include "cli/guest/guest_command.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ringside::cli {
namespace {

using Kind = GuestMessage::Kind;

class GuestCommandTest : public testing::Test {
 protected:
  GuestCommandTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control_), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, output_), 0);
  }
  ~GuestCommandTest() override {
    for (const int fd : {control_[0], control_[1], output_[0], output_[1]}) close(fd);
  }
  static void put(int fd, std::string_view text) {
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string sent() {
    char bytes[256];
    const ssize_t size = recv(control_[1], bytes, sizeof bytes, MSG_DONTWAIT);
    return {bytes, static_cast<std::size_t>(size > 0 ? size : 0)};
  }
  GuestCommand command() { return GuestCommand({control_[0], output_[0]}); }

  int control_[2] = {-1, -1}, output_[2] = {-1, -1};  // [0] ours, [1] the guest's
};

TEST(GuestLine, KnownOnesAreParsedStrictly) {
  EXPECT_EQ(parse_guest_line("ready")->kind, Kind::Ready);
  EXPECT_EQ(parse_guest_line("pid 123")->number, 123);
  EXPECT_EQ(parse_guest_line("exit 130")->number, 130);
  EXPECT_EQ(parse_guest_line("error no \x1b[31m")->text, "no ?[31m");
  EXPECT_EQ(*parse_guest_line("err 610aff"), (GuestMessage{Kind::StandardError, 0, "a\n\xff"}));
  for (const char* bad :
       {"", "ready ", "pid", "pid 0", "pid -1", "pid 1x", "pid 99999999999", "exit 256", "exit  1",
        "pid +1", "READY", "err", "err ", "err 6", "err 6g", "err +1"}) {
    EXPECT_FALSE(parse_guest_line(bad)) << bad;
  }
}

TEST_F(GuestCommandTest, SendsTheCommandInHexAndThenGo) {
  GuestCommand port = command();

  ASSERT_TRUE(port.request("ls\n", GuestCommand::Errors::Together));
  EXPECT_EQ(sent(), "run 6c730a\n");
  ASSERT_TRUE(port.request("ls", GuestCommand::Errors::Apart));
  EXPECT_EQ(sent(), "run-apart 6c73\n");
  ASSERT_TRUE(port.begin());
  EXPECT_EQ(sent(), "begin\n");
  ASSERT_TRUE(port.go());
  EXPECT_EQ(sent(), "go\n");
  EXPECT_FALSE(port.request("", GuestCommand::Errors::Apart));
  EXPECT_FALSE(port.request(std::string(16384, 'x'), GuestCommand::Errors::Apart));
}

TEST_F(GuestCommandTest, AnOlderImageIsToldByItsAnswer) {
  GuestCommand port = command();

  put(control_[1], "error no pipe\nerror unknown request\npid 7\n");
  ASSERT_TRUE(port.read_control());
  EXPECT_TRUE(port.next_message());
  EXPECT_FALSE(port.lacks_request());
  EXPECT_TRUE(port.next_message());
  EXPECT_TRUE(port.lacks_request());
  EXPECT_TRUE(port.next_message());
  EXPECT_FALSE(port.lacks_request());
}

TEST_F(GuestCommandTest, LinesMayComeInPieces) {
  GuestCommand port = command();

  put(control_[1], "ready\npi");
  ASSERT_TRUE(port.read_control());
  EXPECT_EQ((*port.next_message())->kind, Kind::Ready);
  EXPECT_EQ(*port.next_message(), std::nullopt);
  put(control_[1], "d 42\n");
  ASSERT_TRUE(port.read_control());

  EXPECT_EQ((*port.next_message())->number, 42);
}

TEST_F(GuestCommandTest, LongLinesAndNonsenseAreErrors) {
  GuestCommand port = command();

  put(control_[1], std::string(600, 'a'));
  ASSERT_TRUE(port.read_control());
  EXPECT_EQ(port.next_message().error().code, ErrorCode::Invalid);
  put(control_[1], "what\n");
  ASSERT_TRUE(port.read_control());
  EXPECT_EQ(port.next_message().error().message, "the guest's command port sent 'what'");
}

TEST_F(GuestCommandTest, AClosedPortIsTold) {
  GuestCommand port = command();
  shutdown(control_[1], SHUT_RDWR);

  EXPECT_EQ(port.read_control().error().code, ErrorCode::MachineGone);
}

TEST_F(GuestCommandTest, OutputIsReadWithoutWaiting) {
  GuestCommand port = command();
  std::string text;

  EXPECT_TRUE(port.read_output(text));
  put(output_[1], std::string("a\0b", 3));
  EXPECT_TRUE(port.read_output(text));
  shutdown(output_[1], SHUT_RDWR);

  EXPECT_FALSE(port.read_output(text));
  EXPECT_EQ(text, std::string("a\0b", 3));
}

}  // namespace
}  // namespace ringside::cli
