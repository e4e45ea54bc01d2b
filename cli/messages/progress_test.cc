#include "cli/messages/progress.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <string>

namespace ringside::cli {
namespace {

class Terminal {
 public:
  Terminal() { EXPECT_EQ(openpty(&master_, &user_, nullptr, nullptr, nullptr), 0); }
  ~Terminal() {
    close(master_);
    close(user_);
  }
  int user() const { return user_; }
  /// Reads until the text has come.
  std::string read_until(const std::string& wanted) {
    while (text_.find(wanted) == text_.npos) {
      std::array<char, 256> part{};
      const ssize_t size = ::read(master_, part.data(), part.size());
      if (size <= 0) break;
      text_.append(part.data(), static_cast<std::size_t>(size));
    }
    return text_;
  }

 private:
  int master_ = -1, user_ = -1;
  std::string text_;
};

constexpr std::chrono::milliseconds kQuick{1};

TEST(Progress, SaysWhatTakesLongAndIsErasedForALine) {
  Terminal terminal;
  Progress progress(terminal.user(), kQuick);

  progress.show("booting x\x1b[2J");
  EXPECT_TRUE(
      terminal.read_until("booting x\\033[2J (0 s)").starts_with("booting x\\033[2J (0 s)"));
  progress.write("a line\n");
  terminal.read_until("\r\x1b[Ka line\r\n");
  progress.show("attaching");
  terminal.read_until("attaching (0 s)");
  progress.clear();
  progress.write("end\n");

  EXPECT_TRUE(terminal.read_until("end\r\n").ends_with("\r\x1b[Kend\r\n"));
}

TEST(Progress, IsSilentWhereThereIsNoTerminal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  Progress progress(ends[1], kQuick);

  progress.show("booting");
  progress.write("a line\n");
  progress.clear();
  close(ends[1]);

  std::array<char, 64> text{};
  const ssize_t size = read(ends[0], text.data(), text.size());
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(size)), "a line\n");
  close(ends[0]);
}

TEST(Progress, ThatNeverBeganEndsAtOnce) {
  Terminal terminal;
  Progress progress(terminal.user(), std::chrono::hours(1));

  progress.clear();
  progress.show("waiting");

  SUCCEED() << "its end does not wait for its pace";
}

}  // namespace
}  // namespace ringside::cli
