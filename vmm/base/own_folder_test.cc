#include "vmm/base/own_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace ringside {
namespace {

class OwnFolder : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = "/tmp/ringside-own-XXXXXX";
};

TEST_F(OwnFolder, IsOpenedAndListedByWhatWasChecked) {
  std::ofstream(folder_ + "/one") << "1";
  const auto opened = open_own_folder(folder_, 077);
  ASSERT_TRUE(opened) << opened.error().message;
  const std::string moved = folder_ + "-moved";
  std::filesystem::rename(folder_, moved);
  std::filesystem::create_directory(folder_);
  std::ofstream(folder_ + "/other") << "2";

  for (int times = 0; times < 2; ++times) {
    std::vector<std::string> names = list_names(opened->get());
    std::ranges::sort(names);
    EXPECT_EQ(names, (std::vector<std::string>{".", "..", "one"}));
  }
  std::filesystem::remove_all(moved);
}

TEST_F(OwnFolder, OfOthersOrForOthersOrNoneIsRefused) {
  const auto code = [](const std::string& folder) {
    const auto opened = open_own_folder(folder, 022);
    return opened ? ErrorCode::Limit : opened.error().code;
  };
  std::ofstream(folder_ + "/file") << "1";
  std::filesystem::create_directory_symlink(folder_, folder_ + "/link");

  EXPECT_EQ(code(folder_ + "/none"), ErrorCode::NotFound);
  EXPECT_EQ(code(folder_ + "/file"), ErrorCode::Io);
  EXPECT_EQ(code(folder_ + "/link"), ErrorCode::Io);
  ASSERT_EQ(chmod(folder_.c_str(), 0720), 0);
  EXPECT_EQ(code(folder_), ErrorCode::Invalid);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(code(folder_), ErrorCode::Limit) << "what others may only read is not refused here";
}

}  // namespace
}  // namespace ringside
