// The gdb remote protocol. In this file, top to bottom: packets and their checksum, the register
// layout (both pure), receiving with limits, the five requests.
#include "vmm/qemu/gdb_remote.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <optional>
#include <vector>

#include "vmm/base/printable.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMaxPacket = 64 << 10;  // QEMU's own are at most 4 KiB of payload
// A stop is reported for each time that an owner stops the machine; one who does so in a loop gets
// to hundreds between two of our requests.
constexpr unsigned kMaxStrayStops = 1000;
constexpr unsigned kMaxStrayPackets = 16;
constexpr std::size_t kWindow = 64;  // requests in flight: 16 is half as fast, 256 no faster
constexpr std::size_t kRegisterBytes = 236;
constexpr std::chrono::milliseconds kPerWrite(1);  // 35,000 bytes take 0.2 s
// An interrupt without an answer for so long may have been ignored. A guest stops within 1 ms, as a
// rule; to ask too early costs nothing but the answer.
constexpr std::chrono::milliseconds kSilence(100);
constexpr std::chrono::milliseconds kCheckEvery(500);
// SIGINT as the protocol numbers it: the news of a stop, and no answer to `?`, which is T05.
constexpr std::string_view kInterrupted = "T02";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

unsigned checksum(std::string_view payload) {
  unsigned sum = 0;
  for (const char c : payload) sum += static_cast<unsigned char>(c);
  return sum & 0xff;
}

/// Adds one framed packet, so that several can leave in one send.
void append_packet(std::string& out, std::string_view payload) {
  fmt::format_to(std::back_inserter(out), "${}#{:02x}", payload, checksum(payload));
}

std::uint64_t little_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

bool is_stop(std::string_view packet) {
  return !packet.empty() && (packet[0] == 'T' || packet[0] == 'S');
}

bool is_end(std::string_view packet) {
  return !packet.empty() && (packet[0] == 'W' || packet[0] == 'X');
}

/// Bytes in a request; QEMU's MAX_PACKET_LENGTH is 4096.
constexpr std::size_t kLongestRun = 1024;

std::string write_request(const CodeRun& run) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string request = fmt::format("M{:x},{:x}:", run.at.raw(), run.bytes.size());
  for (const std::uint8_t byte : run.bytes) {
    request += {kDigits[byte >> 4], kDigits[byte & 0xf]};
  }
  return request;
}

}  // namespace

Result<Registers> decode_registers(std::string_view hex) {
  std::array<std::uint8_t, kRegisterBytes> raw{};
  if (hex.size() < 2 * raw.size()) {
    return fail(ErrorCode::Invalid,
                fmt::format("QEMU's gdbstub sent {} register digits, {} or more were expected",
                            hex.size(), 2 * raw.size()));
  }
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) {
      return fail(ErrorCode::Invalid, "QEMU's gdbstub sent registers that are no hexadecimal text");
    }
    raw[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  const std::span<const std::uint8_t> bytes(raw);
  const auto value = [&](std::size_t at, std::size_t size) {
    return little_endian(bytes.subspan(at, size));
  };
  Registers r;
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) r.field = value(gdb, b);
#define ARCH_SEGMENT(field, D, n, saved, w, gdb, b, kvm) r.field = value(gdb, b);
#define ARCH_BASE(field, D, n, gdb, b, kvm) r.field = value(gdb, b);
#define ARCH_CONTROL(field, gdb, b, kvm) r.field = value(gdb, b);
#include "vmm/arch/x86_64/registers.def"
  return r;
}

GdbRemote::GdbRemote(UniqueFd fd, std::chrono::milliseconds timeout)
    : socket_(std::move(fd), "QEMU's gdbstub"), timeout_(timeout) {}

template <class T>
Result<T> GdbRemote::out_of_step(Result<T> answer) {
  if (!answer) in_step_ = false;
  return answer;
}

Result<std::string> GdbRemote::next_packet(Deadline deadline) {
  return out_of_step(receive_packet(deadline));
}

