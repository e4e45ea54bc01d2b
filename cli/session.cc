// The session. In this file, top to bottom: compiling, listing, enabling, tracing, the order of it
// all.
#include "cli/session.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "cli/environment.h"
#include "cli/guest.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/probe_list.h"
#include "cli/signals.h"
#include "cli/sources.h"
#include "cli/trace_loop.h"
#include "dif/d/compile.h"
#include "dif/engine.h"
#include "dif/listing.h"
#include "dif/verify.h"
#include "providers/tracer.h"

namespace ringside::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The engine's tables as the output wants them.
class EngineView : public ProgramView {
 public:
  EngineView(const dif::Engine& engine, const guest_linux::Kernel* kernel)
      : engine_(&engine), kernel_(kernel) {}
  const dif::Program& program() const override { return engine_->program(); }
  const dif::EcbInfo& ecb(dif::EcbId id) const override { return engine_->ecb(id); }
  const dif::ProbeDescription& probe_name(dif::ProbeId probe) const override {
    return engine_->probe_name(probe);
  }
  std::string describe(GuestVirt address) const override {
    return kernel_ != nullptr ? kernel_->symbols().describe(address)
                              : fmt::format("0x{:x}", address.raw());
  }

 private:
  const dif::Engine* engine_;
  const guest_linux::Kernel* kernel_;
};

class Session {
 public:
  Session(CommandLine line, Signals signals)
      : line_(std::move(line)), signals_(std::move(signals)), stdout_(STDOUT_FILENO) {}
  ~Session();

  Result<int> run();

 private:
  Result<void> attach();
  Result<void> compile();
  d::CompileOptions compile_options() const;
  Result<void> apply_program_options();

  Result<int> list();
  Result<void> list_matching(const dif::ProbeDescription& pattern);

  Result<int> trace();
  Result<void> enable_all();
  void announce(const std::vector<std::size_t>& matched) const;
  Result<int> trace_armed(Output& output);
  int end_status(EndReason reason);
  TraceLoop::Parts loop_parts(Output& output);
  void report_time(std::string_view what, Clock::time_point since) const;

  CommandLine line_;
  Signals signals_;
  Sink stdout_;
  std::optional<Sink> file_;  // -o
  Guest guest_;
  std::unique_ptr<providers::Tracer> tracer_;
  std::optional<TracerEnvironment> environment_;
  Sources sources_;
  std::optional<dif::Program> program_;
  std::unique_ptr<dif::Engine> engine_;
};

Session::~Session() {
  if (tracer_) tracer_->stop();
  if (guest_.machine) guest_.machine->shut_down();
}

void Session::report_time(std::string_view what, Clock::time_point since) const {
  if (!line_.verbose) return;
  const std::chrono::duration<double, std::milli> spent = Clock::now() - since;
  say(fmt::format("{} in {:.1f} ms", what, spent.count()));
}

Result<void> Session::attach() {
  if (line_.machine.wanted()) {
    const Clock::time_point began = Clock::now();
    guest_ = TRY(start_guest(line_, signals_));
    report_time(fmt::format("Linux {} on {} with {} vCPUs is up", guest_.kernel->release(),
                            guest_.machine->kind(), guest_.machine->vcpu_count()),
                began);
    report_time("symbols and types known", Clock::now() - guest_.discovery);
  }
  const Clock::time_point began = Clock::now();
  tracer_ = TRY(providers::Tracer::attach(guest_.machine.get(), guest_.kernel.get()));
  environment_.emplace(*tracer_, guest_.kernel.get());
  report_time("attached", began);
  return {};
}

