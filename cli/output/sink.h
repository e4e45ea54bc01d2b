// Where output goes: text gathered in memory, written to a descriptor in one piece.
// Does not: format. A reader that went away (EPIPE) closes the sink instead of failing the trace.
#pragma once

#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

class Sink {
 public:
  /// Writes to a descriptor that somebody else owns (stdout).
  explicit Sink(int fd) : fd_(fd) {}
  /// Appends to a file, as dtrace's -o does; made when it does not exist.
  static Result<Sink> append_to(const std::string& path);

  void write(std::string_view text) { pending_ += text; }
  /// Writes everything gathered. False once nobody can read it any more; `problem()` says why when
  /// that was not the reader's own wish.
  bool flush();
  bool closed() const { return closed_; }
  /// freopen(): text that is written from now on is appended to the file at `path`. Text gathered
  /// so far goes to where it was meant to go.
  Result<void> redirect(const std::string& path);
  /// freopen(""): back to the first descriptor.
  void restore();
  bool redirected() const { return static_cast<bool>(redirected_); }
  /// ftruncate(): a regular file becomes empty; anything else stays as it is.
  void truncate();
  int fd() const { return redirected_ ? redirected_.get() : fd_; }
  const std::string& problem() const { return problem_; }

 private:
  int fd_;
  UniqueFd owned_;
  UniqueFd redirected_;
  std::string pending_;
  bool closed_ = false;
  std::string problem_;
};

}  // namespace ringside::cli