/// The payload of the next packet; acknowledgements and noise before it are skipped.
Result<std::string> GdbRemote::receive_packet(Deadline deadline) {
  for (;;) {
    const std::size_t start = pending_.find('$', consumed_);
    const std::size_t hash =
        start == std::string::npos ? std::string::npos : pending_.find('#', start);
    if (hash != std::string::npos && pending_.size() - hash >= 3) {
      const int high = hex_digit(pending_[hash + 1]), low = hex_digit(pending_[hash + 2]);
      std::string payload = pending_.substr(start + 1, hash - start - 1);
      consumed_ = hash + 3;
      if (high < 0 || low < 0 || unsigned(high << 4 | low) != checksum(payload)) {
        return fail(ErrorCode::Invalid, "QEMU's gdbstub sent a packet with a wrong checksum");
      }
      return payload;
    }
    if (start == std::string::npos) consumed_ = pending_.size();
    pending_.erase(0, consumed_);
    consumed_ = 0;
    if (pending_.size() > kMaxPacket) {
      return fail(ErrorCode::Invalid, "QEMU's gdbstub sent a packet without an end");
    }
    TRY(receive_more(deadline));
  }
}

Result<void> GdbRemote::receive_more(Deadline deadline) {
  while (check_ && std::chrono::steady_clock::now() < deadline) {
    const Deadline step = std::min(deadline, std::chrono::steady_clock::now() + kCheckEvery);
    if (socket_.wait_for(POLLIN, step)) break;
    TRY(check_());
  }
  return socket_.receive(pending_, deadline);
}

/// The answer to a request. A stop that was reported late may lie before it.
Result<std::string> GdbRemote::next_answer(Deadline until) {
  for (unsigned stray = 0; stray < kMaxStrayStops; ++stray) {
    std::string packet = TRY(next_packet(until));
    if (is_end(packet)) return fail(ErrorCode::MachineGone, "the guest has ended");
    if (!is_stop(packet)) return packet;
    saw_stop_ = true;
  }
  return out_of_step<std::string>(
      fail(ErrorCode::Invalid, "QEMU's gdbstub reports stops without end"));
}

Result<void> GdbRemote::await_stop() {
  const Deadline until = deadline();
  for (unsigned stray = 0; stray < kMaxStrayPackets; ++stray) {
    const std::string packet = TRY(next_packet(until));
    if (is_end(packet)) return fail(ErrorCode::MachineGone, "the guest has ended");
    saw_stop_ = packet.starts_with(kInterrupted);
    if (is_stop(packet)) return {};
  }
  return out_of_step<void>(
      fail(ErrorCode::Invalid, "QEMU's gdbstub does not say whether the guest has stopped"));
}

Result<void> GdbRemote::expect_ok() {
  const std::string answer = TRY(next_answer(deadline()));
  if (answer == "OK") return {};
  return fail(ErrorCode::Invalid,
              fmt::format("QEMU's gdbstub refused a request: {:.20}", printable(answer)));
}

Result<void> GdbRemote::attach() {
  saw_stop_ = false;
  std::string request;
  append_packet(request, "?");
  TRY(socket_.send(request, deadline()));
  return await_stop();
}

Result<void> GdbRemote::pause() {
  TRY(socket_.send("\x03", deadline()));
  const Deadline silence = std::chrono::steady_clock::now() + std::min(kSilence, timeout_ / 2);
  // Acknowledgements, also of what was sent before, are no answer.
  while (pending_.find('$', consumed_) == std::string::npos && pending_.size() <= kMaxPacket) {
    const bool silent = std::chrono::steady_clock::now() > silence;
    if (silent || !socket_.wait_for(POLLIN, silence)) return stop_or_learn_why_not();
    TRY(out_of_step(socket_.receive_now(pending_)));
  }
  return await_stop();
}

/// QEMU's stub ignores an interrupt while the machine does not run, but answers requests. While it
/// runs, it takes the first byte of a request for an interrupt, and skips the rest of that request.
/// So of two in one piece the second is answered in any case, after the stop if there was one.
Result<void> GdbRemote::stop_or_learn_why_not() {
  std::string request;
  append_packet(request, "Hg1");
  append_packet(request, "qC");
  TRY(socket_.send(request, deadline()));
  const Deadline until = deadline();
  bool stopped = false;
  for (unsigned packets = 0; packets < kMaxStrayPackets; ++packets) {
    const std::string packet = TRY(next_packet(until));
    if (is_end(packet)) return fail(ErrorCode::MachineGone, "the guest has ended");
    stopped |= is_stop(packet);
    if (!packet.starts_with("QC")) continue;
    if (stopped) return {};
    // The stub would take the next interrupt for a bad acknowledgement of its last packet.
    TRY(socket_.send("+", deadline()));
    return fail(ErrorCode::Io,
                "the guest does not run: it sleeps (suspended to RAM), or QEMU has stopped it");
  }
  return out_of_step<void>(
      fail(ErrorCode::Invalid, "QEMU's gdbstub does not say whether the guest has stopped"));
}

