// `top`: processes of all machines by what they take, from two readings of the guests' own times.
// In this file, top to bottom: a machine that is watched, the text of a round, JSON, the screen and
// its keys, the command.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "cli/look/look.h"
#include "cli/look/looked_at.h"
#include "cli/messages/messages.h"
#include "cli/messages/progress.h"
#include "cli/messages/signals.h"
#include "cli/output/sink.h"
#include "vmm/base/printable.h"
#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/kernel_state.h"
#include "vmm/linux/listing/cpu_times.h"
#include "vmm/linux/online_cpus.h"

namespace ringside::cli {
namespace {

using guest_linux::CpuTimes;
using guest_linux::TaskDetail;
using guest_linux::TaskRow;
using Clock = std::chrono::steady_clock;
using Key = LookOptions::Key;

/// One reading of a machine, and what changed since the one before.
struct Reading {
  std::vector<TaskRow> tasks;
  std::vector<double> percents;  // of a CPU, a task each
  CpuTimes spent;                // since the reading before, ns
  std::chrono::nanoseconds apart{};
  std::size_t cpus = 0;
  std::optional<std::uint64_t> uptime;
  std::optional<std::array<double, 3>> load;
  guest_linux::MemoryReport memory;
  std::vector<std::string> notes;
};

CpuTimes difference(const CpuTimes& now, const CpuTimes& then) {
  // A CPU's counters may stand while it is read; they never go back.
  const auto since = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  return {since(now.user, then.user), since(now.nice, then.nice), since(now.system, then.system),
          since(now.interrupts, then.interrupts), since(now.stolen, then.stolen)};
}

class Watched {
 public:
  explicit Watched(std::unique_ptr<LookedAt> machine) : machine_(std::move(machine)) {}

  const std::string& name() const { return machine_->name(); }
  bool is_there() const { return machine_->is_there(); }

  Result<Reading> read(bool threads) {
    const auto& view = machine_->view();
    Reading reading;
    const auto now = Clock::now();
    auto tasks = TRY(guest_linux::list_tasks(
        machine_->guest(), threads ? TaskDetail::Threads : TaskDetail::Processes));
    const CpuTimes times = TRY(guest_linux::read_cpu_times(view));
    reading.tasks = std::move(tasks.rows);
    reading.notes = std::move(tasks.notes);
    reading.apart = now - last_read_;
    reading.spent = difference(times, last_times_);
    std::map<TaskKey, std::uint64_t> spent;
    for (const TaskRow& task : reading.tasks) {
      const TaskKey key{task.process, task.thread, task.started};
      const auto before = last_spent_.find(key);
      // One that is new has taken all of its time since then.
      const std::uint64_t then = before == last_spent_.end() ? 0 : before->second;
      const auto taken = static_cast<double>(task.cpu_time > then ? task.cpu_time - then : 0);
      reading.percents.push_back(100 * taken / static_cast<double>(reading.apart.count()));
      spent.emplace(key, task.cpu_time);
    }
    last_spent_ = std::move(spent);
    last_times_ = times;
    last_read_ = now;
    guest_linux::Clocks clocks(view);
    clocks.read();
    reading.uptime = std::max(clocks.now(), clocks.monotonic());
    reading.load = guest_linux::read_load(view);
    reading.memory = guest_linux::read_memory_state(view);
    reading.cpus = count_cpus();
    return reading;
  }

 private:
  using TaskKey = std::tuple<std::int64_t, std::int64_t, std::uint64_t>;

  std::size_t count_cpus() const;

