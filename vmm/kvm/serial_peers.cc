#include "vmm/kvm/serial_peers.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/kvm/host/sandbox.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::size_t kConsole = 0;
constexpr std::size_t kChunk = 4096;

}  // namespace

Result<std::unique_ptr<SerialPeers>> SerialPeers::create(bool terminal) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    return fail(ErrorCode::Io, fmt::format("cannot make an event: {}", std::strerror(errno)));
  }
  std::unique_ptr<SerialPeers> peers(new SerialPeers(terminal, std::move(wake)));
  for (std::size_t port = 0; port < kPorts; ++port) {
    Peer& peer = peers->peers_[port];
    if (port == kConsole) {
      peer.in = terminal ? STDIN_FILENO : -1;
      if (terminal) peers->raw_ = RawTerminal::make(STDIN_FILENO);
      continue;
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return fail(ErrorCode::Io, fmt::format("cannot make a socket: {}", std::strerror(errno)));
    }
    peer.ours = UniqueFd(ends[0]);
    peer.guests = UniqueFd(ends[1]);
    peer.in = ends[1];
  }
  return peers;
}

Uart16550::Output SerialPeers::output(std::size_t port) {
  if (port == kConsole) return console_output();
  return
      [this, peer = &peers_[port]](std::span<const std::byte> bytes) { return send(*peer, bytes); };
}

VirtioConsole::Output SerialPeers::console_output() {
  return [this](std::span<const std::byte> bytes) { return show(bytes); };
}

std::function<void()> SerialPeers::room() {
  return [this] { wake(); };
}

std::size_t SerialPeers::show(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  {
    const std::lock_guard lock(tail_mutex_);
    tail_.append(text);
  }
  // Output that the user's terminal does not take is dropped; the guest does not wait for it.
  if (terminal_ && write(STDERR_FILENO, text.data(), text.size()) < 0) return bytes.size();
  return bytes.size();
}

std::size_t SerialPeers::send(Peer& peer, std::span<const std::byte> bytes) {
  const ssize_t sent =
      ::send(peer.guests.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno != EAGAIN && errno != EINTR) return bytes.size();  // nobody will ever read it
  peer.blocked = true;
  wake();
  return 0;
}

Result<void> SerialPeers::start(const Ports& ports) {
  ports_ = ports;
  thread_ = TRY(start_sandboxed({"serial ports"}, [this] { run(); }));
  return {};
}

void SerialPeers::stop() {
  ending_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
  raw_.reset();
}

void SerialPeers::wake() {
  eventfd_write(wake_.get(), 1);
}

void SerialPeers::run() {
  while (!ending_) {
    std::array<pollfd, kPorts + 1> polled{};
    for (std::size_t port = 0; port < kPorts; ++port) {
      Peer& peer = peers_[port];
      polled[port].fd = peer.blocked ? peer.guests.get() : peer.in;
      if (peer.in >= 0 && peer.waiting.empty()) polled[port].events |= POLLIN;
      if (peer.blocked) polled[port].events |= POLLOUT;
      if (polled[port].events == 0) polled[port].fd = -1;  // else its hang-up would spin us
    }
    polled[kPorts] = {wake_.get(), POLLIN, 0};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    for (std::size_t port = 0; port < kPorts; ++port) {
      if ((polled[port].revents & (POLLOUT | POLLERR)) != 0 && peers_[port].blocked) {
        peers_[port].blocked = false;
        ports_.uarts[port]->output_ready();
      }
      feed(port);
      if ((polled[port].revents & (POLLIN | POLLHUP)) != 0) take_input(port);
    }
  }
}

std::size_t SerialPeers::receive(std::size_t port, std::span<const std::byte> bytes) {
  if (port == kConsole && ports_.typed != nullptr) return ports_.typed->receive(bytes);
  return ports_.uarts[port]->receive(bytes);
}

/// Gives the port the input that waited, as far as it has room now.
void SerialPeers::feed(std::size_t port) {
  auto& waiting = peers_[port].waiting;
  if (waiting.empty()) return;
  const std::size_t taken = receive(port, waiting);
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(taken));
}

void SerialPeers::take_input(std::size_t port) {
  Peer& peer = peers_[port];
  if (peer.in < 0 || !peer.waiting.empty()) return;
  std::array<std::byte, kChunk> bytes;
  const ssize_t got = read(peer.in, bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    peer.in = -1;
    return;
  }
  std::span<const std::byte> input = std::span(bytes).first(static_cast<std::size_t>(got));
  std::vector<std::byte> guests;
  if (port == kConsole && raw_) {
    guests = take_commands(input);
    input = guests;
  }
  const std::size_t taken = receive(port, input);
  peer.waiting.assign(input.begin() + static_cast<std::ptrdiff_t>(taken), input.end());
}

std::vector<std::byte> SerialPeers::take_commands(std::span<const std::byte> keys) {
  TerminalKeys::Typed typed = keys_.take(keys);
  if (typed.help)
    (void)!write(STDERR_FILENO, TerminalKeys::kHelp.data(), TerminalKeys::kHelp.size());
  // To the session's thread, which waits for it; kill() the sandbox forbids.
  if (typed.end) syscall(SYS_tgkill, getpid(), getpid(), SIGINT);
  return std::move(typed.guests);
}

std::string SerialPeers::console_tail() const {
  const std::lock_guard lock(tail_mutex_);
  return tail_.text();
}

}  // namespace ringside::vmm::kvm
