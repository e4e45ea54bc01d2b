#include "vmm/linux/cache/kernel_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ringside::guest_linux {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> content_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

struct KernelCacheTest : testing::Test {
  void SetUp() override {
    std::string made = fs::temp_directory_path() / "ringside-cache-XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    above = made;
    folder = above / "ringside";
  }
  void TearDown() override { fs::remove_all(above); }

  KernelCache open(std::string_view kernel = "0123abcd") {
    auto cache = KernelCache::open(folder, kernel);
    if (!cache) throw std::runtime_error(cache.error().message);
    return std::move(*cache);
  }
  HashValue some_hash(const KernelCache& cache, std::string_view text = "text") {
    auto hash = cache.hash();
    hash.add(std::as_bytes(std::span(text)));
    return hash.finish();
  }
  /// The file of the only entry.
  fs::path entry() {
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().extension() == ".entry") return file.path();
    }
    return {};
  }
  std::size_t files() {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  fs::path above, folder;
};

TEST_F(KernelCacheTest, GivesBackWhatItKeptToTheNextRun) {
  {
    const KernelCache cache = open();
    cache.keep("sites", some_hash(cache), content_of("what was found"));
  }
  const KernelCache cache = open();
  const auto found = cache.find("sites", some_hash(cache));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, content_of("what was found"));
}

TEST_F(KernelCacheTest, IsTheUsersAlone) {
  const KernelCache cache = open();
  cache.keep("sites", some_hash(cache), content_of("x"));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  const auto own = fs::perms::owner_read | fs::perms::owner_write;
  EXPECT_EQ(fs::status(entry()).permissions(), own);
  EXPECT_EQ(fs::status(folder / "key").permissions(), own);
}

TEST_F(KernelCacheTest, KnowsNothingOfOtherKernelsKindsAndBytes) {
  const KernelCache cache = open();
  cache.keep("sites", some_hash(cache), content_of("x"));
  const KernelCache other = open("0123abce");
  EXPECT_FALSE(other.find("sites", some_hash(other)));
  EXPECT_FALSE(cache.find("symbols", some_hash(cache)));
  EXPECT_FALSE(cache.find("sites", some_hash(cache, "texT")));
}

TEST_F(KernelCacheTest, AnEntryUnderAnotherNameIsNotBelieved) {
  const KernelCache cache = open();
  cache.keep("sites", some_hash(cache), content_of("x"));
  std::string name = entry().filename();
  name.replace(0, 8, "ffffffff");
  fs::rename(entry(), folder / name);
  const KernelCache other = open("ffffffff");
  EXPECT_FALSE(other.find("sites", some_hash(other)));
}

TEST_F(KernelCacheTest, AFileOfWhichAnyByteIsAnotherIsNotBelieved) {
  const KernelCache cache = open();
  cache.keep("sites", some_hash(cache), content_of("what was found"));
  const std::string whole = bytes_of(entry());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    put(entry(), changed);
    EXPECT_FALSE(cache.find("sites", some_hash(cache))) << i;
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(entry(), whole.substr(0, size));
    EXPECT_FALSE(cache.find("sites", some_hash(cache))) << size;
  }
  put(entry(), whole + '\0');
  EXPECT_FALSE(cache.find("sites", some_hash(cache)));
  put(entry(), whole);
  EXPECT_TRUE(cache.find("sites", some_hash(cache))) << "else this test proves nothing";
}

TEST_F(KernelCacheTest, EntriesOfAnotherKeyAreNotBelieved) {
  {
    const KernelCache cache = open();
    cache.keep("sites", some_hash(cache), content_of("x"));
  }
  fs::remove(folder / "key");
  const KernelCache cache = open();
  // The name that a forger has who can write files, but does not know the key.
  const std::string old = entry().filename();
  const HashValue wanted = some_hash(cache);
  cache.keep("sites", wanted, content_of("y"));
  std::string name;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".entry" && file.path().filename() != old) {
      name = file.path().filename();
    }
  }
  fs::rename(folder / old, folder / name);
  EXPECT_FALSE(cache.find("sites", wanted));
}

