// Tracing from the moment the probes are armed to its end: sleeps in poll(), takes what the engine
// produced at switchrate, passes the guest command's output on, and knows why it ends.
// Does not: compile, enable, start or shut down machines (session.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "cli/guest/guest_command.h"
#include "cli/guest/host_process.h"
#include "cli/output/output.h"
#include "cli/output/sink.h"
#include "cli/signals.h"
#include "dif/engine/engine.h"
#include "providers/tracer.h"
#include "vmm/linux/processes/user_names.h"
#include "vmm/machine.h"

namespace ringside::cli {

enum class EndReason : std::uint8_t {
  Exit,
  BufferFull,  // bufpolicy=fill
  Signal,
  CommandEnded,
  MachineEnded,
  KernelGone,  // the machine runs on, without what was traced
  OutputClosed,
};

class TraceLoop {
 public:
  struct Parts {
    dif::Engine* engine = nullptr;
    providers::Tracer* tracer = nullptr;
    Output* output = nullptr;
    Settings* settings = nullptr;
    Signals* signals = nullptr;
    Sink* trace_sink = nullptr;
    Sink* command_sink = nullptr;        // the same as trace_sink without -o
    int watched_fd = -1;                 // stdout: its reader may go away while nothing is printed
    vmm::Machine* machine = nullptr;     // null for none
    GuestCommand* command = nullptr;     // null without -c in a guest
    HostProcesses* processes = nullptr;  // -c and -p on this host; may be null
    /// Who has to look at processes while they live; null where none are recorded.
    guest_linux::UserNames* user_names = nullptr;
  };
  explicit TraceLoop(const Parts& parts) : parts_(parts) {}

  /// Until something ends it. The probes are armed; the guest's command has been let go.
  EndReason run();
  /// Stops the tracer and prints all that is left: END's records, aggregations, drops.
  void finish(EndReason reason);

 private:
  using Clock = std::chrono::steady_clock;

  void harvest();
  void report_drops();
  void sleep_until(Clock::time_point time);
  /// True once every process that tracing waits for has ended.
  bool processes_ended();
  std::optional<EndReason> handle_control();
  /// Passes on what the guest's command wrote, by whole lines, so that no line of ours gets into
  /// one of its own. False when nothing new came.
  bool pass_output();
  void write_command_output(std::size_t size);
  void look_at_processes();

  Parts parts_;
  bool signal_came_ = false, output_hung_up_ = false, control_ready_ = false;
  bool buffer_full_ = false;
  bool command_output_open_ = true;
  std::string command_line_;  // of the guest's command, not ended yet
  Clock::time_point command_wrote_;
  std::uint64_t lost_reported_ = 0;
};

}  // namespace ringside::cli
