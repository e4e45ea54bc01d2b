// Keeps the last part of a text that a guest writes: bounded, and safe to print: a guest must not
// send escape sequences to the user's terminal. Used for the console and QEMU's standard error.
// Does not: lock.
#pragma once

#include <string>
#include <string_view>

namespace ringside::vmm {

class TextTail {
 public:
  /// `limit`: bytes that are kept at most.
  explicit TextTail(std::size_t limit) : limit_(limit) {}

  void append(std::string_view bytes);
  /// The kept part. It begins at the start of a line if it holds one; bytes that do not print are
  /// '?'.
  const std::string& text() const { return text_; }
  /// The last line that is not blank.
  std::string_view last_line() const;

 private:
  std::size_t limit_;
  std::string text_;
};

}  // namespace ringside::vmm