d::CompileOptions Session::compile_options() const {
  d::CompileOptions options;
  const Settings& settings = line_.settings;
  std::string script = "ringside";
  for (const ProgramSource& source : line_.programs) {
    if (source.kind == ProgramSource::Kind::Script) script = source.text;
  }
  options.source_name = sources_.label(0);
  options.macro_arguments.push_back(script);
  options.macro_arguments.insert(options.macro_arguments.end(), line_.arguments.begin(),
                                 line_.arguments.end());
  options.macros = {{"pid", getpid()},   {"ppid", getppid()}, {"uid", getuid()},
                    {"euid", geteuid()}, {"gid", getgid()},   {"egid", getegid()},
                    {"pgid", getpgrp()}, {"sid", getsid(0)}};
  if (guest_.target != 0) options.macros["target"] = guest_.target;
  options.default_arguments = settings.default_arguments;
  options.error_tags = settings.error_tags;
  options.allow_zero_matches = settings.zero_matches || line_.task == CommandLine::Task::List;
  options.allow_empty = settings.empty;
  options.destructive = settings.destructive;
  options.string_size = settings.engine.string_size;
  return options;
}

Result<void> Session::apply_program_options() {
  for (const auto& [name, value] : program_->options) {
    TRY(apply_option(line_.settings, name, value, SettingPhase::Start));
  }
  return {};
}

Result<void> Session::compile() {
  sources_ = TRY(
      Sources::load(line_.programs, [&](dif::ProbeId id) -> std::optional<dif::ProbeDescription> {
        const auto probe = tracer_->probe_by_id(id);
        if (!probe || !*probe) return std::nullopt;
        return (*probe)->name;
      }));
  sources_.apply_early_options(line_.settings);
  const Clock::time_point began = Clock::now();
  auto program = d::compile(sources_.text(), compile_options(), *environment_);
  if (!program) return fail(program.error().code, sources_.explain(program.error().message));
  report_time("compiled", began);
  program_ = std::move(*program);
  return apply_program_options();
}

Result<void> Session::list_matching(const dif::ProbeDescription& pattern) {
  bool any = false;
  TRY(tracer_->for_each_probe(pattern, [&](const providers::Probe& probe) {
    any = true;
    stdout_.write(probe_list_line(probe));
    if (line_.verbose) {
      stdout_.write(probe_list_arguments(tracer_->arguments(probe), environment_->types()));
    }
  }));
  if (line_.verbose) {
    std::vector<providers::Refusal> refusals;
    TRY(tracer_->refusals(pattern, [&](const auto& refusal) { refusals.push_back(refusal); }));
    stdout_.write(refusal_list(refusals));
  }
  if (any) return {};
  stdout_.flush();
  const std::string why = environment_->why_no_match(pattern);
  return fail(ErrorCode::NotFound, fmt::format("failed to match {}: {}", pattern.to_string(),
                                               why.empty() ? "no probe matches description" : why));
}

Result<int> Session::list() {
  int status = kExitOk;
  stdout_.write(probe_list_header());
  if (!program_) {
    TRY(list_matching({}));
  } else {
    for (const dif::Clause& clause : program_->clauses) {
      for (const dif::ProbeDescription& pattern : clause.probes) {
        const Result<void> listed = list_matching(pattern);
        if (listed) continue;
        if (listed.error().code != ErrorCode::NotFound) return tl::make_unexpected(listed.error());
        say(listed.error().message);  // the others may match
        status = kExitFailure;
      }
    }
  }
  stdout_.flush();
  if (stdout_.problem().empty()) return status;
  return fail(ErrorCode::Io, fmt::format("cannot write output: {}", stdout_.problem()));
}

/// Enables every clause on every probe that it matches, in the program's order.
Result<void> Session::enable_all() {
  const Clock::time_point began = Clock::now();
  std::vector<std::size_t> matched(sources_.program_count());
  const auto& clauses = engine_->program().clauses;
  for (std::uint32_t i = 0; i < clauses.size(); ++i) {
    for (const dif::ProbeDescription& pattern : clauses[i].probes) {
      std::vector<providers::Probe> probes;
      TRY(tracer_->for_each_probe(pattern,
                                  [&](const providers::Probe& probe) { probes.push_back(probe); }));
      for (const providers::Probe& probe : probes) {
        TRY(tracer_->enable(probe));
        engine_->enable(i, probe.id, probe.name);
      }
      matched[sources_.program_of(clauses[i].line)] += probes.size();
    }
  }
  report_time("enabled", began);
  announce(matched);
  return {};
}

