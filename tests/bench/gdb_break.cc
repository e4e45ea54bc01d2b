// gdb_break: drives one breakpoint of QEMU's gdbstub as fast as it goes and counts its stops.
// Used by compare as the yardstick for tracing through the gdbstub. One packet a firing: the
// breakpoint stands on a no-op (the ftrace site), so `c ADDRESS` goes on after it, without the
// remove, step and insert that any other instruction would need. Reads nothing from the guest.
//
//   gdb_break SOCKET ADDRESS LENGTH
//
// Prints "armed", and at the end of its standard input removes the breakpoint, lets the guest go
// on, and prints "stops N".

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "vmm/base/numbers.h"
#include "vmm/base/unique_fd.h"

namespace ringside::bench {
namespace {

[[noreturn]] void give_up(std::string_view why) {
  fmt::print(stderr, "gdb_break: {}\n", why);
  std::exit(1);
}

/// The packets of the remote protocol over one socket.
class Stub {
 public:
  explicit Stub(const char* path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) give_up("the socket's path is too long");
    std::strcpy(address.sun_path, path);
    // SAFETY: the sockets interface takes every kind of address as a sockaddr.
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(socket_.get(), generic, sizeof address) != 0) give_up("cannot connect");
  }

  int fd() const { return socket_.get(); }

  /// Sends one packet, after the acknowledgement of what was received before.
  void send(std::string_view payload) {
    std::uint8_t sum = 0;
    for (const char c : payload) sum = static_cast<std::uint8_t>(sum + c);
    write(fmt::format("+${}#{:02x}", payload, sum));
  }

  void interrupt() { write("\x03"); }

  /// The next packet's payload; waits for it.
  std::string receive() {
    for (;;) {
      if (auto packet = take()) return *std::move(packet);
      read_more();
    }
  }

  /// Reads what has arrived; an acknowledgement alone makes no packet.
  void read_more() {
    char bytes[4096];
    const ssize_t count = ::read(socket_.get(), bytes, sizeof bytes);
    if (count <= 0) give_up("the gdbstub went away");
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }

  /// The next packet's payload, if it is here as a whole.
  std::optional<std::string> take() {
    const auto start = buffer_.find('$');
    const auto end = buffer_.find('#', start == std::string::npos ? 0 : start);
    if (start == std::string::npos || end == std::string::npos || buffer_.size() < end + 3) {
      return std::nullopt;
    }
    std::string payload = buffer_.substr(start + 1, end - start - 1);
    buffer_.erase(0, end + 3);
    return payload;
  }

  void expect_ok(std::string_view request) {
    send(request);
    const std::string answer = receive();
    if (answer != "OK") give_up(fmt::format("'{}' was answered by '{}'", request, answer));
  }

 private:
  void write(std::string_view bytes) {
    if (::write(socket_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      give_up("cannot write to the gdbstub");
    }
  }

  UniqueFd socket_;
  std::string buffer_;
};

/// Counts stops until standard input ends; leaves the guest stopped.
std::uint64_t count_stops(Stub& stub, std::string_view go_on) {
  std::uint64_t stops = 0;
  pollfd waits[2] = {{stub.fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  stub.send("c");
  for (;;) {
    if (::poll(waits, 2, -1) < 0) give_up("cannot wait");
    if (waits[0].revents != 0) {
      stub.read_more();
      const auto stop = stub.take();
      if (!stop) continue;
      if (!stop->starts_with("T05")) give_up(fmt::format("unexpected stop '{}'", *stop));
      stops++;
      stub.send(go_on);
      continue;
    }
    stub.interrupt();
    stub.receive();
    return stops;
  }
}

std::uint64_t parse(std::string_view text, int base) {
  const auto value = parse_number<std::uint64_t>(text, base);
  if (!value) give_up(fmt::format("bad number '{}'", text));
  return *value;
}

}  // namespace
}  // namespace ringside::bench

int main(int argc, char** argv) {
  using namespace ringside::bench;
  if (argc != 4) give_up("usage: gdb_break SOCKET ADDRESS(hex) LENGTH");
  const std::uint64_t address = parse(argv[2], 16);
  const std::uint64_t after = address + parse(argv[3], 10);
  Stub stub(argv[1]);
  // Connecting stops the guest, and some versions say so unasked: that must not pass for a stop at
  // the breakpoint.
  stub.send("qSupported");
  while (stub.receive().starts_with('T')) {
  }
  stub.expect_ok(fmt::format("Z0,{:x},1", address));
  fmt::print("armed\n");
  std::fflush(stdout);

  const std::uint64_t stops = count_stops(stub, fmt::format("c{:x}", after));

  stub.expect_ok(fmt::format("z0,{:x},1", address));
  stub.send("D");
  stub.receive();
  fmt::print("stops {}\n", stops);
}
