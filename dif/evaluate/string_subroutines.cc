// In this file: strings, then path names.
#include <algorithm>

#include "dif/evaluate/subroutines.h"

namespace ringside::dif {

namespace {

/// A position or length that D gives: far beyond any string is as good as infinite, and its
/// arithmetic cannot overflow.
std::int64_t position(std::uint64_t value) {
  constexpr std::int64_t kFar = std::int64_t{1} << 32;
  return std::clamp(static_cast<std::int64_t>(value), -kFar, kFar);
}

std::uint64_t int_result(std::size_t at) {
  return at == std::string_view::npos ? static_cast<std::uint64_t>(-1) : at;
}

}  // namespace

StringSubroutines::StringSubroutines(Memory& memory)
    : memory_(memory), token_memory_(memory.string_size()) {
  const auto bytes = token_memory_.bytes();
  // SAFETY: char may alias.
  token_text_ = {reinterpret_cast<char*>(bytes.data()),
                 std::min(bytes.size(), memory.string_size())};
}

CallResult StringSubroutines::strlen(CallArguments a) {
  return TRY(string_argument(memory_, a[0])).size();
}

CallResult StringSubroutines::strjoin(CallArguments a) {
  const std::string_view left = TRY(string_argument(memory_, a[0]));
  const std::string_view right = TRY(string_argument(memory_, a[1]));
  const std::size_t most = memory_.string_size();
  const std::size_t size = std::min(left.size() + right.size(), most);
  const std::uint64_t handle = TRY(memory_.allocate(size + 1));
  const auto out = TRY(memory_.writable(handle, size + 1));
  const auto first = std::as_bytes(std::span(left)), second = std::as_bytes(std::span(right));
  const auto end = std::ranges::copy(first, out.begin()).out;
  std::ranges::copy(second.first(size - first.size()), end);
  out[size] = std::byte{0};
  return handle;
}

CallResult StringSubroutines::strchr(CallArguments a) {
  const std::string_view s = TRY(string_argument(memory_, a[0]));
  const char c = static_cast<char>(a[1].value);
  const std::size_t at = c == '\0' ? s.size() : s.find(c);
  return at == s.npos ? 0 : a[0].value + at;
}

CallResult StringSubroutines::strrchr(CallArguments a) {
  const std::string_view s = TRY(string_argument(memory_, a[0]));
  const char c = static_cast<char>(a[1].value);
  const std::size_t at = c == '\0' ? s.size() : s.rfind(c);
  return at == s.npos ? 0 : a[0].value + at;
}

CallResult StringSubroutines::strstr(CallArguments a) {
  const std::string_view s = TRY(string_argument(memory_, a[0]));
  const std::size_t at = s.find(TRY(string_argument(memory_, a[1])));
  return at == s.npos ? 0 : a[0].value + at;
}

/// strtok(s, d) copies s, so that nothing that s points at can change it; strtok(NULL, d) goes on
/// at the delimiter that ended the token, which may be none of the next call's.
CallResult StringSubroutines::strtok(CallArguments a) {
  if (a[0].value != 0) {
    const std::string_view whole = TRY(string_argument(memory_, a[0]));
    std::ranges::copy(whole, token_text_.begin());
    token_rest_ = {token_text_.data(), whole.size()};
  }
  if (token_rest_.data() == nullptr) return 0;
  const std::string_view delimiters = TRY(string_argument(memory_, a[1]));
  const std::size_t first = token_rest_.find_first_not_of(delimiters);
  if (first == token_rest_.npos) {
    token_rest_ = {};
    return 0;
  }
  const std::size_t end =
      std::min(token_rest_.find_first_of(delimiters, first), token_rest_.size());
  const std::string_view token = token_rest_.substr(first, end - first);
  token_rest_.remove_prefix(end);
  return string_result(memory_, token);
}

/// A negative index counts from the end; a negative length leaves that many bytes off the end.
CallResult StringSubroutines::substr(CallArguments a) {
  const std::string_view s = TRY(string_argument(memory_, a[0]));
  const auto length = static_cast<std::int64_t>(s.size());
  std::int64_t from = position(a[1].value);
  std::int64_t count = a.size() > 2 ? position(a[2].value) : length;
  if (from < 0) {
    from += length;
    // The part before the string is cut off, as long as something of the string is left.
    const bool reaches = a.size() <= 2 || count + from > 0;
    if (from < 0 && reaches) {
      count = a.size() > 2 ? count + from : count;
      from = 0;
    }
  }
  if (from < 0 || from >= length) return string_result(memory_, {});
  if (count < 0) count += length - from;
  if (count <= 0) return string_result(memory_, {});
  return string_result(memory_,
                       s.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(count)));
}

CallResult StringSubroutines::index(CallArguments a) {
  const std::string_view s = TRY(string_argument(memory_, a[0]));
  const std::string_view wanted = TRY(string_argument(memory_, a[1]));
  const std::int64_t from = a.size() > 2 ? std::max<std::int64_t>(position(a[2].value), 0) : 0;
  if (wanted.empty()) return std::min(static_cast<std::size_t>(from), s.size());
  return int_result(s.find(wanted, static_cast<std::size_t>(from)));
}

CallResult StringSubroutines::rindex(CallArguments a) {
  const std::string_view s = TRY(string_argument(memory_, a[0]));
  const std::string_view wanted = TRY(string_argument(memory_, a[1]));
  if (a.size() < 3) return int_result(s.rfind(wanted));
  const std::int64_t from = position(a[2].value);
  if (from < 0) return int_result(wanted.empty() ? 0 : s.npos);
  return int_result(s.rfind(wanted, static_cast<std::size_t>(from)));
}

/// toupper and tolower: flips the case of the ASCII letters first..last.
CallResult StringSubroutines::change_case(CallArguments a, char first, char last) {
  const std::string_view s = TRY(string_argument(memory_, a[0]));
  const std::uint64_t handle = TRY(memory_.new_string(s));
  for (std::byte& byte : TRY(memory_.writable(handle, s.size()))) {
    const char c = static_cast<char>(byte);
    if (c >= first && c <= last) byte ^= std::byte{'a' ^ 'A'};
  }
  return handle;
}

/// FreeBSD's: size - 1 bytes of memory as one string, with `c` where a NUL would end it.
CallResult StringSubroutines::memstr(CallArguments a) {
  const std::uint64_t size = std::min<std::uint64_t>(a[2].value, memory_.string_size() + 1);
  if (size == 0) return string_result(memory_, {});
  const std::uint64_t handle = TRY(memory_.allocate(size));
  const auto out = TRY(memory_.scratch(handle, size));
  TRY(memory_.read(a[0].value, out.first(size - 1)));
  std::ranges::replace(out, std::byte{0}, static_cast<std::byte>(a[1].value));
  out.back() = std::byte{0};
  return handle;
}

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
