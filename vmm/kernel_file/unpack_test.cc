#include "vmm/kernel_file/unpack.h"

#include <gtest/gtest.h>

#include <random>

#include "vmm/testing/sample_kernels.h"

namespace ringside::vmm {
namespace {

using testing::Bytes;
using testing::packed;

/// Half of it packs well, half does not.
Bytes sample(std::size_t size) {
  std::mt19937 random(7);
  Bytes bytes(size);
  for (std::size_t i = 0; i < size / 2; ++i) bytes[i] = static_cast<std::byte>(random());
  return bytes;
}

class Unpack : public ::testing::TestWithParam<const char*> {};

TEST_P(Unpack, GivesBackWhatWasPacked) {
  const Bytes bytes = sample(100'000);
  const Bytes small = packed(bytes, GetParam());

  const auto got = unpack(small);

  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_TRUE(*got == bytes);
  EXPECT_EQ(packing_of(small), GetParam());
}

TEST_P(Unpack, DataThatIsCutIsDamaged) {
  const Bytes whole = packed(sample(20'000), GetParam());

  for (std::size_t size = 16; size < whole.size(); size += whole.size() / 9) {
    const auto got = unpack(std::span(whole).first(size));
    ASSERT_FALSE(got.has_value()) << size;
    EXPECT_EQ(got.error().code, ErrorCode::Invalid);
  }
}

TEST_P(Unpack, ATrailerThatLiesAboutTheSizeIsDamage) {
  Bytes bytes = packed(sample(20'000), GetParam());

  for (const std::uint32_t size : {0u, 1u, 19'999u, 20'001u, 0x7fff'ffffu, 0xffff'ffffu}) {
    testing::set(bytes, bytes.size() - 4, size);
    EXPECT_FALSE(unpack(bytes).has_value()) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Packings, Unpack,
                         ::testing::Values("gzip", "xz", "lzma", "zstd", "lz4", "bzip2"),
                         [](const auto& info) { return std::string(info.param); });

TEST(UnpackOthers, AFewBytesCannotMakeUsTakeAGigabyte) {
  Bytes bytes = packed(Bytes(100), "gzip");
  testing::set(bytes, bytes.size() - 4, std::uint32_t{1} << 30);

  EXPECT_FALSE(unpack(bytes).has_value());
}

TEST(UnpackOthers, LzoIsNamedAndUnsupported) {
  Bytes bytes(64);
  testing::set(bytes, 0, std::uint32_t{0x4f5a4c89});

  const auto got = unpack(bytes);

  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::Unsupported);
  EXPECT_NE(got.error().message.find("LZO"), std::string::npos);
}

TEST(UnpackOthers, AnythingElseIsUnsupported) {
  EXPECT_EQ(unpack(Bytes(64)).error().code, ErrorCode::Unsupported);
  EXPECT_EQ(unpack({}).error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace ringside::vmm
