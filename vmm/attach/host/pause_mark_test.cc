#include "vmm/attach/host/pause_mark.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace ringside::vmm {
namespace {

class PauseMarks : public testing::Test {
 protected:
  PauseMarks() {
    char folder[] = "/tmp/ringside-marks-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    setenv("XDG_RUNTIME_DIR", folder, 1);
  }
  ~PauseMarks() override {
    unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }
  /// A ringside that is killed in a pause of this process's machine.
  static pid_t leave_one() {
    const pid_t ringside = fork();
    if (ringside == 0) {
      PauseMark(getppid()).set();
      raise(SIGKILL);
    }
    waitpid(ringside, nullptr, 0);
    return ringside;
  }

  std::string folder_;
};

TEST_F(PauseMarks, TellWhoWasKilledInAPause) {
  EXPECT_EQ(PauseMark(getpid()).left_by(), std::nullopt);

  const pid_t ringside = leave_one();

  EXPECT_EQ(PauseMark(getpid()).left_by(), ringside);
  EXPECT_EQ(PauseMark(getppid()).left_by(), std::nullopt) << "another machine";
  PauseMark(getpid()).clear();
  EXPECT_EQ(PauseMark(getpid()).left_by(), std::nullopt);
}

TEST_F(PauseMarks, TellNothingWhileItLives) {
  PauseMark mark(getpid());
  mark.set();
  EXPECT_EQ(mark.left_by(), std::nullopt);
}

TEST_F(PauseMarks, StayFromPauseToPauseAndTellNothingBetween) {
  const auto number_of_file = [](const PauseMark& mark) {
    struct stat found {};
    EXPECT_EQ(stat(mark.path().c_str(), &found), 0);
    return found.st_ino;
  };
  const pid_t ringside = fork();
  if (ringside == 0) {
    PauseMark mark(getppid());
    mark.set();
    const auto first = number_of_file(mark);
    mark.clear();
    mark.set();
    if (number_of_file(mark) == first) mark.clear();
    raise(SIGKILL);
  }
  waitpid(ringside, nullptr, 0);

  EXPECT_EQ(PauseMark(getpid()).left_by(), std::nullopt) << "killed between two pauses";
}

TEST_F(PauseMarks, AreMadeAnewWhereSomebodyHasRemovedThem) {
  const pid_t ringside = fork();
  if (ringside == 0) {
    PauseMark mark(getppid());
    mark.set();
    mark.clear();
    std::filesystem::remove(mark.path());
    mark.set();
    raise(SIGKILL);
  }
  waitpid(ringside, nullptr, 0);

  EXPECT_EQ(PauseMark(getpid()).left_by(), ringside);
}

TEST_F(PauseMarks, AreGoneWithTheRingsideThatHoldsNoGuest) {
  std::string path;
  {
    PauseMark mark(getpid());
    mark.set();
    path = mark.path();
    EXPECT_TRUE(std::filesystem::exists(path));
    mark.clear();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(PauseMarks, OfAnotherUserOrOfNoSenseTellNothing) {
  leave_one();
  const PauseMark mark(getpid());
  ASSERT_EQ(chmod(mark.path().c_str(), 0666), 0);
  EXPECT_EQ(mark.left_by(), std::nullopt) << "others may have written it";

  std::filesystem::resize_file(mark.path(), 0);
  ASSERT_EQ(chmod(mark.path().c_str(), 0600), 0);
  EXPECT_EQ(mark.left_by(), std::nullopt);
}

TEST_F(PauseMarks, AreNotWrittenWhereTheFolderIsNotOurs) {
  std::filesystem::create_directory(folder_ + "/ringside");
  std::filesystem::permissions(folder_ + "/ringside", std::filesystem::perms::all);

  PauseMark mark(getpid());
  mark.set();

  EXPECT_TRUE(mark.path().empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/ringside"));
}

}  // namespace
}  // namespace ringside::vmm
