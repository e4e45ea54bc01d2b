// In this file, top to bottom: names, files of ours, the folder, the key, finding and keeping,
// bounds, removing.
#include "vmm/linux/cache/kernel_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "vmm/base/own_folder.h"
#include "vmm/linux/constants.h"

namespace ringside::guest_linux {
namespace {

constexpr char kKeyName[] = "key";
constexpr std::string_view kSuffix = ".entry";
constexpr std::string_view kUnfinished =
    "new-";  // begins the names of files that are being written
constexpr std::size_t kLongestKind = 32;

/// An entry's file begins with it.
struct Head {
  std::array<char, 16> magic = {'r', 'i', 'n', 'g', 's', 'i', 'd', 'e',
                                ' ', 'c', 'a', 'c', 'h', 'e', ' ', '1'};
  HashValue seal;  // of the file's name and all that follows
};

bool has_only(std::string_view text, std::string_view letters, std::size_t most) {
  return !text.empty() && text.size() <= most &&
         text.find_first_not_of(letters) == std::string_view::npos;
}

/// Empty for what makes no name: the build id is the guest's word.
std::string name_of(std::string_view kernel, std::string_view kind, const HashValue& of) {
  if (!has_only(kernel, "0123456789abcdef", 2 * kMostBuildId) ||
      !has_only(kind, "abcdefghijklmnopqrstuvwxyz", kLongestKind)) {
    return {};
  }
  return fmt::format("{}-{}-{:016x}{:016x}{}", kernel, kind, of.words[0], of.words[1], kSuffix);
}

/// All of a file of ours; empty when it is none, or not of a size in [least, most].
std::optional<std::vector<std::byte>> read_file(int folder, const char* name, std::uint64_t least,
                                                std::uint64_t most) {
  const UniqueFd file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (!file || fstat(file.get(), &found) != 0 || !is_ours(found, S_IFREG, 077)) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(found.st_size);
  if (size < least || size > most) return std::nullopt;
  std::vector<std::byte> bytes(size);
  const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), 0);
  if (got < 0 || static_cast<std::uint64_t>(got) != size) return std::nullopt;
  return bytes;
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(file, bytes.data(), bytes.size());
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

enum class Older : std::uint8_t { IsReplaced, Stays };

/// Makes a file that is either whole or not there.
bool write_file(int folder, const char* name, std::span<const std::span<const std::byte>> parts,
                Older older) {
  std::uint64_t luck = 0;
  if (getrandom(&luck, sizeof luck, 0) != sizeof luck) return false;
  const std::string unfinished = fmt::format("{}{:016x}", kUnfinished, luck);
  const UniqueFd file(openat(folder, unfinished.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return false;
  bool done = std::ranges::all_of(parts, [&](auto part) { return write_all(file.get(), part); });
  if (done && older == Older::IsReplaced) {
    done = renameat(folder, unfinished.c_str(), folder, name) == 0;
  } else if (done) {
    done = linkat(folder, unfinished.c_str(), folder, name, 0) == 0;  // fails where one is
  }
  unlinkat(folder, unfinished.c_str(), 0);  // gone already when it was renamed
  return done;
}

/// The files of the cache, entries and those that are being written.
struct Listed {
  std::string name;
  std::uint64_t size = 0;
  timespec used{};
  bool is_entry() const { return name.ends_with(kSuffix); }
};

std::vector<Listed> list(int folder) {
  std::vector<Listed> found;
  for (std::string& name : list_names(folder)) {
    Listed file{std::move(name)};
    struct stat state {};
    const bool of_cache = file.is_entry() || file.name.starts_with(kUnfinished);
    if (!of_cache || fstatat(folder, file.name.c_str(), &state, AT_SYMLINK_NOFOLLOW) != 0) continue;
    file.size = static_cast<std::uint64_t>(state.st_size);
    file.used = state.st_mtim;
    found.push_back(std::move(file));
  }
  return found;
}

/// As mkdir -p; errors show when the folder is opened.
void make_folders(const std::string& folder) {
  for (std::size_t end = folder.find('/', 1); end != std::string::npos;
       end = folder.find('/', end + 1)) {
    mkdir(folder.substr(0, end).c_str(), 0700);
  }
  mkdir(folder.c_str(), 0700);
}

Result<UniqueFd> open_folder(const std::string& folder) {
  auto opened = open_own_folder(folder, S_IWGRP | S_IWOTH);
  if (opened) return opened;
  const Error& why = opened.error();
  if (why.code != ErrorCode::Invalid) {
    return fail(why.code, fmt::format("the cache {}: {}", folder, why.message));
  }
  return fail(ErrorCode::Invalid,
              fmt::format("the cache {} is not used: it is another user's, or others may write "
                          "to it; remove it",
                          folder));
}

}  // namespace

std::string KernelCache::folder_of_user() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fmt::format("{}/ringside", cache);
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fmt::format("{}/.cache/ringside", home);
  return {};
}

std::optional<KernelCache> KernelCache::of_user(std::string_view kernel) {
  const char* const wish = std::getenv("RINGSIDE_CACHE");
  if (wish != nullptr && std::string_view(wish) == "off") return std::nullopt;
  const std::string folder = folder_of_user();
  if (folder.empty() || kernel.empty()) return std::nullopt;
  auto cache = open(folder, kernel);
  return cache ? std::optional(std::move(*cache)) : std::nullopt;
}

Result<KernelCache> KernelCache::open(const std::string& folder, std::string_view kernel) {
  make_folders(folder);
  KernelCache cache(TRY(open_folder(folder)), kernel);
  TRY(cache.load_key());
  return cache;
}

/// Makes one where there is none. Of two that do so at once one wins, and both take that.
Result<void> KernelCache::load_key() {
  auto bytes = read_file(folder_.get(), kKeyName, sizeof(HashKey), sizeof(HashKey));
  if (!bytes) {
    std::array<std::byte, sizeof(HashKey)> fresh;
    for (std::size_t have = 0; have < fresh.size();) {
      const ssize_t got = getrandom(&fresh[have], fresh.size() - have, 0);
      if (got <= 0) return fail(ErrorCode::Io, "the host has no random numbers");
      have += static_cast<std::size_t>(got);
    }
    const std::span<const std::byte> parts[] = {fresh};
    write_file(folder_.get(), kKeyName, parts, Older::Stays);
    bytes = read_file(folder_.get(), kKeyName, sizeof(HashKey), sizeof(HashKey));
  }
  if (!bytes) return fail(ErrorCode::Io, "the cache's key cannot be read or written");
  auto key = std::make_shared<HashKey>();
  std::memcpy(key.get(), bytes->data(), sizeof *key);
  key_ = std::move(key);
  return {};
}

/// It begins with what tells this program from all others: another version may find out otherwise.
KeyedHash KernelCache::hash() const {
  KeyedHash hash(*key_);
  struct stat self {};
  if (stat("/proc/self/exe", &self) == 0) {
    hash.add_value(std::array{
        static_cast<std::uint64_t>(self.st_dev), static_cast<std::uint64_t>(self.st_ino),
        static_cast<std::uint64_t>(self.st_size), static_cast<std::uint64_t>(self.st_mtim.tv_sec),
        static_cast<std::uint64_t>(self.st_mtim.tv_nsec)});
  }
  return hash;
}

HashValue KernelCache::seal(std::string_view name, std::span<const std::byte> content) const {
  KeyedHash hash(*key_);
  hash.add_value(std::uint64_t{name.size()});
  hash.add(std::as_bytes(std::span(name)));
  hash.add(content);
  return hash.finish();
}

std::optional<std::vector<std::byte>> KernelCache::find(std::string_view kind,
                                                        const HashValue& of) const {
  const std::string name = name_of(kernel_, kind, of);
  if (name.empty()) return std::nullopt;
  auto bytes = read_file(folder_.get(), name.c_str(), sizeof(Head), sizeof(Head) + kMostOfOne);
  if (!bytes) return std::nullopt;
  Head head;
  std::memcpy(&head, bytes->data(), sizeof head);
  bytes->erase(bytes->begin(), bytes->begin() + sizeof head);
  if (head.magic != Head().magic || head.seal != seal(name, *bytes)) return std::nullopt;
  utimensat(folder_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // those unused go first
  return bytes;
}

void KernelCache::keep(std::string_view kind, const HashValue& of,
                       std::span<const std::byte> content) const {
  const std::string name = name_of(kernel_, kind, of);
  if (name.empty() || content.size() > kMostOfOne) return;
  const Head head{.seal = seal(name, content)};
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&head, 1)), content};
  if (write_file(folder_.get(), name.c_str(), parts, Older::IsReplaced)) make_room();
}

void KernelCache::make_room() const {
  std::vector<Listed> files = list(folder_.get());
  std::ranges::sort(files, [](const Listed& a, const Listed& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) > std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  std::uint64_t bytes = 0;
  for (std::size_t n = 0; n < files.size(); ++n) {
    bytes += files[n].size;
    if (n < kMostFiles && bytes <= kMostBytes) continue;
    unlinkat(folder_.get(), files[n].name.c_str(), 0);
  }
}

Result<std::size_t> KernelCache::remove(const std::string& folder) {
  const auto opened = open_folder(folder);
  if (!opened && opened.error().code == ErrorCode::NotFound) return std::size_t{0};
  if (!opened) return tl::unexpected(opened.error());
  std::size_t entries = 0;
  for (const Listed& file : list(opened->get())) {
    if (unlinkat(opened->get(), file.name.c_str(), 0) != 0) {
      return fail(ErrorCode::Io, fmt::format("{}/{}: {}", folder, file.name, std::strerror(errno)));
    }
    entries += file.is_entry() ? 1 : 0;
  }
  unlinkat(opened->get(), kKeyName, 0);
  rmdir(folder.c_str());  // stays where something of another's lies in it
  return entries;
}

}  // namespace ringside::guest_linux
