#include "vmm/saved/stream_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ringside::vmm {

Error StreamInput::damaged(std::string_view stream, std::string_view how) {
  return {ErrorCode::Invalid, fmt::format("{} is damaged: {}", stream, how)};
}

Result<void> StreamInput::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (begin_ == end_) TRY(fill());
    const std::size_t some = std::min(out.size(), end_ - begin_);
    std::memcpy(out.data(), buffer_.data() + begin_, some);
    begin_ += some;
    out = out.subspan(some);
  }
  return {};
}

Result<void> StreamInput::skip(std::uint64_t size) {
  constexpr std::uint64_t kMost = 64 << 20;
  if (size > kMost) return Unexpected<Error>(damaged(what_, "a length is absurd"));
  std::vector<std::byte> bytes(size);
  return read(bytes);
}

Result<std::string> StreamInput::name() {
  std::string text(TRY(number<std::uint8_t>()), '\0');
  TRY(read(std::as_writable_bytes(std::span(text))));
  return text;
}

Result<void> StreamInput::fill() {
  if (left_ == 0) return Unexpected<Error>(damaged(what_, "it ends too early"));
  const std::size_t wanted = std::min<std::uint64_t>(buffer_.size(), left_);
  const ssize_t got = pread(fd_, buffer_.data(), wanted, static_cast<off_t>(at_));
  if (got <= 0) return fail(ErrorCode::Io, "it cannot be read");
  at_ += static_cast<std::uint64_t>(got);
  left_ -= static_cast<std::uint64_t>(got);
  begin_ = 0;
  end_ = static_cast<std::size_t>(got);
  return {};
}

Result<UniqueFd> ScratchFile::open() {
  const char* const folder = std::getenv("TMPDIR");
  const std::string path = folder != nullptr && *folder != '\0' ? folder : "/var/tmp";
  UniqueFd fd(::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  return fail(ErrorCode::Io,
              fmt::format("cannot make a file in {} for its RAM: {}", path, std::strerror(errno)));
}

Error ScratchFile::no_room() {
  return {ErrorCode::Io,
          fmt::format("cannot write its RAM to a file in TMPDIR: {}", std::strerror(errno))};
}

}  // namespace ringside::vmm
