#include "vmm/kvm/host/terminal.h"

#include <unistd.h>

#include <utility>

namespace ringside::vmm::kvm {

TerminalKeys::Typed TerminalKeys::take(std::span<const std::byte> keys) {
  constexpr std::byte kCtrlA{1};
  Typed typed;
  for (const std::byte key : keys) {
    if (!std::exchange(command_, false)) {
      command_ = key == kCtrlA;
      if (!command_) typed.guests.push_back(key);
    } else if (key == kCtrlA) {
      typed.guests.push_back(key);
    } else {
      typed.end |= key == std::byte{'x'};
      typed.help |= key == std::byte{'h'} || key == std::byte{'?'};
    }
  }
  return typed;
}

std::unique_ptr<RawTerminal> RawTerminal::make(int fd) {
  termios before{};
  if (tcgetattr(fd, &before) != 0) return nullptr;
  const pid_t front = tcgetpgrp(fd);                      // -1: not the terminal that controls us
  if (front != -1 && front != getpgrp()) return nullptr;  // SIGTTOU would stop us
  termios raw = before;
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR | IGNCR);
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
  if (tcsetattr(fd, TCSANOW, &raw) != 0) return nullptr;
  return std::unique_ptr<RawTerminal>(new RawTerminal(fd, before));
}

RawTerminal::~RawTerminal() {
  tcsetattr(fd_, TCSANOW, &before_);
}

}  // namespace ringside::vmm::kvm
