// A client of QMP, QEMU's monitor protocol (QEMU docs: interop/qmp-spec): one JSON object a line,
// events between the answers. Answers are checked for size and shape; a wrong one is an Error.
// Used by QemuWatcher and the start of a machine. Does not: lock (one thread at a time).
#pragma once

#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"
#include "vmm/qemu/peer_socket.h"

namespace ringside::vmm {

struct QmpEvent {
  std::string name;
  nlohmann::json data;  // an object; empty when the event has none
};

/// Events that wait to be taken; older ones are dropped: only the last say what became.
inline constexpr std::size_t kMaxEvents = 256;

/// The string member `key` of `object`; empty when it has none, or `object` is no object.
std::string json_text(const nlohmann::json& object, std::string_view key);

class QmpClient {
 public:
  explicit QmpClient(UniqueFd fd) : socket_(std::move(fd), "QEMU's monitor") {}

  int fd() const { return socket_.fd(); }
  /// Reads the greeting and enters command mode; from then on events arrive.
  Result<void> handshake(std::chrono::milliseconds timeout);
  /// The "return" value of the answer. Invalid, with QEMU's own words, when it refused; MachineGone
  /// when there is no answer in time.
  Result<nlohmann::json> execute(std::string_view command, std::chrono::milliseconds timeout) {
    return execute(command, nlohmann::json::object(), timeout);
  }
  Result<nlohmann::json> execute(std::string_view command, const nlohmann::json& arguments,
                                 std::chrono::milliseconds timeout);
  /// Gives QEMU a copy of a descriptor, which it knows as `name` from then on (its `getfd`).
  Result<void> pass_descriptor(std::string_view name, int descriptor,
                               std::chrono::milliseconds timeout);
  /// Reads the messages that have arrived, without waiting. At most some 64 KiB, for a QEMU that
  /// never stops sending: fd() stays readable while there is more. MachineGone when QEMU has
  /// closed.
  Result<void> take_in();
  /// The oldest event not yet taken.
  std::optional<QmpEvent> next_event();

 private:
  Result<std::optional<nlohmann::json>> next_message();
  Result<nlohmann::json> await_message(Deadline deadline);
  std::string request(std::string_view command, const nlohmann::json& arguments);
  Result<nlohmann::json> await_answer(std::string_view command, Deadline deadline);
  bool keep_if_event(nlohmann::json& message);

  PeerSocket socket_;
  std::string pending_;
  std::size_t searched_ = 0;  // of pending_: no line ends before
  std::deque<QmpEvent> events_;
  std::uint64_t last_id_ = 0;
};

/// How a guest ended: collects QEMU's events, and decides once QEMU has ended.
/// Pure. Used by QemuWatcher.
class QemuEnd {
 public:
  /// Remembers what matters of one event (QEMU docs: interop/qemu-qmp-ref, "SHUTDOWN").
  void note(const QmpEvent& event);
  /// `console`: the last of the guest's console. A kernel that panics resets the machine just as a
  /// reboot does; only the console tells them apart. A guest that prints the first line of a panic
  /// and reboots counts as panicked.
  MachineState judge(std::string_view console) const;

 private:
  bool panicked_ = false;
  std::string shutdown_reason_;  // of the last SHUTDOWN; empty before
};

}  // namespace ringside::vmm
