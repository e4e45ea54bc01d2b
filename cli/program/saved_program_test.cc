#include "cli/program/saved_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ringside::cli {
namespace {

class SavedProgram : public testing::Test {
 protected:
  void SetUp() override {
    const int fd = mkstemp(path_.data());
    ASSERT_GE(fd, 0);
    close(fd);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_ = (std::filesystem::temp_directory_path() / "saved_testXXXXXX").string();
};

dif::Program one_clause(dif::ActionKind kind) {
  dif::Program program;
  dif::Clause clause;
  clause.probes.push_back({"dtrace", "", "", "BEGIN"});
  dif::Action action;
  action.kind = kind;
  clause.actions.push_back(action);
  program.clauses.push_back(clause);
  return program;
}

TEST_F(SavedProgram, IsReadBack) {
  dif::Program program = one_clause(dif::ActionKind::Ftruncate);
  program.options["quiet"] = "";

  ASSERT_TRUE(save_program(program, path_));
  const auto read = load_program(path_);

  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->clauses.size(), 1u);
  EXPECT_EQ(read->clauses[0].probes[0].name, "BEGIN");
  EXPECT_EQ(read->options, program.options);
}

TEST_F(SavedProgram, OtherFilesAreRefusedByName) {
  std::ofstream(path_) << "not a program";

  const auto read = load_program(path_);
  const auto missing = load_program("/no/such/file");

  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.starts_with(path_ + ": ")) << read.error().message;
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "cannot open /no/such/file: No such file or directory");
  EXPECT_FALSE(save_program({}, "/no/such/folder/x"));
}

}  // namespace
}  // namespace ringside::cli
