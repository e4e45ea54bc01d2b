#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "vmm/kernel_file/kernel_file.h"
#include "vmm/testing/sample_kernels.h"

namespace ringside::vmm {
namespace {

class KernelChoice : public ::testing::Test {
 protected:
  ~KernelChoice() override { std::filesystem::remove(path_); }
  /// `bytes` as the kernel file that the user names.
  const std::string& file(const testing::Bytes& bytes) {
    // SAFETY: char may alias any bytes.
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
    return path_;
  }
  static testing::Bytes bz_image(bool pvh) {
    testing::SampleElf elf;
    if (pvh) elf.pvh_entry = 0x100000;
    testing::SampleBzImage image;
    image.payload = testing::packed(testing::sample_elf(elf), "gzip");
    return testing::sample_bz_image(image);
  }

 private:
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("kernel_choice_" + std::to_string(getpid())))
          .string();
};

TEST_F(KernelChoice, TheVmlinuxInABzImageIsStartedByItsPvhNote) {
  const std::string& path = file(bz_image(true));

  const auto chosen = open_kernel(path, BootPreference::Auto);

  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->format(), KernelFile::Format::Elf64);
  EXPECT_EQ(chosen->name(), path);
}

TEST_F(KernelChoice, ABzImageStartsItselfWhereAskedToOrWithoutANote) {
  const auto asked = open_kernel(file(bz_image(true)), BootPreference::BzImage);
  const auto without = open_kernel(file(bz_image(false)), BootPreference::Auto);

  ASSERT_TRUE(asked && without);
  EXPECT_EQ(asked->format(), KernelFile::Format::BzImage);
  EXPECT_EQ(without->format(), KernelFile::Format::BzImage);
}

TEST_F(KernelChoice, WhatCannotBeHadNamesTheOptionToLeaveAway) {
  const auto pvh = open_kernel(file(bz_image(false)), BootPreference::Pvh);
  const auto packed = open_kernel(file(testing::sample_elf({})), BootPreference::BzImage);

  ASSERT_TRUE(!pvh && !packed);
  EXPECT_EQ(pvh.error().code, ErrorCode::Unsupported);
  EXPECT_NE(pvh.error().message.find("--boot pvh"), std::string::npos);
  EXPECT_NE(packed.error().message.find("--boot bzimage"), std::string::npos);
}

TEST_F(KernelChoice, OnlyABzImageThatIsBuiltForItAndNotForbiddenMovesItself) {
  testing::SampleBzImage fixed;
  fixed.relocatable = 0;
  fixed.payload = testing::packed(testing::sample_elf({}), "gzip");
  // Each is looked at before the next takes its place in the file.
  const auto moves = [&](const testing::Bytes& bytes, BootPreference way,
                         std::string_view command_line) {
    const auto kernel = open_kernel(file(bytes), way);
    EXPECT_TRUE(kernel);
    return kernel && relocates_itself(*kernel, command_line);
  };

  EXPECT_TRUE(moves(bz_image(true), BootPreference::BzImage, "quiet nokaslrx"));
  EXPECT_FALSE(moves(bz_image(true), BootPreference::BzImage, "quiet nokaslr"));
  EXPECT_FALSE(moves(bz_image(true), BootPreference::Pvh, ""));
  EXPECT_FALSE(moves(testing::sample_bz_image(fixed), BootPreference::BzImage, ""));
}

}  // namespace
}  // namespace ringside::vmm
