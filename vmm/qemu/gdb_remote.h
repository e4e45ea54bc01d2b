// A client of QEMU's gdbstub: stops the guest and lets it go on, reads registers, and writes code
// bytes, which the translator notices that way. Protocol: "Debugging with GDB", appendix E (Remote
// Protocol). QEMU 7.2 and 10.0 have neither `X` packets nor QStartNoAckMode. To them a '$'
// acknowledges the answer before it, so requests can be pipelined. We never send a '+': any byte
// that reaches the stub while the guest runs stops the guest. Used by QemuVcpus only. Does not:
// lock (QemuVcpus does), set breakpoints, or run single steps.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/code_writer.h"
#include "vmm/qemu/peer_socket.h"

namespace ringside::vmm {

/// Decodes the answer to `g` for x86-64, as hexadecimal text: QEMU's i386-64bit core registers,
/// little endian, at the offsets of registers.def. The others are ignored. Invalid for anything
/// else.
Result<Registers> decode_registers(std::string_view hex);

class GdbRemote {
 public:
  /// `timeout`: how long a request may take; write_bytes adds some for each byte. It tells a dead
  /// stub from a loaded host.
  explicit GdbRemote(UniqueFd fd, std::chrono::milliseconds timeout = std::chrono::seconds(20));

  /// Asked each half second that an answer takes, where it is set: an error ends the wait.
  using Check = std::function<Result<void>()>;
  void set_check(Check check) { check_ = std::move(check); }
  /// Whether the stub has reported a stop since the last request began. That happens if the guest
  /// ran although we had paused it. If it ran when the request came, the stub took the first byte
  /// for an interrupt and dropped the rest: there is no answer, and the stop is ours.
  bool saw_stop() const { return saw_stop_; }

  /// Connects to the stub of a machine that has not started yet.
  Result<void> attach();
  /// Returns once every vCPU stands still. Io with in_step(): the machine does not run, because the
  /// guest sleeps (ACPI's S3) or QEMU has stopped it; it may wake up at any moment.
  Result<void> pause();
  Result<void> resume();
  /// False once an answer was missing or made no sense: then no later answer can be matched with
  /// its request, and every call fails.
  bool in_step() const { return in_step_; }
  /// Forgets stops that the stub reported unasked, because somebody else stopped the machine. Only
  /// between requests. Io when it reports more than any stub does.
  Result<void> forget_stops();
  /// Waits until the stub has read all that we sent. Call it before closing, for a guest that is to
  /// run on.
  void await_taken();

  // Only while paused:

  /// `vcpu`: as QEMU numbers them (cpu-index of QMP): by their slots, of which some may be empty.
  Result<Registers> read_registers(unsigned vcpu);
  /// Writes physical memory, of which `memory` tells what stands between two writes that share a
  /// request. All requests are tried; the error names the first address of the first one that the
  /// stub refused. QEMU accepts addresses outside RAM, so read the bytes back. Unsupported, with
  /// nothing written, where the stub cannot (QEMU before 4.2).
  Result<void> write_bytes(std::span<const CodeWrite> writes, const GuestMemory& memory);

 private:
  Deadline deadline() const { return std::chrono::steady_clock::now() + timeout_; }
  Result<std::string> next_packet(Deadline deadline);
  Result<std::string> receive_packet(Deadline deadline);
  Result<void> receive_more(Deadline deadline);
  Result<std::string> next_answer(Deadline until);
  template <class T>
  Result<T> out_of_step(Result<T> answer);
  Result<void> await_stop();
  Result<void> stop_or_learn_why_not();
  Result<void> expect_ok();
  enum class Addresses : std::uint8_t { Virtual, Physical };
  Result<void> set_addresses(Addresses addresses);
  Result<void> write_all(std::span<const CodeWrite> writes, const GuestMemory& memory);

  PeerSocket socket_;
  std::chrono::milliseconds timeout_;
  Check check_;
  std::string pending_;  // received, from consumed_ on not yet looked at
  std::size_t consumed_ = 0;
  bool in_step_ = true, saw_stop_ = false;
};

}  // namespace ringside::vmm
