// The session. In this file, top to bottom: tracing, listing, the order of it all.
#include "cli/session/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/messages/messages.h"
#include "cli/messages/progress.h"
#include "cli/messages/signals.h"
#include "cli/program/saved_program.h"
#include "cli/session/bind_script.h"
#include "cli/session/list_probes.h"
#include "cli/session/script.h"
#include "cli/session/session_target.h"
#include "cli/session/tracing.h"
#include "cli/session/watched_target.h"
#include "dif/program/listing.h"
#include "vmm/base/end_order.h"

namespace ringside::cli {
namespace {

class Session {
 public:
  Session(CommandLine line, Signals& signals)
      : line_(std::move(line)), stdout_(STDOUT_FILENO), tracing_(line_, signals) {}

  Result<int> run();

 private:
  Result<int> do_task();
  Result<int> list();
  int tell_cleaned();

  Result<int> trace();
  Result<void> save();
  void list_instructions();
  void report_clocks() const;
  void report_figures(const TraceLoop& loop) const;
  void report_stability(const dif::Program& program);
  void say_how_to_end() const;
  Result<int> trace_armed();
  int end_status(TraceLoop& loop, EndReason reason);
  Sink& sink() { return file_ ? *file_ : stdout_; }
  Script& script() { return tracing_.script(); }
  SessionTargets& targets() { return tracing_.targets(); }
  const SessionTargets& targets() const { return tracing_.targets(); }

