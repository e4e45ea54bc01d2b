// The actions that change where output goes, or what it looks like.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "cli/output/fake_program_for_tests.h"
#include "cli/output/output.h"

namespace ringside::cli {
namespace {

using namespace testing_support;

using OutputActions = OutputFixture;

TEST_F(OutputActions, SetoptTakesEffectInTheRecordThatCallsIt) {
  Action setopt = action(ActionKind::Setopt);
  setopt.format = "quiet";
  const auto begin = program_.add({"dtrace", "", "", "BEGIN"}, {setopt});

  fire(begin);
  fire(begin);

  EXPECT_EQ(text(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN ");
}

TEST_F(OutputActions, SetoptTakesANameAndAValueThatWereComputed) {
  settings_.quiet = true;
  Action setopt = action(ActionKind::Setopt);
  const ValueType text8{ValueKind::String, false, 8};
  const auto both = program_.add({"dtrace", "", "", "BEGIN"}, {setopt},
                                 {{0, 0, 0, 8, text8}, {0, 1, 8, 8, text8}});
  setopt.format = "strange\n";
  const auto value = program_.add({"dtrace", "", "", "BEGIN"}, {setopt}, {{0, 0, 0, 8, text8}});

  fire(both, std::array<char, 8>{"quiet"}, std::array<char, 8>{"off"});
  fire(value, std::array<char, 8>{"12345678"[0]});

  EXPECT_FALSE(settings_.quiet);
  const auto messages = output().take_messages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0].starts_with("couldn't set option \"strange\\n\" to \"1\": "))
      << messages[0];
}

TEST_F(OutputActions, FreopenSendsWhatFollowsToAFile) {
  settings_.quiet = true;
  char path[] = "/tmp/ringside-output-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  Action to_file = action(ActionKind::Freopen), back = action(ActionKind::Freopen);
  to_file.format = path;
  Action before = action(ActionKind::Printf), inside = before, after = before;
  before.format = "before ";
  inside.format = "inside\n";
  after.format = "after\n";
  const auto ecb =
      program_.add({"dtrace", "", "", "BEGIN"}, {before, to_file, inside, back, after});

  fire(ecb);

  EXPECT_EQ(text(), "before after\n");
  char written[64];
  EXPECT_EQ(std::string(written, static_cast<std::size_t>(read(file, written, sizeof written))),
            "inside\n");
  close(file);
  unlink(path);
}

TEST_F(OutputActions, SnapshotWritesTheFileThatItsFormatNames) {
  Action snapshot = action(ActionKind::Snapshot);
  snapshot.format = "/tmp/%d.core";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {snapshot}, {{0, 0, 0, 4, kInt}});

  fire(ecb, 7);
  fire(ecb, 8);

  EXPECT_EQ(program_.snapshots, (std::vector<std::string>{"/tmp/7.core", "/tmp/8.core"}));
  EXPECT_EQ(output().take_messages(),
            (std::vector<std::string>{"/tmp/7.core: all of it",
                                      "snapshot(): /tmp/8.core is there already"}));
}

TEST_F(OutputActions, FreopenThatFailsIsAMessage) {
  settings_.quiet = true;
  Action to_file = action(ActionKind::Freopen);
  to_file.format = "/nonexistent/x";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {to_file});

  fire(ecb);

  EXPECT_EQ(output().take_messages(),
            std::vector<std::string>{
                "freopen(): cannot write to /nonexistent/x: No such file or directory"});
}

TEST_F(OutputActions, FtruncateEmptiesTheFile) {
  settings_.quiet = true;
  char path[] = "/tmp/ringside-output-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  Action to_file = action(ActionKind::Freopen), printf = action(ActionKind::Printf);
  to_file.format = path;
  printf.format = "x";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"},
                                {to_file, printf, action(ActionKind::Ftruncate), printf});

  fire(ecb);
  sink_.flush();

  char written[8];
  EXPECT_EQ(read(file, written, sizeof written), 1);
  close(file);
  unlink(path);
}

TEST_F(OutputActions, SystemRunsInRecordOrder) {
  settings_.quiet = true;
  char path[] = "/tmp/ringside-output-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  Action to_file = action(ActionKind::Freopen), one = action(ActionKind::Printf);
  Action run = action(ActionKind::System), three = one;
  to_file.format = path;
  one.format = "one\n";
  run.format = "echo %s";
  three.format = "three\n";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {to_file, one, run, three},
                                {{2, 0, 0, 4, {ValueKind::Bytes, false, 4}}});

  fire(ecb, std::array<char, 4>{'t', 'w', 'o', '\0'});
  sink_.flush();

  char written[64];
  EXPECT_EQ(std::string(written, static_cast<std::size_t>(read(file, written, sizeof written))),
            "one\ntwo\nthree\n");
  close(file);
  unlink(path);
}

}  // namespace
}  // namespace ringside::cli
