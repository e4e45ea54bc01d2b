#include "cli/statistics/figures_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "cli/statistics/stats.h"

namespace ringside::cli {
namespace {

class FiguresFiles : public ::testing::Test {
 protected:
  FiguresFiles() {
    std::string name = testing::TempDir() + "figures-XXXXXX";
    parent_ = ::mkdtemp(name.data());
    folder_ = parent_ + "/ringside";
  }
  ~FiguresFiles() override { std::filesystem::remove_all(parent_); }

  static Figures of(std::string machine, std::uint64_t firings) {
    Figures figures{.machine = std::move(machine)};
    figures.trace.firings = firings;
    return figures;
  }

  std::string parent_, folder_;
};

TEST_F(FiguresFiles, AreThereWhileTheirProcessTraces) {
  EXPECT_TRUE(read_figures(folder_)->empty()) << "there is no folder";
  {
    auto file = FiguresFile::create(folder_);
    ASSERT_TRUE(file) << file.error().message;
    file->write(std::vector{of("web1", 1'000'000), of("web2", 2)});
    file->write(std::vector{of("web1", 3), of("web2", 4)});

    const auto all = read_figures(folder_);

    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 1u);
    EXPECT_EQ(all->front().pid, ::getpid());
    EXPECT_GE(all->front().age, 0);
    ASSERT_EQ(all->front().machines.size(), 2u);
    EXPECT_EQ(all->front().machines[0].machine, "web1");
    EXPECT_EQ(all->front().machines[0].trace.firings, 3u);
    EXPECT_EQ(all->front().machines[1].trace.firings, 4u);
    EXPECT_NE(stats_text(*all).find("web2, traced by process "), std::string::npos);
    EXPECT_NE(stats_json(*all, -1).find(R"("machine":"web2")"), std::string::npos);
  }
  EXPECT_TRUE(read_figures(folder_)->empty()) << "tracing has ended";
}

TEST_F(FiguresFiles, OfAProcessThatWasKilledGo) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = FiguresFile::create(folder_);
    if (file) file->write(std::vector{of("web1", 1)});
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto alive = read_figures(folder_);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int fd : ready) ::close(fd);

  ASSERT_EQ(alive->size(), 1u);
  EXPECT_EQ(alive->front().pid, child);
  EXPECT_TRUE(read_figures(folder_)->empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FiguresFiles, AreNotBelievedWhereOthersMayWrite) {
  ASSERT_TRUE(std::filesystem::create_directory(folder_));
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);

  EXPECT_FALSE(FiguresFile::create(folder_));
  EXPECT_FALSE(read_figures(folder_));
}

TEST_F(FiguresFiles, OtherThingsInTheFolderAreLeftAlone) {
  ASSERT_TRUE(FiguresFile::create(folder_));
  for (const char* name : {"notes", "12.json.old", "x.json"}) {
    std::ofstream(folder_ + '/' + name) << "{}";
  }
  std::ofstream(folder_ + '/' + std::to_string(::getpid()) + ".json") << R"({"time_ns": "no"})";

  EXPECT_TRUE(read_figures(folder_)->empty());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/x.json"));
}

}  // namespace
}  // namespace ringside::cli
