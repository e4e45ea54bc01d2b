#include "vmm/linux/symbols/kallsyms.h"

#include <gtest/gtest.h>

#include <random>

#include "vmm/linux/fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::EncodedKallsyms;
using fakes::KallsymsForm;
using fakes::KallsymsWriter;
using fakes::NamedAddress;

constexpr std::uint64_t kKallsymsText = 0xffff'ffff'9a00'0000;
constexpr std::uint64_t kKallsymsTables = 0xffff'ffff'9b40'0000;
constexpr GuestVirt kStext(kKallsymsText);

/// Per-cpu offsets first, as in kernels before 6.15, then text.
std::vector<NamedAddress> symbols_like_linux(std::size_t count, bool with_percpu) {
  std::vector<NamedAddress> symbols;
  if (with_percpu) {
    symbols.push_back({0, 'A', "fixed_percpu_data"});
    symbols.push_back({0x1fb80, 'A', "current_task"});
  }
  symbols.push_back({kKallsymsText, 'T', "_stext"});
  symbols.push_back({kKallsymsText, 'T', "_text"});
  symbols.push_back({kKallsymsText + 16, 't', "__pfx_vfs_read"});
  symbols.push_back({kKallsymsText + 32, 'T', std::string(200, 'y') + "_long"});
  symbols.push_back({kKallsymsText + 48, 'T', "__x64_sys_read_a_token_of_more_than_sixteen_bytes"});
  for (std::uint64_t i = 0; symbols.size() < count; ++i) {
    symbols.push_back(
        {kKallsymsText + 64 + i * 16, i % 3 == 0 ? 't' : 'D', "f" + std::to_string(i)});
  }
  return symbols;
}

void expect_same(const Kallsyms& decoded, const std::vector<NamedAddress>& wanted) {
  ASSERT_EQ(decoded.symbols.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(decoded.symbols[i].address.raw(), wanted[i].address) << i;
    ASSERT_EQ(decoded.symbols[i].name, wanted[i].name) << i;
    ASSERT_EQ(decoded.symbols[i].type, wanted[i].type) << i;
  }
}

class KallsymsForms : public testing::TestWithParam<KallsymsForm> {
 protected:
  bool has_percpu() const { return GetParam().encoding == AddressEncoding::AbsolutePercpu; }
};

TEST_P(KallsymsForms, AreDecodedToTheNamesAndAddressesThatWentIn) {
  const auto symbols = symbols_like_linux(700, has_percpu());
  const auto encoded = KallsymsWriter(symbols, GetParam(), kKallsymsTables).write();

  const auto decoded = decode_kallsyms(encoded.view(), encoded.keys, kStext);

  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->encoding, GetParam().encoding);
  expect_same(*decoded, symbols);
}

TEST_P(KallsymsForms, AreFoundByTheirShape) {
  const auto symbols = symbols_like_linux(10'500, has_percpu());
  auto encoded = KallsymsWriter(symbols, GetParam(), kKallsymsTables).write();
  encoded.image.insert(encoded.image.end(), 1 << 16, std::byte{0x5a});

  const auto decoded = scan_for_kallsyms(encoded.view(), kStext);

  ASSERT_TRUE(decoded) << decoded.error().message;
  expect_same(*decoded, symbols);
}

TEST_P(KallsymsForms, CorruptedAnywhereNeverReadOutsideTheImage) {
  const auto symbols = symbols_like_linux(300, has_percpu());
  const auto encoded = KallsymsWriter(symbols, GetParam(), kKallsymsTables).write();
  std::mt19937 random(1);
  int refused = 0;

  for (int round = 0; round < 300; ++round) {
    EncodedKallsyms damaged = encoded;
    for (int i = 0; i < 8; ++i) {
      damaged.image[random() % damaged.image.size()] = static_cast<std::byte>(random());
    }
    if (round % 4 == 0) damaged.image.resize(random() % damaged.image.size());
    if (round % 5 == 0) damaged.keys.count = static_cast<std::uint32_t>(random());
    const auto decoded = decode_kallsyms(damaged.view(), damaged.keys, kStext);
    if (!decoded) ++refused;
  }

  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, KallsymsForms,
    testing::Values(KallsymsForm{AddressEncoding::Absolute64, false, false},
                    KallsymsForm{AddressEncoding::AbsolutePercpu, false, false},  // 5.10
                    KallsymsForm{AddressEncoding::AbsolutePercpu, true, false},   // 6.1
                    KallsymsForm{AddressEncoding::AbsolutePercpu, true, true},    // 6.12
                    KallsymsForm{AddressEncoding::BaseRelative, true, true},
                    KallsymsForm{AddressEncoding::PlaceRelative, true, true}));  // 7.0

TEST(Kallsyms, DoNotSteerTheTerminal) {
  auto encoded = KallsymsWriter(symbols_like_linux(100, false), {}, kKallsymsTables).write();
  const auto place = [&](GuestVirt at) { return *encoded.view().index_of(at); };
  const auto token =
      load_at<std::uint16_t>(encoded.image, place(encoded.keys.token_index) + 2 * 'f');
  encoded.image[place(encoded.keys.token_table) + token] = std::byte{0x1b};

  const auto decoded = decode_kallsyms(encoded.view(), encoded.keys, kStext);

  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->symbols.back().name.front(), '?');
}

TEST(Kallsyms, AreRefusedWhenNoEncodingYieldsStext) {
  const auto encoded = KallsymsWriter(symbols_like_linux(300, false), {}, kKallsymsTables).write();

  const auto decoded = decode_kallsyms(encoded.view(), encoded.keys, GuestVirt(kKallsymsText + 1));

  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::Invalid);
}

TEST(Kallsyms, AreRefusedWhenTheCountIsAbsurd) {
  auto encoded = KallsymsWriter(symbols_like_linux(300, false), {}, kKallsymsTables).write();
  encoded.keys.count = UINT32_MAX;
  EXPECT_FALSE(decode_kallsyms(encoded.view(), encoded.keys, kStext));
  encoded.keys.count = 0;
  EXPECT_FALSE(decode_kallsyms(encoded.view(), encoded.keys, kStext));
}

TEST(KallsymsScan, FindsNothingInNoise) {
  std::vector<std::byte> noise(1 << 20);
  std::mt19937 random(2);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());

  const auto found = scan_for_kallsyms(ImageView{kStext, noise}, kStext);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::NotFound);
}

TEST(KallsymsScan, GivesUpOnAnImageFullOfDecoys) {
  // Every word looks like the count in front of a names table whose names never end.
  auto encoded = KallsymsWriter(symbols_like_linux(300, false), {}, kKallsymsTables).write();
  std::vector<std::byte> image;
  for (int i = 0; i < 1 << 18; ++i) {
    for (const int byte : {0x40, 0x42, 0x0f, 0x00}) image.push_back(static_cast<std::byte>(byte));
  }
  image.insert(image.end(), encoded.image.begin(), encoded.image.end());

  EXPECT_FALSE(scan_for_kallsyms(ImageView{kStext, image}, kStext));
}

}  // namespace
}  // namespace ringside::guest_linux
