#include "cli/statistics/stats.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/messages/messages.h"
#include "cli/output/sink.h"
#include "vmm/base/own_folder.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

/// Leaves the machines of these names, where there are any; whether all names were found.
bool keep_named(std::vector<ProcessFigures>& processes, std::span<const std::string> names) {
  bool all = true;
  for (const std::string& name : names) {
    const bool found = std::ranges::any_of(processes, [&](const ProcessFigures& process) {
      return std::ranges::find(process.machines, name, &Figures::machine) != process.machines.end();
    });
    if (!found) say(fmt::format("stats: no ringside of yours traces {} now", name));
    all = all && found;
  }
  if (names.empty()) return all;
  for (ProcessFigures& process : processes) {
    std::erase_if(process.machines, [&](const Figures& figures) {
      return std::ranges::find(names, figures.machine) == names.end();
    });
  }
  std::erase_if(processes, [](const ProcessFigures& one) { return one.machines.empty(); });
  return all;
}

Result<int> show(const CommandLine& line) {
  auto processes = TRY(read_figures(runtime_folder()));
  const bool found = keep_named(processes, line.arguments);
  if (processes.empty() && line.arguments.empty()) say("no ringside of yours traces anything now");
  Sink sink(STDOUT_FILENO);
  if (line.settings.format == OutputFormat::Text) {
    sink.write(stats_text(processes));
  } else {
    sink.write(stats_json(processes, line.settings.format == OutputFormat::Json ? 2 : -1));
  }
  if (!sink.flush() && !sink.problem().empty()) {
    return fail(ErrorCode::Io, "cannot write output: " + sink.problem());
  }
  return found ? kExitOk : kExitFailure;
}

}  // namespace

std::string stats_text(std::span<const ProcessFigures> processes) {
  std::string text;
  for (const ProcessFigures& process : processes) {
    for (const Figures& figures : process.machines) {
      const std::string name =
          figures.machine.empty() ? "(no machine)" : printable(figures.machine);
      text += fmt::format("{}{}, traced by process {}, as of {:.1f} s ago\n",
                          text.empty() ? "" : "\n", name, process.pid, process.age);
      for (const std::string& line : figures_lines(figures)) text += "  " + line + '\n';
      const std::string waits = waits_drawing(figures.trace.kernel.waits);
      if (!waits.empty()) text += "  " + waits;
    }
  }
  return text;
}

std::string stats_json(std::span<const ProcessFigures> processes, int indent) {
  Tree list = Tree::array();
  for (const ProcessFigures& process : processes) {
    for (const Figures& figures : process.machines) {
      Tree machine;
      machine["machine"] = printable(figures.machine);
      machine["pid"] = process.pid;
      machine["age_s"] = process.age;
      machine.update(figures_tree(figures));
      list.push_back(std::move(machine));
    }
  }
  return list.dump(indent, ' ', false, Tree::error_handler_t::replace) + '\n';
}

int run_stats(const CommandLine& line) {
  const auto status = show(line);
  if (status) return *status;
  say(status.error().message);
  return kExitFailure;
}

}  // namespace ringside::cli