TEST_F(KernelCacheTest, FollowsNoLinks) {
  const KernelCache cache = open();
  cache.keep("sites", some_hash(cache), content_of("x"));
  const fs::path file = entry();
  fs::rename(file, above / "elsewhere");
  fs::create_symlink(above / "elsewhere", file);
  EXPECT_FALSE(cache.find("sites", some_hash(cache)));

  cache.keep("sites", some_hash(cache), content_of("y"));  // replaces the link, not what it names
  EXPECT_FALSE(fs::is_symlink(file));
  EXPECT_TRUE(cache.find("sites", some_hash(cache)));

  fs::rename(folder, above / "moved");
  fs::create_directory_symlink(above / "moved", folder);
  EXPECT_FALSE(KernelCache::open(folder, "0123abcd"));
}

TEST_F(KernelCacheTest, DoesNotUseWhatOthersMayChange) {
  const KernelCache cache = open();
  cache.keep("sites", some_hash(cache), content_of("x"));
  fs::permissions(entry(), fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(cache.find("sites", some_hash(cache)));
  fs::permissions(folder, fs::perms::others_write, fs::perm_options::add);
  const auto refused = KernelCache::open(folder, "0123abcd");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("others may write"), std::string::npos);
}

TEST_F(KernelCacheTest, DoesNotUseAnothersFiles) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const KernelCache cache = open();
  cache.keep("sites", some_hash(cache), content_of("x"));
  ASSERT_EQ(chown(entry().c_str(), 1, 1), 0);
  EXPECT_FALSE(cache.find("sites", some_hash(cache)));
  ASSERT_EQ(chown(folder.c_str(), 1, 1), 0);
  EXPECT_FALSE(KernelCache::open(folder, "0123abcd"));
}

TEST_F(KernelCacheTest, ABuildIdThatIsNoneMakesNoFile) {
  for (const std::string_view kernel : {"../../etc/passwd", "", "ABCD", "a/b", "names-12"}) {
    const KernelCache cache = open(kernel);
    cache.keep("sites", some_hash(cache), content_of("x"));
    EXPECT_FALSE(cache.find("sites", some_hash(cache))) << kernel;
  }
  EXPECT_EQ(files(), 1u) << "the key";
}

TEST_F(KernelCacheTest, HoldsSoManyFilesAndBytesAndTheOldestGo) {
  const KernelCache cache = open();
  const auto hash = [&](std::size_t n) { return some_hash(cache, std::to_string(n)); };
  cache.keep("sites", hash(0), content_of("first"));
  struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, entry().c_str(), long_ago, 0), 0);
  for (std::size_t n = 1; n <= KernelCache::kMostFiles; ++n) {
    cache.keep("sites", hash(n), content_of("more"));
  }
  EXPECT_EQ(files(), KernelCache::kMostFiles + 1) << "and the key";
  EXPECT_FALSE(cache.find("sites", hash(0)));
  EXPECT_TRUE(cache.find("sites", hash(KernelCache::kMostFiles)));

  const std::vector<std::byte> large(KernelCache::kMostOfOne);
  for (std::size_t n = 0; n < 10; ++n) cache.keep("large", hash(n), large);
  std::uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder)) bytes += file.file_size();
  EXPECT_LE(bytes, KernelCache::kMostBytes + sizeof(HashKey));
  cache.keep("huge", hash(0), std::vector<std::byte>(KernelCache::kMostOfOne + 1));
  EXPECT_FALSE(cache.find("huge", hash(0)));
}

TEST_F(KernelCacheTest, IsRemovedWithAllThatIsItsOwnAndNothingElse) {
  {
    const KernelCache cache = open();
    cache.keep("sites", some_hash(cache), content_of("x"));
  }
  put(folder / "mine", "precious");
  EXPECT_EQ(KernelCache::remove(folder).value(), 1u);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(bytes_of(folder / "mine"), "precious");
  fs::remove(folder / "mine");
  EXPECT_EQ(KernelCache::remove(folder).value(), 0u);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(KernelCache::remove(folder).value(), 0u) << "there is none";
}

}  // namespace
}  // namespace ringside::guest_linux
