// The other ends of the guest's serial ports, and the thread that feeds input into the ports:
//   ttyS0  the console. Its last lines are kept. With a terminal its output goes to stderr, and
//   stdin
//          is its input; Ctrl-A x there ends us as SIGINT does (terminal.h)
//   hvc0   a second console, with the same output. It gets the input in place of ttyS0 if the
//          kernel's command line makes it the main console
//   ttyS1, ttyS2  a socket each, for the command port (images/README.md)
// A socket that nobody empties stops the guest's writer, nothing else.
// Used by board and kvm_machine. Lock: tail_mutex_, for copies only; a UART may be locked above it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/uart16550.h"
#include "vmm/kvm/devices/virtio_console.h"
#include "vmm/kvm/host/terminal.h"
#include "vmm/text_tail.h"

namespace ringside::vmm::kvm {

class SerialPeers {
 public:
  static constexpr std::size_t kPorts = 3;

  /// `terminal`: stdin and stderr are the console's. Io when the host gives no descriptors.
  static Result<std::unique_ptr<SerialPeers>> create(bool terminal);
  ~SerialPeers() { stop(); }
  SerialPeers(const SerialPeers&) = delete;
  SerialPeers& operator=(const SerialPeers&) = delete;

  // Callbacks for the devices, which this object must outlive.
  Uart16550::Output output(std::size_t port);  // `port`: 0 is ttyS0
  VirtioConsole::Output console_output();
  std::function<void()> room();

  struct Ports {
    std::array<Uart16550*, kPorts> uarts{};
    VirtioConsole* typed = nullptr;  // gets the keyboard's input; null: ttyS0 does
  };
  /// Starts the thread, in the sandbox (sandbox.h). The ports must outlive it: stop() first.
  Result<void> start(const Ports& ports);
  void stop();

  /// Our ends of ttyS1 and ttyS2; they stay owned by this object.
  int control() const { return peers_[1].ours.get(); }
  int command_output() const { return peers_[2].ours.get(); }
  /// The last lines of the console. Any thread.
  std::string console_tail() const;

 private:
  struct Peer {
    UniqueFd ours, guests;             // the two ends of a socket pair; neither for the console
    int in = -1;                       // where input comes from; -1: nowhere, or at its end
    std::atomic<bool> blocked{false};  // output waits for room in the socket
    std::vector<std::byte> waiting;    // input that the UART had no room for
  };
  SerialPeers(bool terminal, UniqueFd wake) : terminal_(terminal), wake_(std::move(wake)) {}
  std::size_t show(std::span<const std::byte> bytes);
  std::size_t send(Peer& peer, std::span<const std::byte> bytes);
  void wake();
  void run();
  std::size_t receive(std::size_t port, std::span<const std::byte> bytes);
  void feed(std::size_t port);
  void take_input(std::size_t port);
  std::vector<std::byte> take_commands(std::span<const std::byte> keys);

  const bool terminal_;
  const UniqueFd wake_;
  std::array<Peer, kPorts> peers_;
  Ports ports_;
  std::atomic<bool> ending_{false};
  mutable std::mutex tail_mutex_;
  TextTail tail_{16 << 10};
  std::unique_ptr<RawTerminal> raw_;  // when stdin is a terminal
  TerminalKeys keys_;
  std::thread thread_;
};

}  // namespace ringside::vmm::kvm
