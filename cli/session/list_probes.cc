#include "cli/session/list_probes.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "cli/messages/messages.h"
#include "cli/program/probe_list.h"

namespace ringside::cli {
namespace {

/// A list has up to 100,000 rows, each of some 70 bytes, and of 1,000 with -v.
constexpr std::size_t kRowsAtOnce = 512;

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

}  // namespace

void list_header(const ListLayout& layout, Sink& sink) {
  sink.write(machine_column(layout, "MACHINE") + probe_list_header());
}

Result<bool> list_probes(const dif::Program* program, const providers::Target& target,
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

}  // namespace ringside::cli
