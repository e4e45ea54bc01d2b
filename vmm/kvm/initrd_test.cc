#include "vmm/kvm/initrd.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "vmm/testing/sample_kernels.h"

namespace ringside::vmm::kvm {
namespace {

using vmm::testing::Bytes;
using vmm::testing::packed;

bool cut_off(std::string_view initrd) {
  return is_cut_off(std::as_bytes(std::span(initrd)));
}

/// One cpio member, "newc".
std::string member(const std::string& name, const std::string& data) {
  char header[128];
  std::snprintf(header, sizeof header,
                "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x", 1, 0, 0, 0, 1, 0,
                data.size(), 0, 0, 0, 0, name.size() + 1, 0);
  std::string text = header + name + '\0';
  text.resize((text.size() + 3) / 4 * 4);
  text += data;
  text.resize((text.size() + 3) / 4 * 4);
  return text;
}

const std::string kTrailer = member("TRAILER!!!", "");
const std::string kArchive = member("init", "#!/bin/sh\nexec sh\n") + kTrailer;
const std::string kZeroes(512, '\0');

std::string pack(const std::string& text, std::string_view packing) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  const Bytes done = packed(bytes, packing);
  // A kernel's payload ends with its size (but for gzip), an initrd does not.
  const std::size_t size = done.size() - (packing == "gzip" ? 0 : 4);
  return {reinterpret_cast<const char*>(done.data()), size};
}

TEST(InitrdParts, ACpioArchiveIsCutOffWithinAMember) {
  const std::string init = member("init", "#!/bin/sh\n"), file = init + kTrailer;
  EXPECT_FALSE(cut_off(file));
  for (std::size_t size = 1; size < file.size(); ++size) {
    // The zero bytes after a name or data are no loss, and the trailer may be missing.
    const bool good = (size >= init.size() - 2 && size <= init.size()) || size >= file.size() - 3;
    EXPECT_EQ(cut_off(file.substr(0, size)), !good) << size << " of " << file.size();
  }
}

class Packed : public ::testing::TestWithParam<const char*> {};

TEST_P(Packed, IsCutOffAnywhereBehindItsMagic) {
  const std::string file = pack(kArchive, GetParam());
  EXPECT_FALSE(cut_off(file));
  for (std::size_t size = 8; size < file.size(); ++size) {
    EXPECT_TRUE(cut_off(file.substr(0, size))) << size << " of " << file.size();
  }
}

TEST_P(Packed, MayStandInARowWithZeroesBetween) {
  const std::string file = pack(kArchive, GetParam());
  for (const std::string& row : {file + kZeroes, kArchive + file, kArchive + kZeroes + file,
                                 file + file, file + kZeroes + kArchive, file + kArchive}) {
    EXPECT_FALSE(cut_off(row));
  }
  EXPECT_TRUE(cut_off(kArchive + kZeroes + file.substr(0, file.size() - 1)));
  EXPECT_TRUE(cut_off(file + kZeroes + kArchive.substr(0, 100)));
  EXPECT_TRUE(cut_off(file + file.substr(0, file.size() - 1)));
}

TEST_P(Packed, OfManyBlocksIsFollowedToItsEnd) {
  std::string large;
  for (int i = 0; large.size() < 300'000; ++i) large += std::to_string(i * 7919);
  const std::string file = pack(member("file", large) + kTrailer, GetParam());
  EXPECT_FALSE(cut_off(file + kZeroes));
  EXPECT_TRUE(cut_off(file.substr(0, file.size() / 2)));
}

TEST_P(Packed, IsForTheKernelToJudgeWhenDamaged) {
  std::string file = pack(kArchive, GetParam());
  file.resize(6);
  file += std::string(500, '\xff');
  cut_off(file);  // either way: it ends
}

INSTANTIATE_TEST_SUITE_P(Each, Packed,
                         ::testing::Values("gzip", "xz", "lzma", "zstd", "lz4", "bzip2"));

TEST(InitrdParts, WhatIsUnknownIsNotCutOff) {
  EXPECT_FALSE(cut_off(""));
  EXPECT_FALSE(cut_off(kZeroes));
  EXPECT_FALSE(cut_off("\x1f"));
  EXPECT_FALSE(cut_off("\x89LZO" + kZeroes));
  EXPECT_FALSE(cut_off("070707" + std::string(200, '0'))) << "an old cpio";
  EXPECT_FALSE(cut_off("070701" + std::string(200, 'x')));
  EXPECT_FALSE(cut_off("a file system"));
}

}  // namespace
}  // namespace ringside::vmm::kvm
