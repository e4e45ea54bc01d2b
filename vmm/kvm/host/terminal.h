// The user's terminal as the guest's console: every key goes to the guest, Ctrl-C too. Only Ctrl-A
// begins a command of ours; the keys are those of QEMU's -nographic.
// Used by serial_peers. Does not: read or show anything.
#pragma once

#include <termios.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace ringside::vmm::kvm {

/// Separates the guest's input from commands of ours.
class TerminalKeys {
 public:
  static constexpr std::string_view kHelp =
      "\r\nCtrl-A x       end\r\nCtrl-A h       this help\r\nCtrl-A Ctrl-A  a Ctrl-A for the "
      "guest\r\n";

  struct Typed {
    std::vector<std::byte> guests;  // input for the guest
    bool help = false, end = false;
  };
  /// A command may be split over two calls.
  Typed take(std::span<const std::byte> keys);

 private:
  bool command_ = false;  // the next key is one
};

/// While one lives, the terminal passes each key on at once and shows nothing by itself.
class RawTerminal {
 public:
  /// Null when `fd` is no terminal, or another process group is its foreground. `fd` stays the
  /// caller's.
  static std::unique_ptr<RawTerminal> make(int fd);
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal();

 private:
  RawTerminal(int fd, const termios& before) : fd_(fd), before_(before) {}

  const int fd_;
  const termios before_;
};

}  // namespace ringside::vmm::kvm
