// The command `ringside`.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/draw.h"
#include "cli/examples.h"
#include "cli/look/look.h"
#include "cli/messages/messages.h"
#include "cli/options/option_pages.h"
#include "cli/options/options.h"
#include "cli/plockstat.h"
#include "cli/session/session.h"
#include "cli/statistics/stats.h"
#include "cli/vms.h"
#include "cli/web/web.h"
#include "cli/why/why.h"

namespace {

/// Without it the first files that we open would take the numbers of standard descriptors that we
/// were started without, and be written to. Writing to these fails, as it would have.
void fill_standard_descriptors() {
  int fd;
  do {
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

/// The C library's defaults are for programs that take memory once and keep it.
void take_little_memory() {
  // A kernel's tables come and go until it has booted. A threshold that is set stays; else the
  // library would soon put them on its heap, which does not shrink.
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  // Of 8 MiB a thread, a host with huge pages makes 2 MiB resident at the first push.
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, 1 << 20);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

/// One line instead of a core: nothing of ours gives memory back when asked to.
[[noreturn]] void end_without_memory() {
  constexpr std::string_view kWords = "ringside: out of memory\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kWords.data(), kWords.size());
  _exit(ringside::cli::kExitFailure);
}

/// The same for std::thread, which throws where the host has no room for one. Nothing is unwound
/// here: destructors would wait for threads that never began.
[[noreturn]] void end_without_threads() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::system_error& error) {
    ringside::cli::say("no thread can be started: " + error.code().message());
    _exit(ringside::cli::kExitFailure);
  } catch (...) {
    // A mistake of ours: the core says which.
  }
  std::abort();
}

ringside::Result<ringside::cli::CommandLine> read_command_line(std::vector<std::string> words) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.emplace_back(*variable);
  ringside::cli::Settings presets;
  TRY(ringside::cli::apply_environment(presets, environment));
  return ringside::cli::parse_command_line(std::move(words), std::move(presets));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ringside;
  using Task = cli::CommandLine::Task;

  fill_standard_descriptors();
  take_little_memory();
  std::set_new_handler(end_without_memory);
  std::set_terminate(end_without_threads);
  if (argc > 0) cli::set_program_name(argv[0]);

  auto line = read_command_line(std::vector<std::string>(argv, argv + argc));
  if (!line) {
    cli::say(line.error().message);
    if (line.error().code != ErrorCode::Usage) return cli::kExitFailure;
    if (argc < 2) std::fputs(cli::usage_text(cli::program_name()).c_str(), stderr);
    return cli::kExitUsage;
  }
  if (line->task == Task::Help) {
    std::fputs(cli::help_text(cli::program_name()).c_str(), stdout);
    return cli::kExitOk;
  }
  if (line->task == Task::Version) {
    std::printf("%s: Sun D %s (ringside " RINGSIDE_VERSION ")\n", cli::program_name().c_str(),
                cli::language_version_text().c_str());
    return cli::kExitOk;
  }
  if (line->task == Task::ProgramVersion) {
    std::printf("ringside " RINGSIDE_VERSION " (D %s)\n", cli::language_version_text().c_str());
    return cli::kExitOk;
  }
  if (line->task == Task::ListVms) return cli::list_vms(line->settings.format);
  if (line->task == Task::Examples) return cli::print_examples(line->example);
  if (line->task == Task::Stats) return cli::run_stats(*line);
  if (line->task == Task::Draw) return cli::run_draw(*line);
  if (line->task == Task::Why) return cli::run_why(*line);
  if (line->task == Task::Web) return cli::run_web(*line);
  if (line->task == Task::Plockstat) return cli::run_plockstat(std::move(*line));
  if (line->task == Task::Look) return cli::run_look(*line);
  return cli::run_session(std::move(*line));
}