  CommandLine line_;
  Sink stdout_;
  std::optional<Sink> file_;  // -o
  Tracing tracing_;
};

// A heat map has a column for each print, a counter of Perfetto's a value. With dtrace's second,
// prints in between would show nothing new.
constexpr std::chrono::milliseconds kTakesForPictures{20};

void Session::report_stability(const dif::Program& program) {
  sink().write(script().stability(program));
  sink().flush();
}

/// The exit status for how tracing ended; tells what the user has to know of it.
int Session::end_status(TraceLoop& loop, EndReason reason) {
  if (!sink().problem().empty()) {
    say(fmt::format("cannot write output: {}", sink().problem()));
    return kExitFailure;
  }
  if (!loop.output_is_whole()) return kExitFailure;
  const bool machine_ended = reason == EndReason::MachineEnded;
  if (machine_ended || reason == EndReason::MachineLeft || reason == EndReason::KernelGone) {
    tell_end(loop.last_target(), reason);
    const bool fine = machine_ended && ended_well(loop.last_target().target());
    if (!fine) return kExitFailure;
  }
  // The guest is not as it was found, which stderr has told.
  if (tracing_.has_left_breakpoints()) return kExitFailure;
  // A user who waited for all of several machines has not got all of them.
  return targets().exit_status().value_or(loop.lost_target() ? kExitFailure : kExitOk);
}

/// On a terminal, where nothing that was asked for ends the trace: else a user would wait for it.
void Session::say_how_to_end() const {
  const bool silent = line_.settings.quiet || !Progress::of_stderr().is_terminal();
  const bool ends = !line_.commands.empty() || !line_.processes.empty() || !line_.core_file.empty();
  if (silent || ends || line_.common.kvm.terminal) return;
  const auto& clauses = targets().front().target->program().clauses;
  const bool exits = std::ranges::any_of(clauses, [](const dif::Clause& clause) {
    return std::ranges::any_of(clause.actions, [](const dif::Action& action) {
      return action.kind == dif::ActionKind::Exit;
    });
  });
  if (!exits) say("tracing; Ctrl-C ends it");
}

Result<int> Session::trace_armed() {
  TRY(tracing_.arm({sink(), file_ ? -1 : STDOUT_FILENO}, stdout_));
  say_how_to_end();
  tracing_.let_go();
  TraceLoop& loop = tracing_.loop();
  // A saved guest does not run: nothing fires any more, so nobody has to be interrupted.
  const EndReason reason = line_.core_file.empty() ? loop.run() : EndReason::Exit;
  const Clock::time_point ended = Clock::now();
  loop.finish(reason);
  report_time(line_.settings, "left", ended);
  report_pauses(line_.settings, targets());
  report_clocks();
  report_figures(loop);
  return end_status(loop, reason);
}

/// For -v.
void Session::report_clocks() const {
  if (!line_.verbose) return;
  for (const SessionTarget& entry : targets()) {
    if (entry.target->machine() != nullptr) {
      targets().print_line(entry, entry.target->tracer().clock());
    }
  }
}

/// For -v.
void Session::report_figures(const TraceLoop& loop) const {
  if (!line_.verbose) return;
  const std::vector<Figures> all = loop.figures();
  for (std::size_t n = 0; n < all.size(); ++n) {
    const SessionTarget& entry = *std::next(targets().begin(), static_cast<std::ptrdiff_t>(n));
    for (const std::string& line : figures_lines(all[n])) targets().print_line(entry, line);
    const std::string waits = waits_drawing(all[n].trace.kernel.waits);
    if (!waits.empty()) targets().print_line(entry, waits);
  }
}

/// -S
void Session::list_instructions() {
  if (!line_.settings.show_dif) return;
  Sink errors(STDERR_FILENO);
  errors.set_raw_text(line_.settings.raw_text);
  errors.write(dif::list_program(*script().program()));
  errors.flush();
}

Result<void> Session::save() {
  SessionTarget& entry = targets().front();
  TRY(script().record_kernel_of(*entry.target));
  TRY(bound_program(script(), targets(), entry));
  list_instructions();
  return save_program(*script().program(), line_.output_file);
}

Result<int> Session::trace() {
  if (line_.task == CommandLine::Task::Save) {
    TRY(save());
    return kExitOk;
  }
  if (!line_.output_file.empty()) {
    const bool whole = is_drawn_whole(line_.settings.format);
    file_.emplace(TRY(whole ? Sink::fill(line_.output_file) : Sink::append_to(line_.output_file)));
    file_->set_raw_text(line_.settings.raw_text);
  }
  const bool perfetto = line_.settings.format == OutputFormat::Perfetto;
  if (perfetto || line_.settings.format == OutputFormat::Heatmap) {
    auto& interval = line_.settings.aggregate_interval;
    interval = std::min<std::chrono::nanoseconds>(interval, kTakesForPictures);
  }
  list_instructions();
  TRY(tracing_.verify());
  if (line_.task == CommandLine::Task::CompileOnly) {
    if (line_.verbose) report_stability(tracing_.programs().front().program());
    return kExitOk;
  }
  TRY(tracing_.enable(sink()));
  if (line_.verbose) report_stability(tracing_.program());
  if (tracing_.program().clauses.empty()) return fail(ErrorCode::NotFound, "no probes matched");
  return trace_armed();
}

Result<int> Session::list() {
  Progress& progress = Progress::of_stderr();
  // On a terminal the rows themselves show how far it is.
  if (isatty(STDOUT_FILENO) == 0) progress.show("listing the probes");
  const bool all = TRY(
      list_probes(script().program(), targets(), tracing_.environment(), stdout_, line_.verbose));
  progress.clear();
  for (const SessionTarget& entry : targets()) {
    for (const std::string& notice : entry.target->host_files()->take_notices()) {
      targets().print_line(entry, notice);
    }
  }
  return all ? kExitOk : kExitFailure;
}

/// `clean`: attaching has done it.
int Session::tell_cleaned() {
  for (const SessionTarget& entry : targets()) {
    const auto notices = entry.target->tracer().take_notices();
    for (const std::string& notice : notices) targets().print_line(entry, notice);
    if (notices.empty())
      targets().print_line(entry, "nothing of an earlier ringside is in the guest");
  }
  return kExitOk;
}

Result<int> Session::do_task() {
  const bool nothing = line_.programs.empty() && line_.dof_file.empty();
  if (nothing && line_.task == CommandLine::Task::CompileOnly) {
    if (line_.settings.library_folders.empty()) return kExitOk;
    // The libraries are judged as they are for a program, which is empty here.
    line_.programs.push_back({ProgramSource::Kind::Name, ""});
    line_.settings.empty = true;
  }
  TRY(tracing_.read());
  auto attached = tracing_.attach();
  Progress::of_stderr().clear();
  TRY(attached);
  if (line_.task == CommandLine::Task::Clean) return tell_cleaned();
  TRY(tracing_.compile(stdout_));
  stdout_.set_raw_text(line_.settings.raw_text);  // a pragma may have asked for it
  return line_.task == CommandLine::Task::List ? list() : trace();
}

Result<int> Session::run() {
  auto status = do_task();
  if (status) return status;
  return tl::make_unexpected(tracing_.or_lost_machine(std::move(status).error()));
}

int run_one(CommandLine line, Signals& signals) {
  Session session(std::move(line), signals);
  const auto status = session.run();
  if (!status) {
    say(status.error().message);
    return kExitFailure;
  }
  return *status;
}

/// `clean`: one machine after the other, so that what is wrong with one does not keep the others
/// as they are.
int clean_each(CommandLine line, Signals& signals) {
  const std::vector<MachineOptions> machines = std::exchange(line.machines, {});
  line.one_of_several = true;
  int worst = kExitOk;
  for (const MachineOptions& machine : machines) {
    line.machines = {machine};
    worst = std::max(worst, run_one(line, signals));
    if (end_order() != EndOrder::None) break;
  }
  return worst;
}

}  // namespace

int run_session(CommandLine line) {
  auto signals = Signals::block();
  if (!signals) {
    say(signals.error().message);
    return kExitFailure;
  }
  if (line.task == CommandLine::Task::Clean && line.machines.size() > 1) {
    return clean_each(std::move(line), *signals);
  }
  return run_one(std::move(line), *signals);
}

}  // namespace ringside::cli
