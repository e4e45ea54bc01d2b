#include "cli/guest/guest_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

constexpr std::size_t kLongestLine = 512;
constexpr std::size_t kLongestCommand = 16383;  // images/README.md
constexpr int kSendLimit = 10'000;              // ms for the guest to take one request
constexpr int kMostReads = 256;  // of 4 KiB at once: a chatty command must not hold us

/// The number after `word` and a blank, if that is the whole line and it lies in [least, most].
std::optional<std::int64_t> number_after(std::string_view line, std::string_view word,
                                         std::int64_t least, std::int64_t most) {
  if (!line.starts_with(word)) return std::nullopt;
  const auto value = parse_number<std::int64_t>(line.substr(word.size()));
  if (!value || *value < least || *value > most) return std::nullopt;
  return value;
}

/// The bytes that pairs of hex digits stand for; empty when it is anything else.
std::optional<std::string> bytes_of_hex(std::string_view digits) {
  if (digits.empty() || digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (; !digits.empty(); digits.remove_prefix(2)) {
    const auto byte = parse_number<unsigned char>(digits.substr(0, 2), 16);
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

bool readable_now(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

std::optional<GuestMessage> parse_guest_line(std::string_view line) {
  using Kind = GuestMessage::Kind;
  constexpr std::int64_t kLargestPid = 1 << 22;  // PID_MAX_LIMIT of 64-bit Linux
  constexpr std::string_view kError = "error ", kStandardError = "err ";
  if (line == "ready") return GuestMessage{Kind::Ready, 0, {}};
  if (const auto pid = number_after(line, "pid ", 1, kLargestPid)) {
    return GuestMessage{Kind::Pid, *pid, {}};
  }
  if (const auto status = number_after(line, "exit ", 0, 255)) {
    return GuestMessage{Kind::Exit, *status, {}};
  }
  if (line.starts_with(kStandardError)) {
    auto bytes = bytes_of_hex(line.substr(kStandardError.size()));
    if (bytes) return GuestMessage{Kind::StandardError, 0, std::move(*bytes)};
  }
  if (line.starts_with(kError)) {
    return GuestMessage{Kind::Error, 0, printable(line.substr(kError.size()))};
  }
  return std::nullopt;
}

Result<void> GuestCommand::send(std::string_view line) {
  while (!line.empty()) {
    const ssize_t sent = ::write(port_.control, line.data(), line.size());
    if (sent >= 0) {
      line.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    pollfd entry{port_.control, POLLOUT, 0};
    if (errno != EAGAIN || ::poll(&entry, 1, kSendLimit) != 1) {
      return fail(
          ErrorCode::MachineGone,
          fmt::format("the guest's command port takes no request: {}", std::strerror(errno)));
    }
  }
  return {};
}

Result<void> GuestCommand::request(std::string_view command, Errors errors) {
  if (command.empty() || command.size() > kLongestCommand ||
      command.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::Usage,
                fmt::format("-c takes a command of 1 to {} bytes", kLongestCommand));
  }
  std::string line = errors == Errors::Apart ? "run-apart " : "run ";
  for (const char c : command) line += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return send(line + '\n');
}

Result<void> GuestCommand::begin() {
  return send("begin\n");
}

Result<void> GuestCommand::go() {
  return send("go\n");
}

Result<void> GuestCommand::read_control() {
  char bytes[1024];
  const ssize_t size = ::read(port_.control, bytes, sizeof bytes);
  if (size > 0) {
    received_.append(bytes, static_cast<std::size_t>(size));
  } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
    return fail(ErrorCode::MachineGone, "the guest's command port was closed");
  }
  return {};
}

Result<std::optional<GuestMessage>> GuestCommand::next_message() {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos && received_.size() <= kLongestLine) return std::nullopt;
  if (end > kLongestLine) {  // npos included
    received_.clear();
    return fail(ErrorCode::Invalid, "the guest's command port sent a line that is too long");
  }
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  auto message = parse_guest_line(line);
  if (!message) {
    return fail(ErrorCode::Invalid,
                fmt::format("the guest's command port sent '{}'", printable(line)));
  }
  lacks_request_ = message->kind == GuestMessage::Kind::Error && message->text == "unknown request";
  return message;
}

bool GuestCommand::read_output(std::string& to) {
  char bytes[4096];
  for (int reads = 0; reads < kMostReads && readable_now(port_.output); ++reads) {
    const ssize_t size = ::read(port_.output, bytes, sizeof bytes);
    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) return false;
    if (size > 0) to.append(bytes, static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace ringside::cli
