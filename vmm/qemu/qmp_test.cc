#include "vmm/qemu/qmp.h"

#include <gtest/gtest.h>

#include <string>

#include "vmm/qemu/fake_peer.h"

namespace ringside::vmm {
namespace {

constexpr std::chrono::milliseconds kTimeout(5000);
constexpr char kGreeting[] = "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n";

void greet(FakePeer& peer) {
  peer.send(kGreeting);
  peer.receive_until("\n");
  peer.send("{\"return\": {}, \"id\": 1}\r\n");
}

TEST(Qmp, ShakesHandsAndReturnsAValue) {
  std::string request;
  FakePeer qemu([&](FakePeer& peer) {
    greet(peer);
    request = peer.receive_until("\n");
    peer.send("{\"return\": {\"status\": \"running\"}, \"id\": 2}\r\n");
  });
  QmpClient qmp(qemu.client());

  ASSERT_TRUE(qmp.handshake(kTimeout));
  const auto answer = qmp.execute("query-status", kTimeout);

  ASSERT_TRUE(answer);
  EXPECT_EQ(json_text(*answer, "status"), "running");
  EXPECT_EQ(request, "{\"execute\": \"query-status\", \"id\": 2}\n");
}

TEST(Qmp, KeepsTheEventsThatArriveBetweenAnswers) {
  FakePeer qemu([](FakePeer& peer) {
    greet(peer);
    peer.receive_until("\n");
    peer.send("{\"event\": \"STOP\", \"timestamp\": {}}\r\n{\"return\": 7, \"id\": 1}\r\n");
    peer.send("{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": \"guest-reset\"}}\r\n");
    peer.send("{\"return\": {}, \"id\": 2}\r\n");
  });
  QmpClient qmp(qemu.client());

  ASSERT_TRUE(qmp.handshake(kTimeout));
  ASSERT_TRUE(qmp.execute("query-status", kTimeout)) << "the answer to another request is skipped";
  const auto stop = qmp.next_event(), shutdown = qmp.next_event();

  ASSERT_TRUE(stop && shutdown);
  EXPECT_EQ(stop->name, "STOP");
  EXPECT_TRUE(stop->data.is_object());
  EXPECT_EQ(shutdown->name, "SHUTDOWN");
  EXPECT_EQ(json_text(shutdown->data, "reason"), "guest-reset");
  EXPECT_FALSE(qmp.next_event());
}

TEST(Qmp, ReportsARefusalInQemusWords) {
  FakePeer qemu([](FakePeer& peer) {
    greet(peer);
    peer.receive_until("\n");
    peer.send("{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"no such thing\"}}\r\n");
  });
  QmpClient qmp(qemu.client());

  ASSERT_TRUE(qmp.handshake(kTimeout));
  const auto answer = qmp.execute("frobnicate", kTimeout);

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "QEMU refused frobnicate: no such thing");
}

TEST(Qmp, ARefusalDoesNotSteerTheTerminal) {
  FakePeer qemu([](FakePeer& peer) {
    greet(peer);
    peer.receive_until("\n");
    peer.send("{\"error\": {\"desc\": \"\\u001b[2J\\nfake: all is well\"}}\r\n");
  });
  QmpClient qmp(qemu.client());

  ASSERT_TRUE(qmp.handshake(kTimeout));
  const auto answer = qmp.execute("frobnicate", kTimeout);

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "QEMU refused frobnicate: ?[2J?fake: all is well");
}

/// The result of a handshake with a peer that sends `bytes` and then closes.
ErrorCode handshake_against(const std::string& bytes) {
  FakePeer qemu([&](FakePeer& peer) {
    peer.send(bytes);
    if (bytes.starts_with(kGreeting)) peer.receive_until("\n");
  });
  QmpClient qmp(qemu.client());
  const auto done = qmp.handshake(kTimeout);
  return done ? ErrorCode::Usage : done.error().code;
}

