// The last part of a text that a guest writes: bounded, and safe to print (a guest must not send
// escape sequences to the user's terminal).
// Used for the console and QEMU's standard error. Does not: lock.
// Fire context: no.
#pragma once

#include <string>
#include <string_view>

namespace ringside::vmm {

class TextTail {
 public:
  explicit TextTail(std::size_t limit) : limit_(limit) {}

  void append(std::string_view bytes);
  /// What was kept, from the start of a line on where there is one; bytes that do not print are
  /// '?'.
  const std::string& text() const { return text_; }
  /// The last line that is not blank.
  std::string_view last_line() const;

 private:
  std::size_t limit_;
  std::string text_;
};

}  // namespace ringside::vmm
