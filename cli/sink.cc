#include "cli/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ringside::cli {

Result<Sink> Sink::append_to(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd) {
    return fail(ErrorCode::Io, fmt::format("cannot write to {}: {}", path, std::strerror(errno)));
  }
  Sink sink(fd.get());
  sink.owned_ = std::move(fd);
  return sink;
}

bool Sink::flush() {
  std::string_view rest = pending_;
  while (!rest.empty() && !closed_) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody else made this shared descriptor non-blocking; wait like a blocking one would.
      pollfd writable{fd_, POLLOUT, 0};
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
