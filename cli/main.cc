// The command `ringside`.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/messages.h"
#include "cli/options.h"
#include "cli/session.h"

int main(int argc, char** argv) {
  using namespace ringside;
  using Task = cli::CommandLine::Task;

  auto line = cli::parse_command_line(std::vector<std::string>(argv, argv + argc));
  if (!line) {
    cli::say(line.error().message);
    return cli::kExitUsage;
  }
  if (line->task == Task::Help) {
    std::fputs(cli::help_text().c_str(), stdout);
    return cli::kExitOk;
  }
  if (line->task == Task::Version) {
    std::puts("ringside: version " RINGSIDE_VERSION);
    return cli::kExitOk;
  }
  return cli::run_session(std::move(*line));
}
