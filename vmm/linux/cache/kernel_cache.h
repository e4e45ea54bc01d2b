// Keeps facts about a kernel that take long to find out, in files, from one run to the next. Only
// the user who runs us has access: in XDG_CACHE_HOME/ringside, or else in HOME/.cache/ringside. A
// file's name is the kernel's build id, the kind of fact, and a hash of all the guest's bytes from
// which the fact follows. So a guest that lies about its build id gets the facts of the bytes that
// it has, or nothing. The hashes are under a key that lies in the folder (KeyedHash).
// Symbols and types are not kept, because that would save no time. Decoding a kernel's 200,000
// symbols takes 8 ms, and reading them from a file takes 10 ms. Types are as compact in the guest
// as in any file. Both would still have to be sorted, indexed and linked, and the guest's bytes
// copied for the hash.
//
// Hostile files: the folder and each file must be the user's own and nobody else's to write, no
// links are followed, and the content must have the hash under our key. Its readers still check it
// as strictly as bytes of a guest. A file that is wrong in any way counts as missing. Bounded by
// kMostFiles and kMostBytes; the files that were used longest ago are removed.
// Threads: any; several processes may use a folder.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/linux/cache/keyed_hash.h"

namespace ringside::guest_linux {

class KernelCache {
 public:
  static constexpr std::size_t kMostFiles = 256;
  static constexpr std::uint64_t kMostBytes = 64 << 20;  // of all files
  static constexpr std::uint64_t kMostOfOne = 8 << 20;

  /// The user's, for the kernel with this build id, in hexadecimal digits. Empty without one, where
  /// RINGSIDE_CACHE is "off", and where there can be none: no home, or a folder that others may
  /// write to.
  static std::optional<KernelCache> of_user(std::string_view kernel);
  /// The folder that of_user() uses; empty if the user has no home.
  static std::string folder_of_user();
  /// Makes the folder, and those above it, when they are not there. Error: why it is not used.
  static Result<KernelCache> open(const std::string& folder, std::string_view kernel);
  /// Removes all files of a cache and its folder; returns the number of entries. A folder that is
  /// not there has none.
  static Result<std::size_t> remove(const std::string& folder);

  /// To be filled with all that the content follows from. The cache must outlive it. No two builds
  /// of ringside get the same.
  KeyedHash hash() const;

  /// The content that was kept of the kernel as `kind` (a word of small letters) under this hash;
  /// empty when there is nothing sound.
  std::optional<std::vector<std::byte>> find(std::string_view kind, const HashValue& of) const;
  /// Keeps it, whole or not at all: without a word where that fails.
  void keep(std::string_view kind, const HashValue& of, std::span<const std::byte> content) const;

 private:
  KernelCache(UniqueFd folder, std::string_view kernel)
      : folder_(std::move(folder)), kernel_(kernel) {}

  Result<void> load_key();
  HashValue seal(std::string_view name, std::span<const std::byte> content) const;
  void make_room() const;

  UniqueFd folder_;
  std::string kernel_;
  std::shared_ptr<const HashKey> key_;  // shared: hashes refer to it while the cache moves
};

}  // namespace ringside::guest_linux