Result<void> GdbRemote::resume() {
  std::string request;
  append_packet(request, "c");
  return socket_.send(request, deadline());
}

Result<void> GdbRemote::forget_stops() {
  for (unsigned reads = 0; reads < kMaxStrayPackets; ++reads) {
    const auto more = socket_.receive_now(pending_);
    pending_.clear();
    consumed_ = 0;
    if (!more) return out_of_step<void>(Unexpected<Error>(more.error()));
    if (!*more) return {};
  }
  return out_of_step<void>(fail(ErrorCode::Invalid, "QEMU's gdbstub does not stop talking"));
}

void GdbRemote::await_taken() {
  // A peer that has gone or hangs takes nothing any more, and nobody could act on that.
  (void)vmm::await_taken(socket_.fd(), static_cast<int>(timeout_.count()));
}

Result<Registers> GdbRemote::read_registers(unsigned vcpu) {
  saw_stop_ = false;
  std::string request;
  append_packet(request, fmt::format("Hg{:x}", vcpu + 1));  // a thread's number in the stub
  append_packet(request, "g");
  TRY(socket_.send(request, deadline()));
  const Result<void> selected = expect_ok();
  const std::string answer =
      TRY(next_answer(deadline()));  // taken even after a refusal, to stay in step
  TRY(selected);
  return decode_registers(answer);
}

/// QEMU's own extension (docs/system/gdb.rst): whether addresses of `m` and `M` are physical. It
/// holds for every later connection to the stub, too.
Result<void> GdbRemote::set_addresses(Addresses addresses) {
  std::string request;
  append_packet(request,
                addresses == Addresses::Physical ? "Qqemu.PhyMemMode:1" : "Qqemu.PhyMemMode:0");
  TRY(socket_.send(request, deadline()));
  const std::string answer = TRY(next_answer(deadline()));
  if (answer == "OK") return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("QEMU's gdbstub cannot write physical memory ({:.20}): take QEMU 4.2 or "
                          "later",
                          printable(answer)));
}

Result<void> GdbRemote::write_bytes(std::span<const CodeWrite> writes, const GuestMemory& memory) {
  saw_stop_ = false;
  // In this order no request goes over what another one, which is still on its way, writes.
  std::vector<CodeWrite> in_order(writes.begin(), writes.end());
  std::ranges::stable_sort(in_order, {}, &CodeWrite::at);
  TRY(set_addresses(Addresses::Physical));
  const Result<void> written = write_all(in_order, memory);
  Result<void> restored = in_step_ ? set_addresses(Addresses::Virtual) : Result<void>();
  TRY(written);
  return restored;
}

Result<void> GdbRemote::write_all(std::span<const CodeWrite> writes, const GuestMemory& memory) {
  std::string request;
  std::optional<std::uint64_t> refused;
  std::size_t sent = 0;
  std::deque<std::uint64_t> waiting;  // where each request begins that has no answer yet
  // For all of them: a stub that takes its time for each would keep us for hours.
  const Deadline until = deadline() + kPerWrite * writes.size();
  while (sent < writes.size() || !waiting.empty()) {
    if (waiting.size() <= kWindow / 2 && sent < writes.size()) {
      request.clear();
      while (sent < writes.size() && waiting.size() < kWindow) {
        const CodeRun run = bridged_run(memory, writes.subspan(sent), kLongestRun);
        append_packet(request, write_request(run));
        waiting.push_back(run.at.raw());
        sent += run.writes;
      }
      TRY(socket_.send(request, deadline()));
    }
    const std::string answer = TRY(next_answer(until));
    if (answer != "OK" && !refused) refused = waiting.front();
    waiting.pop_front();
  }
  if (refused) {
    return fail(ErrorCode::Invalid,
                fmt::format("QEMU could not write guest code at {:#x}", *refused));
  }
  return {};
}

}  // namespace ringside::vmm
