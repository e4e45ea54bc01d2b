// The trace of a D program on the machines of a command line: attaches, compiles, verifies,
// enables, arms, and takes everything down again. The command (session.cc) and libringside
// (library/) are both made of it, so it takes no signals, writes to no descriptor but the sinks
// that it is given, and never ends the process. Lines for the user go to say(). The steps, in this
// order: read(), attach(), compile(), verify(), enable(), arm(), let_go(), loop(). Threads: one,
// whose end_order() gives up a step under way. Does not: know what is printed.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/guest/guest.h"
#include "cli/guest/host_process.h"
#include "cli/messages/signals.h"
#include "cli/options/options.h"
#include "cli/output/output.h"
#include "cli/output/structured_writer.h"
#include "cli/program/machines_environment.h"
#include "cli/session/script.h"
#include "cli/session/session_target.h"
#include "cli/session/trace_loop.h"
#include "cli/statistics/figures_file.h"
#include "dif/verify/verify.h"
#include "vmm/base/result.h"

namespace ringside::cli {

class Tracing {
 public:
  /// Both must outlive it. Options that the program sets are set in the line's settings. `events`
  /// are raised on an order to end.
  Tracing(CommandLine& line, EndEvents& events)
      : line_(line),
        events_(events),
        clock_(std::make_shared<providers::TscCalibration>()),
        targets_(line.names_machines()),
        script_(line) {}

  /// The program's files, before any machine is touched.
  Result<void> read() { return script_.read(); }
  /// Attaches to the line's machines, or starts them, and finds their probes.
  Result<void> attach();
  /// Compiles the program for all machines. `desugared`: where the text of -x desugar goes.
  Result<void> compile(Sink& desugared);
  /// Binds the program to each machine's kernel, and verifies it. The program is in programs()
  /// then, and no longer in script().
  Result<void> verify();
  /// Gives the machines their programs, and enables the probes. Records go to `sink`, or to
  /// `writer` as trees where it is not null.
  Result<void> enable(Sink& sink, std::unique_ptr<RecordWriter> writer = nullptr);
  /// Makes the loop, fires BEGIN, and lets the probes stand: all do when it returns, or the error
  /// says why not. `commands` gets the output of commands in guests.
  Result<void> arm(TraceLoop::Streams streams, Sink& commands);
  /// Lets what waits for the probes go on: held machines, and the commands that are traced.
  void let_go();

  /// From attach() on.
  SessionTargets& targets() { return targets_; }
  const SessionTargets& targets() const { return targets_; }
  Script& script() { return script_; }
  /// From compile() to arm().
  const MachinesEnvironment& environment() const { return *environment_; }
  /// From verify() to enable(), by target.
  const std::vector<dif::VerifiedProgram>& programs() const { return programs_; }
  /// From enable() on.
  const dif::Program& program() const { return targets_.front().target->program(); }
  Output& output() { return *output_; }
  /// From arm() on.
  TraceLoop& loop() { return *loop_; }

  /// The error of a step, or what became of a machine that ended meanwhile: a read that fails
  /// because of that says nothing about its kernel.
  Error or_lost_machine(Error error);
  /// Whether any of the machines keeps breakpoints of ours, as stderr has told.
  bool has_left_breakpoints() const;

 private:
  Result<void> attach_saved();
  static Result<void> check_not_interrupted();
  providers::TrapForm traps_in(const MachineOptions& machine) const;
  Result<void> attach_to(Guest guest, providers::TrapForm traps);
  Result<std::shared_ptr<const providers::DefinedProbes>> defined_probes(const Guest& guest);
  void make_environment();
  Result<void> start_processes();
  void leave_figures();
  Result<void> start_all();
  Result<void> started(const SessionTarget& entry, Result<void> step);
  void end_set_up();

  CommandLine& line_;
  EndEvents& events_;
  std::shared_ptr<providers::TscCalibration> clock_;  // of all targets
  HostProcesses processes_;
  SessionTargets targets_;
  std::shared_ptr<const std::vector<d::LibrarySource>> libraries_;  // those that define probes
  std::optional<MachinesEnvironment> environment_;  // of all targets, as long as they have theirs
  Script script_;
  std::vector<dif::VerifiedProgram> programs_;
  std::optional<FiguresFile> figures_;  // while machines are traced
  std::optional<Output> output_;
  std::optional<TraceLoop> loop_;
};

}  // namespace ringside::cli
