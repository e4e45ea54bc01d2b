// In this file, top to bottom: a peer that has said all that it will, the gdbstub, the monitor.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "tests/fuzz/host_input.h"
#include "tests/fuzz/script.h"
#include "vmm/base/check.h"
#include "vmm/base/unique_fd.h"
#include "vmm/qemu/gdb_remote.h"
#include "vmm/qemu/qmp.h"

namespace ringside::fuzz {
namespace {

using namespace vmm;

constexpr std::size_t kMostRequests = 12;
// Nobody waits for it: what the peer says is there, and then it hangs up.
constexpr std::chrono::seconds kTimeout(60);

/// The peer's end takes what is sent to it and never looks.
class Peer {
 public:
  explicit Peer(std::string_view words) {
    int ends[2] = {-1, -1};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    client_ = UniqueFd(ends[0]);
    own_ = UniqueFd(ends[1]);
    // A peer whose words do not fit into the socket is one that ends sooner.
    (void)!send(own_.get(), words.data(), words.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(own_.get(), SHUT_WR);
  }
  UniqueFd client() { return std::move(client_); }

 private:
  UniqueFd client_, own_;
};

void check_line(const Error& error) {
  CHECK(!error.message.empty() && error.message.size() < 1024);
  CHECK(std::ranges::all_of(error.message, [](char c) { return c >= ' ' && c < 0x7f; }));
}

/// Whether the request was granted.
template <class T>
std::size_t granted(const Result<T>& result) {
  if (!result) check_line(result.error());
  return result ? 1 : 0;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  // SAFETY: char may alias.
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string framed(std::string_view payload) {
  unsigned sum = 0;
  for (const char c : payload) sum += static_cast<unsigned char>(c);
  std::array<char, 4> tail{};
  std::snprintf(tail.data(), tail.size(), "#%02x", sum & 0xff);
  return "$" + std::string(payload) + tail.data();
}

constexpr std::uint8_t kRaw = 1;  // bytes as they are, not a packet with its checksum

std::string take_packets(FuzzScript& script) {
  constexpr std::size_t kMost = 128 << 10;
  std::string words;
  while (!script.at_end() && words.size() < kMost) {
    const auto how = script.take<std::uint8_t>();
    const auto payload = text_of(script.take_bytes(script.take<std::uint16_t>()));
    words += (how & kRaw) != 0 ? std::string(payload) : framed(payload);
  }
  return words;
}

std::size_t request(GdbRemote& stub, unsigned what) {
  const unsigned number = what / 5;
  switch (what % 5) {
    case 0: return granted(stub.attach());
    case 1: return granted(stub.pause());
    case 2: return granted(stub.resume());
    case 3: return granted(stub.read_registers(number));
    default: {
      std::vector<CodeWrite> writes(number * std::size_t{4});
      for (std::size_t n = 0; n < writes.size(); ++n) writes[n] = {GuestPhys(n), 0xcc};
      return granted(stub.write_bytes(writes, GuestMemory()));
    }
  }
}

}  // namespace

std::size_t talk_to_gdbstub(std::span<const std::byte> input) {
  FuzzScript script(input);
  const auto requests = script.take_bytes(script.take<std::uint8_t>() % kMostRequests);
  Peer peer(take_packets(script));
  GdbRemote stub(peer.client(), kTimeout);
  std::size_t done = 0;
  for (const std::byte what : requests) done += request(stub, std::to_integer<unsigned>(what));
  return done;
}

namespace {

void put_text(ScriptWriter& to, std::string_view text) {
  for (const char c : text) to.put(c);
}

std::vector<std::byte> gdbstub_input(const std::vector<std::uint8_t>& requests,
                                     const std::vector<std::string>& packets) {
  ScriptWriter input;
  input.put(static_cast<std::uint8_t>(requests.size()));
  for (const std::uint8_t what : requests) input.put(what);
  for (const std::string& packet : packets) {
    const bool raw = packet.starts_with('+');
    input.put(raw ? kRaw : std::uint8_t{0}, static_cast<std::uint16_t>(packet.size()));
    put_text(input, packet);
  }
  return input.bytes();
}

}  // namespace

std::vector<std::vector<std::byte>> gdbstub_inputs() {
  const std::string registers(1216, '7');
  const std::vector<std::string> writes(8 + 2, "OK");
  return {gdbstub_input({0, 1, 3, 2}, {"+", "T05thread:01;", "T02thread:01;", "OK", registers}),
          gdbstub_input({1, 8, 13}, {"+$T", "+02#", "+b6", "OK", registers, "E01", registers}),
          gdbstub_input({14}, writes),
          gdbstub_input({0, 14}, {"S05", "OK", "T05", "OK", "E14", "OK", "W00"})};
}

std::size_t talk_to_monitor(std::span<const std::byte> input) {
  constexpr std::size_t kMostEvents = 256;
  FuzzScript script(input);
  const auto requests = script.take_bytes(script.take<std::uint8_t>() % kMostRequests);
  Peer peer(text_of(script.take_bytes(input.size())));
  QmpClient monitor(peer.client());
  QemuEnd end;
  std::size_t done = 0;
  const auto take_events = [&] {
    for (std::size_t n = 0;; ++n, ++done) {
      const auto event = monitor.next_event();
      if (!event) return;
      CHECK(n < kMostEvents && !event->name.empty() && event->data.is_object());
      end.note(*event);
    }
  };
  for (const std::byte what : requests) {
    switch (std::to_integer<unsigned>(what) % 4) {
      case 0: done += granted(monitor.handshake(kTimeout)); break;
      case 1: done += granted(monitor.execute("query-status", kTimeout)); break;
      case 2: done += granted(monitor.take_in()); break;
      default: take_events();
    }
  }
  take_events();
  CHECK(end.judge("") != MachineState::Running);
  return done;
}

namespace {

std::vector<std::byte> monitor_input(const std::vector<std::uint8_t>& requests,
                                     std::string_view words) {
  ScriptWriter input;
  input.put(static_cast<std::uint8_t>(requests.size()));
  for (const std::uint8_t what : requests) input.put(what);
  put_text(input, words);
  return input.bytes();
}

}  // namespace

std::vector<std::vector<std::byte>> monitor_inputs() {
  const std::string greeting = R"({"QMP": {"version": {}, "capabilities": []}})"
                               "\r\n"
                               R"({"return": {}, "id": 1})"
                               "\r\n";
  return {monitor_input({0, 1, 2}, greeting + R"({"return": {"status": "running"}, "id": 2})"
                                              "\r\n"
                                              R"({"event": "STOP", "timestamp": {}})"
                                              "\r\n"),
          monitor_input({0, 1, 3, 2}, greeting + R"({"event": "SHUTDOWN", "data": {"guest": true, )"
                                                 R"("reason": "guest-reset"}})"
                                                 "\n"
                                                 R"({"error": {"class": "GenericError", )"
                                                 R"("desc": "no such thing"}, "id": 2})"
                                                 "\n"
                                                 R"({"event": "GUEST_PANICKED"})"
                                                 "\n"),
          monitor_input({0, 1}, greeting + R"({"error": {"desc": "JSON parse error"}})"
                                           "\n")};
}

}  // namespace ringside::fuzz
