#include "dif/evaluate/path_subroutines.h"

#include <algorithm>

namespace ringside::dif {

namespace {

std::string_view without_trailing_slashes(std::string_view path) {
  const std::size_t last = path.find_last_not_of('/');
  return path.substr(0, last == path.npos ? 0 : last + 1);
}

/// Writes a path component by component, dropping what a later ".." takes back.
class CleanPath {
 public:
  CleanPath(std::span<std::byte> out, bool absolute) : out_(out), root_(absolute ? 1 : 0) {
    if (absolute) put('/');
  }

  void add(std::string_view component) {
    if (component.empty() || component == ".") return;
    if (component != ".." || !take_back()) {
      const bool above_root = component == ".." && root_ == 1;
      if (above_root) return;
      if (used_ > root_) put('/');
      for (const char c : component) put(c);
    }
  }
  void finish() {
    if (used_ == 0) put('.');
    put('\0');
  }

 private:
  void put(char c) { out_[used_++] = static_cast<std::byte>(c); }
  /// Removes the last component unless there is none or it is ".." itself.
  bool take_back() {
    std::size_t start = used_;
    while (start > root_ && out_[start - 1] != std::byte{'/'}) --start;
    const std::size_t length = used_ - start;
    const bool dots =
        length == 2 && out_[start] == std::byte{'.'} && out_[start + 1] == std::byte{'.'};
    if (length == 0 || dots) return false;
    used_ = start > root_ ? start - 1 : start;
    return true;
  }

  std::span<std::byte> out_;
  std::size_t root_;
  std::size_t used_ = 0;
};

}  // namespace

CallResult PathSubroutines::basename(CallArguments a) {
  const std::string_view whole = TRY(string_argument(memory_, a[0]));
  if (whole.empty()) return string_result(memory_, ".");
  const std::string_view path = without_trailing_slashes(whole);
  if (path.empty()) return string_result(memory_, "/");
  return string_result(memory_, path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

CallResult PathSubroutines::dirname(CallArguments a) {
  const std::string_view whole = TRY(string_argument(memory_, a[0]));
  const std::string_view path = without_trailing_slashes(whole);
  if (path.empty()) return string_result(memory_, whole.empty() ? "." : "/");
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return string_result(memory_, ".");
  const std::string_view directory = without_trailing_slashes(path.substr(0, slash));
  return string_result(memory_, directory.empty() ? "/" : directory);
}

CallResult PathSubroutines::cleanpath(CallArguments a) {
  std::string_view path = TRY(string_argument(memory_, a[0]));
  if (path.empty()) return string_result(memory_, {});
  const std::size_t room = path.size() + 2;  // "." and NUL at least
  const std::uint64_t handle = TRY(memory_.allocate(room));
  CleanPath clean(TRY(memory_.writable(handle, room)), path.starts_with('/'));
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    clean.add(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  clean.finish();
  return handle;
}

}  // namespace ringside::dif
