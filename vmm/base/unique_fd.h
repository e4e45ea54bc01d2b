// UniqueFd owns a file descriptor and closes it once. raise_event() makes one of eventfd(2)
// readable.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace ringside {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// Wakes a thread that polls `event`, a descriptor of eventfd(2). The write fails only when the
/// counter is full: then the descriptor is readable already.
inline void raise_event(const UniqueFd& event) {
  const std::uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

}  // namespace ringside
