// A trace: set up, its records, its end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/options/settings.h"
#include "cli/session/watched_target.h"
#include "dif/program/action_kind.h"
#include "library/handles.h"

namespace ringside::library {
namespace {

using cli::EndReason;
using Clock = std::chrono::steady_clock;
using Stage = ringside_trace::Stage;

/// A program waits for records in a loop, and not a user who reads.
constexpr std::chrono::milliseconds kSwitchInterval{100};

/// Puts what the output makes into the trace's queue.
class QueueWriter final : public cli::RecordWriter {
 public:
  explicit QueueWriter(ringside_trace& trace) : trace_(trace) {}
  void record(Tree&& tree) override {
    if (!trace_.wanted) return trace_.records.push_back(std::move(tree));
    for (Tree& each : tree["output"]) trace_.wanted->push_back(std::move(each));
  }
  Result<std::vector<std::string>> finish() override { return {}; }

 private:
  ringside_trace& trace_;
};

Result<void> check_process(const ringside_trace& trace, std::string_view call) {
  if (trace.made_by.is_here()) return {};
  return fail(
      ErrorCode::Usage,
      fmt::format("{}: the trace is that of the process that this one was forked from", call));
}

Result<void> check_stage(const ringside_trace& trace, Stage wanted, std::string_view call) {
  TRY(check_process(trace, call));
  if (trace.stage == wanted) return {};
  constexpr std::string_view kWords[] = {"is not compiled yet", "is compiled but not started",
                                         "runs", "has ended", "has failed"};
  return fail(ErrorCode::Usage,
              fmt::format("{}: the trace {}", call, kWords[static_cast<std::size_t>(trace.stage)]));
}

Result<void> set_option(ringside_trace& trace, std::string_view name, std::string_view value) {
  TRY(check_stage(trace, Stage::New, "an option"));
  if (name == "oformat") {
    return fail(ErrorCode::Unsupported,
                "-x oformat: records are typed values here, which have no format");
  }
  auto done = cli::apply_option(trace.line.settings, name, value, cli::OptionSource::CommandLine);
  if (done) return done;
  return fail(done.error().code,
              fmt::format("failed to set -x {}: {}", name, done.error().message));
}

/// Actions on the command's own output; they would go to the program's.
Result<void> check_actions(const dif::Program& program) {
  for (const dif::Clause& clause : program.clauses) {
    for (const dif::Action& action : clause.actions) {
      using dif::ActionKind;
      if (action.kind != ActionKind::System && action.kind != ActionKind::Freopen) continue;
      return fail(ErrorCode::Unsupported,
                  fmt::format("line {}: {}() is for the command's output; take the records and do "
                              "it in the program",
                              clause.line, dif::action_info(action.kind).name));
    }
  }
  return {};
}

Result<void> compile(ringside_trace& trace, const char* program) {
  TRY(check_stage(trace, Stage::New, "ringside_trace_compile()"));
  trace.line.programs = {{cli::ProgramSource::Kind::Text, program}};
  cli::Tracing& tracing = trace.tracing.emplace(trace.line, trace.order);
  trace.stage = Stage::Failed;
  TRY(tracing.read());
  TRY(tracing.attach());
  TRY(tracing.compile(trace.nowhere));
  TRY(check_actions(*tracing.script().program()));
  TRY(tracing.verify());
  trace.stage = Stage::Compiled;
  return {};
}

Result<void> start(ringside_trace& trace) {
  TRY(check_stage(trace, Stage::Compiled, "ringside_trace_start()"));
  trace.stage = Stage::Failed;
  cli::Tracing& tracing = *trace.tracing;
  TRY(tracing.enable(trace.nowhere, std::make_unique<QueueWriter>(trace)));
  if (tracing.program().clauses.empty()) return fail(ErrorCode::NotFound, "no probes matched");
  TRY(tracing.arm({trace.nowhere, -1}, trace.nowhere));
  tracing.let_go();
  trace.stage = Stage::Running;
  return {};
}

ringside_end end_of(EndReason reason) {
  switch (reason) {
    case EndReason::Exit: return RINGSIDE_EXIT;
    case EndReason::BufferFull: return RINGSIDE_BUFFER_FULL;
    case EndReason::MachineEnded: return RINGSIDE_MACHINE_ENDED;
    case EndReason::KernelGone: return RINGSIDE_KERNEL_GONE;
    case EndReason::MachineLeft: return RINGSIDE_MACHINE_LEFT;
    // The others are ends of processes and outputs that a handle has not.
    case EndReason::Signal:
    case EndReason::CommandEnded:
    case EndReason::OutputClosed: break;
  }
  return RINGSIDE_STOPPED;
}

/// The machine is as it was found when it returns.
void finish(ringside_trace& trace, EndReason reason) {
  cli::TraceLoop& loop = trace.tracing->loop();
  loop.finish(reason);
  trace.end = end_of(reason);
  if (trace.end >= RINGSIDE_MACHINE_ENDED) cli::tell_end(loop.last_target(), reason);
  trace.status = trace.tracing->targets().exit_status().value_or(0);
  trace.stage = Stage::Ended;
}

/// One round of the loop: what it took is in the queue.
void work(ringside_trace& trace, Clock::time_point until) {
  cli::TraceLoop& loop = trace.tracing->loop();
  auto end = loop.take_due();
  if (!end) end = loop.wait(trace.records.empty() ? until : Clock::time_point());
  if (end) finish(trace, *end);
}

bool hand_over(ringside_trace& trace, const ringside_value** record) {
  if (trace.records.empty()) return false;
  trace.current = std::move(trace.records.front());
  trace.records.pop_front();
  if (record != nullptr) *record = lend_value(trace.current);
  return true;
}

Result<int> next(ringside_trace& trace, int milliseconds, const ringside_value** record) {
  const auto until = milliseconds < 0 ? Clock::time_point::max()
                                      : Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    if (hand_over(trace, record)) return RINGSIDE_RECORD;
    if (trace.stage == Stage::Ended) return RINGSIDE_END;
    TRY(check_stage(trace, Stage::Running, "ringside_trace_next()"));
    work(trace, until);
    if (!trace.records.empty() || trace.stage == Stage::Ended) continue;
    if (Clock::now() >= until) return RINGSIDE_TIMEOUT;
  }
}

/// A failed step as the caller sees it: with the place in his program, or why there is no machine.
void tell_failure(ringside_trace& trace, ringside_error** where, Error error) {
  const bool given_up = trace.order.is_given() && error.code == ErrorCode::Io;
  if (trace.tracing) error = trace.tracing->or_lost_machine(std::move(error));
  tell_error(where, error);
  if (where == nullptr) return;
  if (given_up && error.code == ErrorCode::Io) (*where)->code = RINGSIDE_ERROR_STOPPED;
  if (error.code != ErrorCode::Compile || !trace.tracing) return;
  const auto& diagnostic = trace.tracing->script().diagnostic();
  if (!diagnostic) return;
  (*where)->tag = diagnostic->tag;
  if (!diagnostic->library.empty()) return;  // a place in a file of D's
  (*where)->line = diagnostic->at.line;
  (*where)->column = diagnostic->at.column;
}

/// A step of the set-up. After one that failed the machine is left.
template <class Step>
int step_of(ringside_trace& trace, ringside_error** error, Step step) {
  const Call call(trace.order, trace.messages);
  const bool was_failed = trace.stage == Stage::Failed;
  auto done = step();
  if (done) return 0;
  tell_failure(trace, error, std::move(done).error());
  if (trace.stage == Stage::Failed && !was_failed) trace.tracing.reset();
  return RINGSIDE_FAILED;
}

}  // namespace
}  // namespace ringside::library

