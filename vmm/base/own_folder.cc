#include "vmm/base/own_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ringside {

bool is_ours(const struct stat& file, mode_t type, mode_t refused) {
  return (file.st_mode & S_IFMT) == type && file.st_uid == geteuid() &&
         (file.st_mode & refused) == 0;
}

std::string runtime_folder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return std::string(runtime) + "/ringside";
  return "/tmp/ringside-" + std::to_string(geteuid());
}

Result<UniqueFd> open_own_folder(const std::string& folder, mode_t refused) {
  UniqueFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!opened || fstat(opened.get(), &found) != 0) {
    return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io, std::strerror(errno));
  }
  if (!is_ours(found, S_IFDIR, refused)) return fail(ErrorCode::Invalid, "it is not ours alone");
  return opened;
}

std::vector<std::string> list_names(int folder) {
  std::vector<std::string> names;
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(again >= 0 ? fdopendir(again) : nullptr,
                                                    closedir);
  if (!listing) {
    if (again >= 0) close(again);
    return names;
  }
  while (const dirent* const next = readdir(listing.get())) names.emplace_back(next->d_name);
  return names;
}

}  // namespace ringside