void Session::announce(const std::vector<std::size_t>& matched) const {
  if (line_.settings.quiet) return;
  for (std::size_t i = 0; i < matched.size(); ++i) {
    say(fmt::format("{} matched {} probe{}", sources_.label(i), matched[i],
                    matched[i] == 1 ? "" : "s"));
  }
}

TraceLoop::Parts Session::loop_parts(Output& output) {
  TraceLoop::Parts parts;
  parts.engine = engine_.get();
  parts.tracer = tracer_.get();
  parts.output = &output;
  parts.settings = &line_.settings;
  parts.signals = &signals_;
  parts.trace_sink = file_ ? &*file_ : &stdout_;
  parts.command_sink = &stdout_;
  parts.watched_fd = file_ ? -1 : STDOUT_FILENO;
  parts.machine = guest_.machine.get();
  parts.command = guest_.command ? &*guest_.command : nullptr;
  return parts;
}

/// The exit status for how tracing ended; tells what the user has to know of it.
int Session::end_status(EndReason reason) {
  const Sink& sink = file_ ? *file_ : stdout_;
  if (!sink.problem().empty()) {
    say(fmt::format("cannot write output: {}", sink.problem()));
    return kExitFailure;
  }
  if (reason == EndReason::MachineEnded) {
    // The command port's end can be seen a moment before the machine's own.
    pollfd event{guest_.machine->state_event_fd(), POLLIN, 0};
    if (guest_.machine->state() == vmm::MachineState::Running) ::poll(&event, 1, 2000);
    say(describe_end(*guest_.machine) + "; tracing ended");
    return kExitFailure;
  }
  return engine_->exit_status().value_or(kExitOk);
}

Result<int> Session::trace_armed(Output& output) {
  TraceLoop loop(loop_parts(output));
  const Clock::time_point began = Clock::now();
  if (auto started = tracer_->start(*engine_); !started) {
    // BEGIN may have printed something already.
    loop.finish(EndReason::Exit);
    return fail(started.error().code, "could not enable tracing: " + started.error().message);
  }
  report_time("armed", began);
  EndReason reason = EndReason::MachineEnded;
  if (!guest_.command || guest_.command->go()) reason = loop.run();
  loop.finish(reason);
  return end_status(reason);
}

Result<int> Session::trace() {
  auto verified = dif::verify_program(std::move(*program_));
  if (!verified) return tl::make_unexpected(std::move(verified).error());
  if (line_.show_dif) std::fputs(dif::list_program(verified->program()).c_str(), stderr);
  if (line_.task == CommandLine::Task::CompileOnly) return kExitOk;

  if (!line_.output_file.empty()) file_.emplace(TRY(Sink::append_to(line_.output_file)));
  engine_ = std::make_unique<dif::Engine>(std::move(*verified), line_.settings.engine,
                                          tracer_->vcpu_count());
  const EngineView view(*engine_, guest_.kernel.get());
  auto output = Output::create(view, line_.settings, file_ ? *file_ : stdout_);
  if (!output) return fail(output.error().code, sources_.explain(output.error().message));
  TRY(enable_all());
  return trace_armed(*output);
}

Result<int> Session::run() {
  TRY(attach());
  if (!line_.programs.empty()) TRY(compile());
  if (line_.task == CommandLine::Task::List) return list();
  return trace();
}

}  // namespace

int run_session(CommandLine line) {
  auto signals = Signals::block();
  if (!signals) {
    say(signals.error().message);
    return kExitFailure;
  }
  Session session(std::move(line), std::move(*signals));
  const auto status = session.run();
  if (!status) {
    say(status.error().message);
    return kExitFailure;
  }
  return *status;
}

}  // namespace ringside::cli
