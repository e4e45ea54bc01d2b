#include "cli/session/list_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/messages/messages.h"
#include "cli/program/probe_list.h"

namespace ringside::cli {
namespace {

/// A list has up to 100,000 rows, each of some 70 bytes, and of 1,000 with -v.
constexpr std::size_t kRowsAtOnce = 512;

/// The layout for one machine, or for several, whose names are in a column of their own, `width`
/// wide.
struct ListLayout {
  std::size_t width = 0;  // 0: one
  bool verbose = false;
};

std::string machine_column(const ListLayout& layout, std::string_view text) {
  return layout.width == 0 ? "" : fmt::format("{:<{}} ", text, layout.width);
}

class Lister {
 public:
  Lister(const providers::Target& target, TracerEnvironment& environment, Sink& sink,
         const ListLayout& layout)
      : tracer_(&target.tracer()),
        environment_(&environment),
        sink_(&sink),
        verbose_(layout.verbose) {
    if (layout.width == 0) return;
    machine_ = machine_column(layout, target.name());
    line_start_ = target.name() + ": ";
  }

  /// False when nothing matched, which was said.
  Result<bool> list(const dif::ProbeDescription& pattern);

 private:
  providers::Tracer* tracer_;
  TracerEnvironment* environment_;
  Sink* sink_;
  bool verbose_;
  std::string machine_, line_start_;  // of rows, and of messages
};

Result<bool> Lister::list(const dif::ProbeDescription& pattern) {
  std::size_t rows = 0;
  TRY(tracer_->for_each_probe(pattern, [&](const providers::Probe& probe) {
    if (++rows % kRowsAtOnce == 0) sink_->flush();
    sink_->write(machine_ + probe_list_line(probe));
    if (verbose_) {
      sink_->write(probe_list_details(probe.name, tracer_->attributes(probe),
                                      tracer_->arguments(probe), environment_->types()));
      sink_->write(probe_list_instruction(tracer_->detail(probe)));
    }
  }));
  if (verbose_) {
    std::vector<providers::Refusal> refusals;
    TRY(tracer_->refusals(pattern, [&](const auto& refusal) { refusals.push_back(refusal); }));
    sink_->write(refusal_list(refusals));
  }
  if (rows != 0) return true;
  sink_->flush();
  const std::string why = environment_->why_no_match(pattern);
  say(fmt::format("{}failed to match {}: No probe matches description{}", line_start_,
                  pattern.to_string(), why.empty() ? "" : " (" + why + ")"));
  return false;
}

/// The probes of one target.
Result<bool> list_target(const dif::Program* program, const providers::Target& target,
                         TracerEnvironment& environment, Sink& sink, const ListLayout& layout) {
  Lister lister(target, environment, sink, layout);
  bool all = true;
  if (program == nullptr) {
    all = TRY(lister.list({}));
  } else {
    for (const dif::Clause& clause : program->clauses) {
      for (const dif::ProbeDescription& pattern : clause.probes) {
        if (!dif::is_for(pattern, target.name())) continue;
        const bool matched = TRY(lister.list(pattern));
        all = all && matched;
      }
    }
  }
  sink.flush();
  if (!sink.problem().empty()) {
    return fail(ErrorCode::Io, fmt::format("cannot write output: {}", sink.problem()));
  }
  return all;
}

/// Whether each description is for a machine that is there; says which is not.
bool machines_are_there(const dif::Program* program, const MachinesEnvironment& environment) {
  bool all = true;
  if (program == nullptr) return all;
  for (const dif::Clause& clause : program->clauses) {
    for (const dif::ProbeDescription& pattern : clause.probes) {
      const std::string why = environment.why_no_machine(pattern);
      if (why.empty()) continue;
      say(fmt::format("failed to match {}: No probe matches description ({})", pattern.to_string(),
                      why));
      all = false;
    }
  }
  return all;
}

}  // namespace

Result<bool> list_probes(const dif::Program* program, SessionTargets& targets,
                         const MachinesEnvironment& environment, Sink& sink, bool verbose) {
  bool all = machines_are_there(program, environment);
  ListLayout layout{.verbose = verbose};
  if (targets.several()) layout.width = std::string_view("MACHINE").size();
  for (const SessionTarget& entry : targets) {
    if (targets.several()) layout.width = std::max(layout.width, entry.target->name().size());
  }
  sink.write(machine_column(layout, "MACHINE") + probe_list_header());
  for (SessionTarget& entry : targets) {
    const bool found = TRY(list_target(program, *entry.target, *entry.environment, sink, layout));
    all = all && found;
  }
  return all;
}

}  // namespace ringside::cli