TEST(Qmp, SurvivesHostileAnswers) {
  EXPECT_EQ(handshake_against(""), ErrorCode::MachineGone);
  EXPECT_EQ(handshake_against("{\"QMP\": "), ErrorCode::MachineGone) << "end in a line";
  EXPECT_EQ(handshake_against("\n"), ErrorCode::Invalid);
  EXPECT_EQ(handshake_against("garbage\n"), ErrorCode::Invalid);
  EXPECT_EQ(handshake_against("[1]\n"), ErrorCode::Invalid);
  EXPECT_EQ(handshake_against("{\"event\": \"STOP\"}\n"), ErrorCode::Invalid) << "no greeting";
  EXPECT_EQ(handshake_against("{\"QMP\": \"\xff\xfe\"}\n"), ErrorCode::Invalid) << "no UTF-8";
  EXPECT_EQ(handshake_against(std::string(9 << 20, '[')), ErrorCode::Invalid) << "no line end";
  EXPECT_EQ(handshake_against(std::string(100'000, '[') + "\n"), ErrorCode::Invalid) << "too deep";
  EXPECT_EQ(handshake_against("{\"QMP\": " + std::string(500'000, '[') + std::string(500'000, ']') +
                              "}\n"),
            ErrorCode::Invalid);
  EXPECT_EQ(handshake_against(std::string(kGreeting) + "{\"id\": 1}\n"), ErrorCode::Invalid);
  EXPECT_EQ(handshake_against(std::string(kGreeting) + "{\"error\": 3, \"id\": 1}\n"),
            ErrorCode::Invalid);
}

TEST(Qmp, TakesInWhatIsThereAndSaysWhenThePeerIsGone) {
  FakePeer qemu([](FakePeer& peer) {
    greet(peer);
    for (int i = 0; i < 5000; ++i) peer.send("{\"event\": \"RTC_CHANGE\", \"data\": 5}\r\n");
    peer.send("{\"event\": \"RESET\"}\r\n");
  });
  QmpClient qmp(qemu.client());
  ASSERT_TRUE(qmp.handshake(kTimeout));

  Result<void> taken;
  while ((taken = qmp.take_in())) std::this_thread::yield();

  EXPECT_EQ(taken.error().code, ErrorCode::MachineGone);
  unsigned events = 0;
  std::string last;
  while (const auto event = qmp.next_event()) {
    ++events;
    last = event->name;
  }
  EXPECT_LE(events, 256u) << "a flood is bounded";
  EXPECT_EQ(last, "RESET") << "and the latest survive it";
}

TEST(Qmp, GivesUpOnAPeerThatSaysNothing) {
  FakePeer qemu([](FakePeer& peer) { peer.receive_until("never sent"); });
  QmpClient qmp(qemu.client());

  const auto done = qmp.handshake(std::chrono::milliseconds(20));

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::MachineGone);
}

TEST(Qmp, SendsArgumentsAndDescriptors) {
  std::string with_arguments, with_descriptor;
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reads(ends[0]);
  UniqueFd writes(ends[1]);
  FakePeer qemu([&](FakePeer& peer) {
    with_arguments = peer.receive_until("\n");
    peer.send("{\"return\": {}, \"id\": 1}\r\n");
    const UniqueFd passed = peer.receive_descriptor();
    with_descriptor = peer.receive_until("\n");
    EXPECT_EQ(write(passed.get(), "x", 1), 1);
    peer.send("{\"return\": {}, \"id\": 2}\r\n");
  });
  QmpClient qmp(qemu.client());

  const auto executed = qmp.execute("go", {{"to", "a\nb\xff"}}, kTimeout);
  const auto passed = qmp.pass_descriptor("it", writes.get(), kTimeout);
  writes.reset();

  ASSERT_TRUE(executed && passed);
  EXPECT_EQ(with_arguments,
            "{\"execute\": \"go\", \"arguments\": {\"to\":\"a\\nb\\ufffd\"}, \"id\": 1}\n");
  EXPECT_EQ(with_descriptor,
            "{\"execute\": \"getfd\", \"arguments\": {\"fdname\":\"it\"}, \"id\": 2}\n");
  char byte = 0;
  EXPECT_EQ(read(reads.get(), &byte, 1), 1) << "it was the same pipe";
}

TEST(Qmp, ReadsTextMembersOnly) {
  EXPECT_EQ(json_text(nlohmann::json::parse(R"({"a": "b"})"), "a"), "b");
  EXPECT_EQ(json_text(nlohmann::json::parse(R"({"a": 1})"), "a"), "");
  EXPECT_EQ(json_text(nlohmann::json::parse("[]"), "a"), "");
  EXPECT_EQ(json_text(nlohmann::json(), "a"), "");
}

}  // namespace
}  // namespace ringside::vmm
