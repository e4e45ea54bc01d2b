#include "cli/output/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vmm/base/printable.h"

namespace ringside::cli {

namespace {

Result<UniqueFd> open_to_append(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd) {
    return fail(ErrorCode::Io, fmt::format("cannot write to {}: {}", path, std::strerror(errno)));
  }
  return fd;
}

}  // namespace

Sink::Sink(int fd) : fd_(fd) {
  look_at_descriptor();
}

void Sink::look_at_descriptor() {
  terminal_ = ::isatty(fd()) == 1;
}

Result<void> Sink::check_takes_bytes() const {
  if (!escapes()) return {};
  return fail(ErrorCode::Unsupported,
              "this output is no text for a terminal: name a file for it with -o");
}

void Sink::write(std::string_view text, const OwnParts& own) {
  if (!escapes()) {
    pending_ += text;
    return;
  }
  std::size_t at = 0;
  for (const auto& [begin, end] : own) {
    pending_ += terminal_text(text.substr(at, begin - at));
    pending_ += text.substr(begin, end - begin);
    at = end;
  }
  pending_ += terminal_text(text.substr(at));
}

Result<Sink> Sink::append_to(const std::string& path) {
  UniqueFd fd = TRY(open_to_append(path));
  Sink sink(fd.get());
  sink.owned_ = std::move(fd);
  return sink;
}

Result<Sink> Sink::fill(const std::string& path) {
  Sink sink = TRY(append_to(path));
  struct stat status {};
  if (::fstat(sink.fd_, &status) == 0 && S_ISREG(status.st_mode) && status.st_size != 0) {
    return fail(ErrorCode::Invalid,
                fmt::format("{} is not empty, and a picture cannot be appended to it: remove the "
                            "file, or name another one",
                            path));
  }
  return sink;
}

Result<void> Sink::redirect(const std::string& path) {
  UniqueFd fd = TRY(open_to_append(path));
  flush();
  redirected_ = std::move(fd);
  look_at_descriptor();
  return {};
}

void Sink::restore() {
  flush();
  redirected_ = UniqueFd();
  look_at_descriptor();
}

void Sink::truncate() {
  flush();
  struct stat status {};
  if (::fstat(fd(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (::ftruncate(fd(), 0) == 0) ::lseek(fd(), 0, SEEK_SET);
}

bool Sink::flush() {
  std::string_view rest = pending_;
  while (!rest.empty() && !closed_) {
    const ssize_t written = ::write(fd(), rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody else made this shared descriptor non-blocking; wait like a blocking one would.
      pollfd writable{fd(), POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      closed_ = true;
      if (errno != EPIPE) problem_ = std::strerror(errno);
    }
  }
  pending_.clear();
  return !closed_;
}

}  // namespace ringside::cli
