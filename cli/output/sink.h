// Where output goes: text gathered in memory, written to a descriptor in one piece. For a terminal,
// control characters of a guest are escaped, except tabs and newlines; the program's own text is
// not escaped. If the reader went away (EPIPE), the sink closes and the trace does not fail.
// Does not: format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

/// The parts of a text that come from the D program itself, as [begin, end), in order. They are not
/// escaped: the author of the program chose them.
using OwnParts = std::vector<std::pair<std::size_t, std::size_t>>;

class Sink {
 public:
  /// Writes to a descriptor that somebody else owns (stdout).
  explicit Sink(int fd);
  /// Appends to a file, as dtrace's -o does; made when it does not exist.
  static Result<Sink> append_to(const std::string& path);
  /// The same for a document that cannot follow another. Invalid: the file has something in it.
  static Result<Sink> fill(const std::string& path);

  /// Whether it goes to a terminal, and text is escaped for it.
  bool escapes() const { return terminal_ && !raw_text_; }
  /// Unsupported: it goes to a terminal, which takes text alone.
  Result<void> check_takes_bytes() const;
  /// rawtext: a terminal gets everything as it is.
  void set_raw_text(bool raw) { raw_text_ = raw; }

  void write(std::string_view text, const OwnParts& own = {});
  /// Text that a terminal may get as it is.
  void write_safe(std::string_view text) { pending_ += text; }
  /// Writes everything gathered. False once nobody can read it any more; problem() tells why,
  /// unless the reader closed its end.
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
  void look_at_descriptor();

  int fd_;
  bool terminal_ = false, raw_text_ = false;
  UniqueFd owned_;
  UniqueFd redirected_;
  std::string pending_;
  bool closed_ = false;
  std::string problem_;
};

}  // namespace ringside::cli
