// -c: a command in the guest's shell, over the machine's command port (images/README.md).
// The guest is hostile: lines are bounded, numbers parsed strictly, and the caller that waits for
// an answer sets the limit of time.
// Does not: wait. The session's poll loop says when the descriptors are readable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/guest_config.h"

namespace ringside::cli {

/// One line from the guest.
struct GuestMessage {
  enum class Kind : std::uint8_t { Ready, Pid, Exit, StandardError, Error };
  Kind kind = Kind::Error;
  std::int64_t number = 0;  // Pid: 1 and up; Exit: 0 to 255
  std::string text;         // Error: printable; StandardError: the command's bytes
  bool operator==(const GuestMessage&) const = default;
};

/// Empty when the line is none that the protocol knows.
std::optional<GuestMessage> parse_guest_line(std::string_view line);

class GuestCommand {
 public:
  explicit GuestCommand(vmm::CommandPort port) : port_(port) {}

  int control_fd() const { return port_.control; }
  int output_fd() const { return port_.output; }

  /// Whether the command's standard error comes apart from its output, as StandardError. An older
  /// image has it together only; it answers Error, and lacks_request() says so.
  enum class Errors : std::uint8_t { Apart, Together };
  /// Asks for the command; the answer is Pid, and the command then waits for go().
  Result<void> request(std::string_view command, Errors errors);
  /// Whether the last message said that the guest knows no such request.
  bool lacks_request() const { return lacks_request_; }
  /// The command's program begins, and waits for go() before its first instruction, with its
  /// libraries mapped; the answer is Pid again. An older image answers Error.
  Result<void> begin();
  Result<void> go();

  /// Takes what the control line has to read now; call it when it is readable.
  Result<void> read_control();
  /// The next whole line that was read; Invalid for one that makes no sense.
  Result<std::optional<GuestMessage>> next_message();

  /// Appends what the command's output has to read now, without waiting. False at its end.
  bool read_output(std::string& to);

 private:
  Result<void> send(std::string_view line);

  vmm::CommandPort port_;
  std::string received_;
  bool lacks_request_ = false;
};

}  // namespace ringside::cli