  std::unique_ptr<LookedAt> machine_;
  std::map<TaskKey, std::uint64_t> last_spent_;
  CpuTimes last_times_;
  Clock::time_point last_read_;
};

std::size_t Watched::count_cpus() const {
  const auto& view = machine_->view();
  return guest_linux::OnlineCpus(view.kernel())
      .count(view.reader(), view.cpu_count())
      .value_or(view.cpu_count());
}

/// A machine's name and its last reading.
struct Round {
  std::string machine;
  Reading reading;
};

double percent_of(const Reading& reading, std::uint64_t nanoseconds) {
  const double all = static_cast<double>(reading.apart.count()) *
                     static_cast<double>(std::max<std::size_t>(reading.cpus, 1));
  return std::clamp(100 * static_cast<double>(nanoseconds) / all, 0.0, 100.0);
}

double idle_percent(const Reading& reading) {
  return std::max(0.0, 100 - percent_of(reading, reading.spent.busy() + reading.spent.stolen));
}

std::string memory_text(std::optional<std::uint64_t> bytes) {
  return bytes ? fmt::format("{}M", *bytes >> 20) : "?";
}

/// "web1: up 00:10:31, 2 CPUs, load 0.10 0.05 0.01; CPU 1.0 user ...; memory 480M, 300M free".
std::string summary(const Round& round) {
  const Reading& reading = round.reading;
  const CpuTimes& spent = reading.spent;
  std::string text = printable(round.machine) + ":";
  if (reading.uptime) text += fmt::format(" up {},", time_text(*reading.uptime));
  text += fmt::format(" {} CPU{}, {} tasks", reading.cpus, reading.cpus == 1 ? "" : "s",
                      reading.tasks.size());
  if (reading.load) text += fmt::format(", load {:.2f}", fmt::join(*reading.load, " "));
  text += fmt::format(
      "; CPU% {:.1f} user, {:.1f} nice, {:.1f} system, {:.1f} interrupts, "
      "{:.1f} stolen, {:.1f} idle",
      percent_of(reading, spent.user), percent_of(reading, spent.nice),
      percent_of(reading, spent.system), percent_of(reading, spent.interrupts),
      percent_of(reading, spent.stolen), idle_percent(reading));
  return text + fmt::format("; memory {}, {} free", memory_text(reading.memory.total),
                            memory_text(reading.memory.free));
}

/// A task of one of the machines.
struct Place {
  std::size_t machine, task;
};

std::vector<Place> sorted_tasks(const std::vector<Round>& rounds, Key key) {
  std::vector<Place> places;
  for (std::size_t m = 0; m < rounds.size(); ++m) {
    for (std::size_t t = 0; t < rounds[m].reading.tasks.size(); ++t) places.push_back({m, t});
  }
  if (key == Key::Pid) return places;
  std::ranges::stable_sort(places, std::ranges::greater(), [&](const Place& place) {
    const Reading& reading = rounds[place.machine].reading;
    const TaskRow& task = reading.tasks[place.task];
    if (key == Key::Memory) return static_cast<double>(task.resident.value_or(0));
    return key == Key::Time ? static_cast<double>(task.cpu_time) : reading.percents[place.task];
  });
  return places;
}

/// `most`: rows of tasks.
std::string round_text(const std::vector<Round>& rounds, const LookOptions& look,
                       std::size_t most) {
  std::string text;
  for (const Round& round : rounds) text += summary(round) + '\n';
  std::vector<Cells> rows{
      {"VM", look.threads ? ">TID" : ">PID", ">UID", "S", ">%CPU", ">TIME", ">RSS", "COMMAND"}};
  for (const Place& place : sorted_tasks(rounds, look.key)) {
    if (rows.size() > most) break;
    const Round& round = rounds[place.machine];
    const TaskRow& task = round.reading.tasks[place.task];
    rows.push_back(
        {printable(round.machine), std::to_string(look.threads ? task.thread : task.process),
         std::to_string(task.uid), std::string(1, task.state),
         fmt::format("{:.1f}", round.reading.percents[place.task]), time_text(task.cpu_time),
         task.resident ? std::to_string(*task.resident >> 10) : "-",
         terminal_text(command_text(task, look.threads), Breaks::Escaped)});
  }
  return text + '\n' + table_text(std::move(rows));
}

Tree round_tree(const std::vector<Round>& rounds, const LookOptions& look) {
  Tree machines = Tree::array();
  for (const Round& round : rounds) {
    const Reading& reading = round.reading;
    const auto percent = [&](std::uint64_t spent) { return percent_of(reading, spent); };
    Tree tree = look_tree(look, Looked{round.machine, reading.tasks, reading.notes});
    Tree& tasks = tree[look.threads ? "threads" : "processes"];
    for (std::size_t i = 0; i < reading.percents.size(); ++i) {
      tasks[i]["cpu_percent"] = reading.percents[i];
    }
    tree["cpus"] = reading.cpus;
    tree["interval_ns"] = reading.apart.count();
    tree["uptime_ns"] = reading.uptime ? Tree(*reading.uptime) : Tree();
    tree["load"] = reading.load ? Tree(*reading.load) : Tree();
    tree["cpu_percent"] = {{"user", percent(reading.spent.user)},
                           {"nice", percent(reading.spent.nice)},
                           {"system", percent(reading.spent.system)},
                           {"interrupts", percent(reading.spent.interrupts)},
                           {"stolen", percent(reading.spent.stolen)},
                           {"idle", idle_percent(reading)}};
    tree["memory_bytes"] = {{"total", reading.memory.total.value_or(0)},
                            {"free", reading.memory.free.value_or(0)}};
    machines.push_back(std::move(tree));
  }
  return Tree{{"top", std::move(machines)}};
}

/// The user's terminal while it shows a screen of ours: keys come one by one, and the screen is as
/// it was when this ends.
class Screen {
 public:
  Screen() : keys_(isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (keys_) {
      termios now = before_;
      now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      now.c_cc[VMIN] = 1;
      now.c_cc[VTIME] = 0;
      (void)tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    write_all("\033[?1049h\033[?25l");
  }
  ~Screen() {
    write_all("\033[?25h\033[?1049l");
    if (keys_) (void)tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool has_keys() const { return keys_; }
  std::size_t lines() const { return size().ws_row; }
  /// Shows as much of the text as there is room for; false when the terminal is gone.
  bool show(std::string_view text) const {
    const winsize room = size();
    std::string out = "\033[H";
    for (unsigned line = 0; line < room.ws_row && !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out +=
          (line == 0 ? "" : "\r\n") + first_characters(text.substr(0, end), room.ws_col) + "\033[K";
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return write_all(out + "\033[J");
  }

 private:
  static winsize size() {
    winsize found{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_row < 2) found = {24, 80, 0, 0};
    return found;
  }
  static std::string first_characters(std::string_view text, std::size_t most) {
    std::size_t end = 0;
    while (end < text.size() && most-- > 0) {
      end += std::max<std::size_t>(character_length(text.substr(end)), 1);
    }
    return std::string(text.substr(0, end));
  }
  static bool write_all(std::string_view text) {
    while (!text.empty()) {
      const auto written = write(STDOUT_FILENO, text.data(), text.size());
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  termios before_{};
  const bool keys_;
};

/// All rounds of `top`.
class Top {
 public:
  Top(const CommandLine& line, const Signals& signals)
      : line_(line), look_(line.look), signals_(signals) {}

  Result<void> run();

 private:
  Result<void> find();
  std::vector<Round> read();
  Result<void> run_batch();
  Result<void> run_screen();
  bool pause(std::chrono::milliseconds time, const Screen* screen);
  bool take_key(char key);

  /// Before the first round, which shows what is spent between two readings.
  static constexpr std::chrono::milliseconds kFirst{500};

  const CommandLine& line_;
  LookOptions look_;
  const Signals& signals_;
  std::vector<Watched> machines_;
  bool failed_ = false;

 public:
  bool failed() const { return failed_; }
};

Result<void> Top::find() {
  Progress::of_stderr().show("looking for machines");
  for (const LookTarget& target : look_targets(line_)) {
    const std::string name = target.name.empty() ? target.text : target.name;
    auto found = look_at_machine(target, line_.types_file);
    if (found) {
      machines_.emplace_back(std::move(*found));
      continue;
    }
    failed_ = true;
    say(fmt::format("{}: {}", printable(name), found.error().message));
  }
  Progress::of_stderr().clear();
  if (!machines_.empty()) return {};
  return fail(ErrorCode::NotFound, "top: there is no machine to look at");
}

/// Of those that are still there. What else goes wrong with one takes it out, with a message.
std::vector<Round> Top::read() {
  std::vector<Round> rounds;
  for (auto each = machines_.begin(); each != machines_.end();) {
    auto reading = each->is_there() ? each->read(look_.threads)
                                    : fail(ErrorCode::MachineGone, "its machine has ended");
    if (!reading) {
      say(fmt::format("{}: {}", printable(each->name()), reading.error().message));
      each = machines_.erase(each);
      continue;
    }
    rounds.push_back({each->name(), std::move(*reading)});
    ++each;
  }
  return rounds;
}

/// False when it is to end.
bool Top::take_key(char key) {
  switch (key) {
    case 'q': return false;
    case 'c': look_.key = Key::Cpu; break;
    case 'm': look_.key = Key::Memory; break;
    case 't': look_.key = Key::Time; break;
    case 'p': look_.key = Key::Pid; break;
    case 'T': look_.threads = !look_.threads; break;
    default: break;
  }
  return true;
}

/// Until the time is over or a key is pressed; false when it is to end.
bool Top::pause(std::chrono::milliseconds time, const Screen* screen) {
  const bool has_keys = screen != nullptr && screen->has_keys();
  pollfd events[] = {{signals_.fd(), POLLIN, 0}, {has_keys ? STDIN_FILENO : -1, POLLIN, 0}};
  const int ready = ::poll(events, 2, static_cast<int>(time.count()));
  if (events[0].revents != 0) return false;
  if (ready <= 0 || events[1].revents == 0) return true;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 && take_key(key);
}

Result<void> Top::run_batch() {
  Sink sink(STDOUT_FILENO);
  if (!line_.output_file.empty()) sink = TRY(Sink::append_to(line_.output_file));
  sink.set_raw_text(line_.settings.raw_text);
  const OutputFormat format = line_.settings.format;
  const std::uint64_t rounds = format == OutputFormat::Json ? 1
                               : look_.rounds               ? *look_.rounds
                                                            : UINT64_MAX;
  for (std::uint64_t n = 0; n < rounds; ++n) {
    if (n != 0 && !pause(look_.interval, nullptr)) break;
    const auto all = read();
    if (all.empty()) break;
    if (format == OutputFormat::Text) {
      sink.write((n == 0 ? "" : "\n") + round_text(all, look_, SIZE_MAX));
    } else {
      sink.write(round_tree(all, look_)
                     .dump(format == OutputFormat::Json ? 2 : -1, ' ', sink.escapes(),
                           Tree::error_handler_t::replace) +
                 "\n");
    }
    if (sink.flush()) continue;
    if (sink.problem().empty()) break;
    return fail(ErrorCode::Io, "cannot write output: " + sink.problem());
  }
  return {};
}

Result<void> Top::run_screen() {
  const Screen screen;
  for (std::uint64_t n = 0; !look_.rounds || n < *look_.rounds; ++n) {
    if (n != 0 && !pause(look_.interval, &screen)) break;
    const auto all = read();
    const std::size_t taken = all.size() + 2;  // a line each, an empty one, the header
    const std::size_t room = screen.lines() > taken ? screen.lines() - taken : 1;
    if (all.empty() || !screen.show(round_text(all, look_, room))) break;
  }
  return {};
}

Result<void> Top::run() {
  TRY(find());
  (void)read();  // to compare the first round with
  if (!pause(std::min(look_.interval, kFirst), nullptr)) return {};
  const bool is_batch = look_.batch || line_.settings.format != OutputFormat::Text ||
                        !line_.output_file.empty() || isatty(STDOUT_FILENO) != 1;
  return is_batch ? run_batch() : run_screen();
}

}  // namespace

int run_top(const CommandLine& line) {
  const auto signals = Signals::block();
  if (!signals) {
    say(signals.error().message);
    return kExitFailure;
  }
  Top top(line, *signals);
  const auto done = top.run();
  if (!done) say(done.error().message);
  return done && !top.failed() ? kExitOk : kExitFailure;
}

}  // namespace ringside::cli