using namespace ringside::library;

ringside_trace::ringside_trace(const ringside_vm& vm) : line(vm.line) {
  line.settings.quiet = true;
  line.settings.format = ringside::cli::OutputFormat::Json;
  line.settings.switch_interval = kSwitchInterval;
  messages = [this](std::string_view text) {
    records.push_back({{"message", ringside::cli::valid_utf8(text)}});
  };
}

ringside_trace::~ringside_trace() {
  const Call call(order, messages);
  if (stage == Stage::Running) {
    order.give();
    finish(*this, EndReason::Signal);
  }
  tracing.reset();
}

ringside_trace* ringside_trace_new(ringside_vm* vm) {
  return new ringside_trace(*vm);
}

int ringside_trace_option(ringside_trace* trace, const char* name, const char* value,
                          ringside_error** error) {
  return step_of(*trace, error,
                 [&] { return set_option(*trace, name, value == nullptr ? "" : value); });
}

int ringside_trace_argument(ringside_trace* trace, const char* text, ringside_error** error) {
  return step_of(*trace, error, [&]() -> ringside::Result<void> {
    TRY(check_stage(*trace, Stage::New, "an argument"));
    trace->line.arguments.emplace_back(text);
    return {};
  });
}

int ringside_trace_compile(ringside_trace* trace, const char* program, ringside_error** error) {
  return step_of(*trace, error, [&] { return compile(*trace, program); });
}

int ringside_trace_start(ringside_trace* trace, ringside_error** error) {
  return step_of(*trace, error, [&] { return start(*trace); });
}

int ringside_trace_next(ringside_trace* trace, int milliseconds, const ringside_value** record,
                        ringside_error** error) {
  if (hand_over(*trace, record)) return RINGSIDE_RECORD;
  const Call call(trace->order, trace->messages);
  const auto found = next(*trace, milliseconds, record);
  if (found) return *found;
  tell_error(error, found.error());
  return RINGSIDE_FAILED;
}

size_t ringside_trace_pending(const ringside_trace* trace) {
  return trace->records.size();
}

ringside_value* ringside_trace_keep(ringside_trace* trace) {
  return give_value(std::exchange(trace->current, nullptr));
}

int ringside_trace_run(ringside_trace* trace, ringside_record_taker take, void* context,
                       ringside_error** error) {
  // Signals are handled between these.
  constexpr int kRound = 50;  // ms
  const ringside_value* record = nullptr;
  int found = 0;
  while ((found = ringside_trace_next(trace, kRound, &record, error)) > RINGSIDE_END) {
    if (found == RINGSIDE_RECORD && take(context, record) != 0) ringside_trace_stop(trace);
  }
  return found;
}

void ringside_trace_stop(ringside_trace* trace) {
  trace->order.give();
}

ringside_value* ringside_trace_aggregations(ringside_trace* trace, ringside_error** error) {
  constexpr std::string_view kCall = "ringside_trace_aggregations()";
  const Call call(trace->order, trace->messages);
  const auto can = trace->stage == Stage::Ended ? check_process(*trace, kCall)
                                                : check_stage(*trace, Stage::Running, kCall);
  if (!can) {
    tell_error(error, can.error());
    return nullptr;
  }
  if (trace->stage == Stage::Running) trace->tracing->loop().take_now();
  trace->wanted = Tree::array();
  trace->tracing->output().show_aggregations();
  return give_value(*std::exchange(trace->wanted, std::nullopt));
}

ringside_end ringside_trace_end(const ringside_trace* trace) {
  return trace->end;
}

int ringside_trace_status(const ringside_trace* trace) {
  return trace->status;
}

void ringside_trace_close(ringside_trace* trace) {
  if (trace != nullptr && trace->made_by.is_here()) delete trace;
}
