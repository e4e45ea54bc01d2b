// In this file, top to bottom: the child before exec, words, the parent's side, the end.
#include "cli/guest/host_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>

#include "vmm/base/process.h"

namespace ringside::cli {
namespace {

/// Our environment as `settings` change it, "NAME=value" each.
std::vector<std::string> child_environment(const Settings& settings) {
  std::map<std::string, std::string> values;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::size_t equals = text.find('=');
    if (equals != text.npos) values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const auto& [name, value] : settings.environment) values[name] = value;
  for (const std::string& name : settings.removed_environment) values.erase(name);
  std::vector<std::string> variables;
  variables.reserve(values.size());
  for (const auto& [name, value] : values) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

/// In the child. The session blocks signals and ignores two; the command must not. Returns an errno
/// or 0.
int prepare_command(char** environment) {
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  environ = environment;
  return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : errno;
}

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view command) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      word = word.value_or("") + command[++i];
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        *word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      word = word.value_or("");
    } else if (std::strchr(" \t\n\r\f\v", c) == nullptr) {
      word = word.value_or("") + c;
    } else if (word) {
      words.push_back(*std::exchange(word, std::nullopt));
    }
  }
  if (word) words.push_back(*word);
  if (quote != 0) return fail(ErrorCode::Invalid, fmt::format("-c {}: the quote is open", command));
  if (words.empty() || words[0].empty())
    return fail(ErrorCode::Invalid, "-c: the command is empty");
  return words;
}

HostProcesses::~HostProcesses() {
  for (Process& process : processes_) {
    if (!process.ours || process.ended) continue;
    // A process that was started for the trace ends with it.
    kill(process.pid, SIGKILL);
    await_child(process.pid);
  }
}

Result<void> HostProcesses::create(const std::string& command, const Settings& settings) {
  const std::vector<std::string> words = TRY(split_command(command));
  std::vector<std::string> variables = child_environment(settings);
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const auto [pid, problem] =
      start_program(words[0], words, [&] { return prepare_command(environment.data()); });
  if (problem != 0 || !WIFSTOPPED(await_child(pid).value_or(0))) {
    return fail(ErrorCode::NotFound,
                fmt::format("failed to execute {}: {}", words[0],
                            problem != 0 ? std::strerror(problem) : "it ended at once"));
  }
  // It must not stay stopped for ever if we die.
  ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL);
  processes_.push_back({pid, open_pidfd(pid), true, true, false});
  return {};
}

Result<void> HostProcesses::grab(std::int64_t pid) {
  UniqueFd fd = open_pidfd(static_cast<pid_t>(pid));
  if (!fd) {
    return fail(ErrorCode::NotFound,
                fmt::format("failed to grab pid {}: {}", pid, std::strerror(errno)));
  }
  processes_.push_back({static_cast<pid_t>(pid), std::move(fd), false, false, false});
  return {};
}

void HostProcesses::go() {
  for (Process& process : processes_) {
    if (std::exchange(process.held, false)) ptrace(PTRACE_DETACH, process.pid, nullptr, nullptr);
  }
}

std::vector<int> HostProcesses::live_fds() const {
  std::vector<int> fds;
  for (const Process& process : processes_) {
    if (!process.ended) fds.push_back(process.fd.get());
  }
  return fds;
}

std::vector<std::string> HostProcesses::take_ended() {
  std::vector<std::string> lines;
  for (Process& process : processes_) {
    pollfd event{process.fd.get(), POLLIN, 0};
    if (process.ended || ::poll(&event, 1, 0) <= 0) continue;
    process.ended = true;
    int status = 0;
    if (process.ours) waitpid(process.pid, &status, WNOHANG);
    lines.push_back(
        process.ours && WIFSIGNALED(status)
            ? fmt::format("pid {} terminated by signal {}", process.pid, WTERMSIG(status))
            : fmt::format("pid {} has exited", process.pid));
  }
  return lines;
}

bool HostProcesses::any_live() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return !process.ended; });
}

}  // namespace ringside::cli
