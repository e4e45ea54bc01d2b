#include "providers/tracepoint/sites/no_idt_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::providers {
namespace {

namespace fs = std::filesystem;
using guest_linux::KernelCache;

constexpr std::string_view kBuildId = "0123abcd";
constexpr GuestVirt kPageBase{0xffffffff81000000};
constexpr GuestVirt kFirst{kPageBase.raw() + 0x100}, kSecond{kPageBase.raw() + 0x200};
constexpr std::string_view kReasons[] = {"it comes up", "it wakes up"};

/// A page of text with a function each 256 bytes.
class PageKernel final : public guest_linux::InertKernel {
 public:
  /// `first` must outlive it.
  explicit PageKernel(std::string_view first = "first") {
    symbols_.add_module({"vmlinux", kPageBase, 4096, 0}, {{kPageBase, 0, "start", 't', 0},
                                                          {kFirst, 0, first, 't', 0},
                                                          {kSecond, 0, "second", 't', 0}});
    symbols_.seal();
  }
  std::span<const std::uint64_t> percpu_bases() const override { return percpu; }
  std::span<const AddressRange> forbidden_text() const override { return forbidden; }
  std::span<const PatchedSite> patched_sites() const override { return patched; }

  std::vector<AddressRange> forbidden;
  std::vector<PatchedSite> patched;
  std::vector<std::uint64_t> percpu{1, 2};
};

struct NoIdtCacheTest : testing::Test {
  NoIdtCacheTest() {
    std::string made = fs::temp_directory_path() / "ringside-no-idt-XXXXXX";
    if (mkdtemp(made.data()) == nullptr) throw std::runtime_error("mkdtemp");
    above = made;
    folder = above / "ringside";
    auto opened = KernelCache::open(folder, kBuildId);
    if (!opened) throw std::runtime_error(opened.error().message);
    cache.emplace(std::move(*opened));
  }
  ~NoIdtCacheTest() override { fs::remove_all(above); }

  std::optional<NoIdtCache::Reasons> find(const PageKernel& of) {
    return NoIdtCache(*cache, of, kPageBase, text, kReasons).find();
  }
  void keep(const NoIdtCache::Reasons& what, std::span<const std::string_view> reasons) {
    NoIdtCache(*cache, kernel, kPageBase, text, reasons).keep(what);
  }
  fs::path entry() {
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().extension() == ".entry") return file.path();
    }
    return {};
  }

  const NoIdtCache::Reasons found{{kFirst, kReasons[1]}, {kSecond, kReasons[0]}};
  PageKernel kernel;
  std::vector<std::byte> text = std::vector<std::byte>(4096, std::byte{0xcc});
  fs::path above, folder;
  std::optional<KernelCache> cache;
};

TEST_F(NoIdtCacheTest, GivesBackWhatItKept) {
  EXPECT_FALSE(find(kernel)) << "nothing is kept yet";

  keep(found, kReasons);

  EXPECT_EQ(find(kernel), found);
}

TEST_F(NoIdtCacheTest, KnowsNothingOfAKernelThatDiffersInAnythingThatTheSearchLooksAt) {
  keep(found, kReasons);
  ASSERT_EQ(find(PageKernel()), found) << "an equal one";

  EXPECT_FALSE(find(PageKernel("renamed")));

  PageKernel other;
  other.percpu.push_back(3);
  EXPECT_FALSE(find(other)) << "one CPU more";
  other = PageKernel();
  other.forbidden.push_back({kSecond, kSecond.wrapping_add(1)});
  EXPECT_FALSE(find(other)) << "a forbidden place";
  other = PageKernel();
  other.patched.push_back({kSecond, 5, "jump label"});
  EXPECT_FALSE(find(other)) << "a place that it patches";
  text.back() = std::byte{0x90};
  EXPECT_FALSE(find(kernel)) << "one byte of text";
  text.back() = std::byte{0xcc};
  EXPECT_EQ(find(kernel), found);
}

TEST_F(NoIdtCacheTest, ADamagedFileIsNotBelieved) {
  keep(found, kReasons);
  std::fstream file(entry(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
  file.close();

  EXPECT_FALSE(find(kernel));
}

TEST_F(NoIdtCacheTest, AFileThatIsCutOffOrHasGrownIsNotBelieved) {
  keep(found, kReasons);
  const auto size = fs::file_size(entry());

  fs::resize_file(entry(), size - 1);
  EXPECT_FALSE(find(kernel));
  keep(found, kReasons);
  EXPECT_EQ(find(kernel), found);
  fs::resize_file(entry(), KernelCache::kMostOfOne + 4096);
  EXPECT_FALSE(find(kernel)) << "too large";
}

/// Whoever has the key can write anything: what is found is checked as the guest's own words are.
TEST_F(NoIdtCacheTest, AnEntryThatNamesNoFunctionOrNoReasonIsNotBelieved) {
  keep({{kFirst.wrapping_add(1), kReasons[0]}}, kReasons);
  EXPECT_FALSE(find(kernel)) << "inside a function";

  constexpr std::string_view kMore[] = {"a", "b", "of a later build"};
  keep({{kFirst, kMore[2]}}, kMore);
  EXPECT_FALSE(find(kernel)) << "a reason that we do not have";

  keep(found, kReasons);
  EXPECT_EQ(find(kernel), found);
}

TEST_F(NoIdtCacheTest, WhatIsTooLargeIsNotKept) {
  NoIdtCache::Reasons many;
  for (std::uint64_t n = 0; n <= 1 << 16; ++n) many.emplace(kPageBase.wrapping_add(n), kReasons[0]);

  keep(many, kReasons);

  EXPECT_EQ(entry(), fs::path());
  keep({}, kReasons);
  EXPECT_EQ(entry(), fs::path()) << "a kernel without any such function has not been looked at";
}

TEST_F(NoIdtCacheTest, TheUserCanSwitchItOff) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", above.c_str(), 1), 0);
  ASSERT_EQ(setenv("RINGSIDE_CACHE", "off", 1), 0);
  EXPECT_FALSE(KernelCache::of_user(kBuildId));
  ASSERT_EQ(unsetenv("RINGSIDE_CACHE"), 0);
  auto users = KernelCache::of_user(kBuildId);
  ASSERT_TRUE(users);
  keep(found, kReasons);
  EXPECT_EQ(NoIdtCache(*users, kernel, kPageBase, text, kReasons).find(), found);
  ASSERT_EQ(unsetenv("XDG_CACHE_HOME"), 0);
}

}  // namespace
}  // namespace ringside::providers
