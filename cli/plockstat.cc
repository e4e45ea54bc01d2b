#include "cli/plockstat.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "cli/session/session.h"

namespace ringside::cli {
namespace {

/// A table of what is printed: durations from one probe to another of the same lock and thread.
struct Table {
  std::string_view name, title;
  std::string_view begins, ends;  // probe, and a condition on it
  std::string_view begins_if, ends_if;
  std::string_view gives_up = {};  // a probe after which there is no end
};

constexpr Table kHold[] = {
    {"mtx_hold", "Mutex hold", "mutex-acquire", "mutex-release", "!arg1", "!arg1"},
    {"rw_r_hold", "R/W reader hold", "rw-acquire", "rw-release", "!arg1", "!arg1"},
    {"rw_w_hold", "R/W writer hold", "rw-acquire", "rw-release", "arg1", "arg1"},
};
constexpr Table kContention[] = {
    {"mtx_block", "Mutex block", "mutex-block", "mutex-acquire", "1", "1", "mutex-error"},
    {"mtx_fail", "Mutex unsuccessful block", "mutex-block", "mutex-error", "1", "1",
     "mutex-acquire"},
    {"rw_r_block", "R/W reader block", "rw-block", "rw-acquire", "!arg1", "!arg1", "rw-error"},
    {"rw_w_block", "R/W writer block", "rw-block", "rw-acquire", "arg1", "arg1", "rw-error"},
};

void add_clauses(std::string& program, const Table& table, std::string_view caller) {
  const auto& [name, title, begins, ends, begins_if, ends_if, gives_up] = table;
  program += fmt::format("plockstat$target:::{} /{}/ {{ self->{}[arg0] = timestamp; }}\n", begins,
                         begins_if, name);
  program += fmt::format(
      "plockstat$target:::{0} /{1} && self->{2}[arg0]/ {{\n"
      "\t@{2}_count[uaddr(arg0), {3}] = count();\n"
      "\t@{2}[uaddr(arg0), {3}] = avg(timestamp - self->{2}[arg0]);\n"
      "\tself->{2}[arg0] = 0;\n"
      "\t{2} = 1;\n"
      "}}\n",
      ends, ends_if, name, caller);
  if (gives_up.empty()) return;
  program += fmt::format("plockstat$target:::{0} /self->{1}[arg0]/ {{ self->{1}[arg0] = 0; }}\n",
                         gives_up, name);
}

void add_output(std::string& program, const Table& table, unsigned depth) {
  constexpr std::string_view kLine =
      "-------------------------------------------------------------------------------";
  program += fmt::format(
      "END /{0}/ {{\n"
      "\tprintf(\"\\n{1}\\n\\nCount     nsec Lock                         Caller\\n{2}\\n\");\n"
      "\tprinta(\"%5@u %8@u %-28A {3}\\n\", @{0}_count, @{0});\n"
      "}}\n",
      table.name, table.title, kLine, depth == 0 ? "%A" : "%-45k");
}

template <class Visit>
void for_each_table(const PlockstatOptions& options, Visit visit) {
  if (options.hold) {
    for (const Table& table : kHold) visit(table);
  }
  if (options.contention) {
    for (const Table& table : kContention) visit(table);
  }
}

}  // namespace

std::string plockstat_program(const PlockstatOptions& options) {
  const std::string caller =
      options.depth == 0 ? "uaddr(ucaller)" : fmt::format("ustack({})", options.depth);
  std::string program;
  for_each_table(options, [&](const Table& table) { add_clauses(program, table, caller); });
  if (options.seconds != 0) {
    program += fmt::format("tick-{}s {{ exit(0); }}\n", options.seconds);
  }
  for_each_table(options, [&](const Table& table) { add_output(program, table, options.depth); });
  return program;
}

int run_plockstat(CommandLine line) {
  line.task = CommandLine::Task::Trace;
  line.programs = {{ProgramSource::Kind::Name, plockstat_program(line.plockstat)}};
  line.settings.quiet = true;
  line.settings.sort_reversed = true;
  return run_session(std::move(line));
}

}  // namespace ringside::cli
