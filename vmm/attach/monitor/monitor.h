// The monitor of a QEMU that someone else started, as an interface. It is reached by its own socket
// (monitor_socket.h) or through libvirt (libvirt_monitor.h). Commands and events are those of QMP
// (QEMU docs: interop/qemu-qmp-ref). Answers are hostile: the caller checks them.
// Used by the parts of MonitoredMachine. Threads: every function from any.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/qemu/qmp.h"

namespace ringside::vmm {

class Monitor {
 public:
  virtual ~Monitor() = default;

  /// The answer's "return" value. Invalid, with QEMU's message, if QEMU refused. MachineGone if
  /// nobody answers any more. NotFound while the connection is lost and we try to connect again:
  /// then QEMU may have carried out the command.
  virtual Result<nlohmann::json> execute(std::string_view command,
                                         const nlohmann::json& arguments) = 0;
  Result<nlohmann::json> execute(std::string_view command) {
    return execute(command, nlohmann::json::object());
  }
  /// Gives QEMU a copy of a descriptor, which it knows as `name` from then on.
  virtual Result<void> pass_descriptor(std::string_view name, int descriptor) = 0;
  /// The text that QEMU's human monitor prints for a line.
  Result<std::string> human(std::string_view line);

  /// Readable when take_events() may have something.
  virtual int event_fd() const = 0;
  /// The events that have arrived, the oldest first. MachineGone when there will be no more.
  virtual Result<std::vector<QmpEvent>> take_events() = 0;
  /// How the connection has changed since this was last asked, the oldest first. Events of the time
  /// between are lost, too.
  enum class Change : std::uint8_t { Lost, MadeAnew };
  virtual std::vector<Change> take_changes() { return {}; }
  /// Whether it is certain, when we come, that the owner has paused the machine and not we.
  virtual bool is_paused_by_owner() const { return false; }
  /// Whether those are among them that QEMU sent before its last answer.
  virtual bool events_are_in_order() const { return true; }
  /// Whether there is an event when its owner begins to save the machine, or to move it.
  virtual bool tells_of_migration() const { return false; }
};

/// Adds one to those that nobody has taken yet, of which kMaxEvents are kept.
void add_event(std::vector<QmpEvent>& waiting, QmpEvent event);

}  // namespace ringside::vmm
