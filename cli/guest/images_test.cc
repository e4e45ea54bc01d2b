#include "cli/guest/images.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ringside::cli {
namespace {

namespace fs = std::filesystem;

class Images : public testing::Test {
 protected:
  Images() {
    std::string pattern = (fs::temp_directory_path() / "images_testXXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Images() override { fs::remove_all(folder_); }

  void add(const std::string& name) {
    fs::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "vmlinuz") << "k";
    std::ofstream(folder_ / name / "initrd") << "i";
  }

  fs::path folder_;
};

TEST_F(Images, AreFoundByName) {
  add("debian-6.1");

  const auto image = find_image("debian-6.1", {"/nonesuch", folder_.string()});

  ASSERT_TRUE(image);
  EXPECT_EQ(image->kernel, (folder_ / "debian-6.1" / "vmlinuz").string());
  EXPECT_EQ(image->initrd, (folder_ / "debian-6.1" / "initrd").string());
}

TEST_F(Images, AKernelAloneIsAnImage) {
  fs::create_directories(folder_ / "teach");
  std::ofstream(folder_ / "teach" / "vmlinux") << "k";

  const auto image = find_image("teach", {folder_.string()});

  ASSERT_TRUE(image);
  EXPECT_EQ(image->kernel, (folder_ / "teach" / "vmlinux").string());
  EXPECT_EQ(image->initrd, "");
}

TEST_F(Images, UnknownNamesListWhatThereIs) {
  add("debian-6.1");
  add("debian-6.12");
  fs::create_directories(folder_ / "half-built");

  const auto image = find_image("debian-7", {folder_.string()});

  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().message,
            "no image 'debian-7': there are debian-6.1, debian-6.12; images/build makes them");
}

TEST_F(Images, NamesAreNotPaths) {
  add("a/b");

  EXPECT_FALSE(find_image("a/b", {folder_.string()}));
  EXPECT_EQ(find_image("..", {(folder_ / "a").string()}).error().message,
            "no image '..': there are b; images/build makes them");
}

}  // namespace
}  // namespace ringside::cli
