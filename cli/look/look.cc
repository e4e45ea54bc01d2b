// In this file, top to bottom: one machine's list, printing, following a log, the command.
#include "cli/look/look.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>

#include "cli/look/looked_at.h"
#include "cli/messages/messages.h"
#include "cli/messages/progress.h"
#include "cli/messages/signals.h"
#include "cli/options/look_options.h"
#include "cli/output/sink.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using guest_linux::KernelLog;
using guest_linux::ListedGuest;
using guest_linux::LogRecord;
using List = LookOptions::List;
using Clock = std::chrono::steady_clock;

template <class Row>
Result<Looked> looked_from(Result<guest_linux::Listing<Row>> listing) {
  if (!listing) return tl::make_unexpected(std::move(listing).error());
  return Looked{{}, std::move(listing->rows), std::move(listing->notes)};
}

Result<Looked> look_at_sockets(const ListedGuest& guest) {
  auto sockets = TRY(guest_linux::list_sockets(guest));
  auto holders = TRY(guest_linux::find_socket_holders(guest));
  Looked looked;
  looked.notes = std::move(sockets.notes);
  looked.notes.insert(looked.notes.end(), holders.notes.begin(), holders.notes.end());
  looked.rows = SocketTable{std::move(sockets.rows), std::move(holders)};
  return looked;
}

void keep_levels(std::vector<LogRecord>& records, std::uint8_t levels) {
  std::erase_if(records,
                [&](const LogRecord& each) { return (levels >> (each.level & 7) & 1) == 0; });
}

Result<Looked> look_at_log(const LookOptions& look, const LookedAt& machine) {
  KernelLog log = TRY(KernelLog::open(machine.view()));
  auto records = TRY(log.last(SIZE_MAX));
  keep_levels(records, look.levels);
  return Looked{{}, std::move(records), {}};
}

}  // namespace

Result<Looked> read_list(const LookOptions& look, const LookedAt& machine) {
  const ListedGuest& guest = machine.guest();
  const auto read = [&]() -> Result<Looked> {
    switch (look.list) {
      case List::Processes:
        return looked_from(
            guest_linux::list_tasks(guest, look.threads ? guest_linux::TaskDetail::Threads
                                                        : guest_linux::TaskDetail::Processes));
      case List::Log: return look_at_log(look, machine);
      case List::Modules: return looked_from(guest_linux::list_loaded_modules(guest));
      case List::Mounts: return looked_from(guest_linux::list_mounts(guest));
      case List::Files: return looked_from(guest_linux::list_files(guest, look.process));
      case List::Sockets: return look_at_sockets(guest);
      case List::Top: break;  // run_top()
    }
    return fail(ErrorCode::Unsupported, "no such list");
  };
  Looked looked = TRY(read());
  looked.machine = machine.name();
  return looked;
}

namespace {

void say_of(const std::string& machine, std::string_view text) {
  say(fmt::format("{}: {}", printable(machine), text));
}

/// Text, or a document of JSON, or lines of it.
class Printer {
 public:
  Printer(const CommandLine& line, Sink sink, bool names_machines)
      : line_(line), sink_(std::move(sink)), names_machines_(names_machines) {
    sink_.set_raw_text(line.settings.raw_text);
  }

  /// False once nobody reads it.
  bool print(const std::vector<Looked>& all) {
    const std::string name(name_of(line_.look.list));
    if (line_.settings.format == OutputFormat::Text) {
      sink_.write(look_text(line_.look, all, names_machines_));
    } else if (line_.settings.format == OutputFormat::JsonLines) {
      for (const Looked& each : all) write(Tree{{name, look_tree(line_.look, each)}}, -1);
    } else {
      Tree machines = Tree::array();
      for (const Looked& each : all) machines.push_back(look_tree(line_.look, each));
      write(Tree{{name, std::move(machines)}}, 2);
    }
    return sink_.flush();
  }
  const std::string& problem() const { return sink_.problem(); }

 private:
  void write(const Tree& tree, int indent) {
    // A terminal gets JSON's own spelling of control characters, not the sink's.
    const bool ascii = sink_.escapes();
    sink_.write(tree.dump(indent, ' ', ascii, Tree::error_handler_t::replace) + "\n");
  }

  const CommandLine& line_;
  Sink sink_;
  bool names_machines_;
};

/// The machines of the command line that can be looked at; `failed` tells of others.
std::vector<std::unique_ptr<LookedAt>> find_machines(const CommandLine& line, bool& failed) {
  std::vector<std::unique_ptr<LookedAt>> machines;
  const auto take = [&](const std::string& name, Result<std::unique_ptr<LookedAt>> found) {
    if (found) {
      machines.push_back(std::move(*found));
      return;
    }
    failed = true;
    say(name.empty() ? found.error().message
                     : fmt::format("{}: {}", printable(name), found.error().message));
  };
  if (!line.core_file.empty()) {
    take({}, look_at_saved(line));
    return machines;
  }
  Progress::of_stderr().show("looking for machines");
  const auto targets = look_targets(line);
  if (targets.empty()) say("no virtual machine that we may see runs on this host");
  for (const LookTarget& target : targets) {
    const std::string name = target.name.empty() ? target.text : target.name;
    Progress::of_stderr().show("looking at " + name);
    take(targets.size() > 1 || line.arguments.empty() ? name : std::string(),
         look_at_machine(target, line.types_file));
  }
  Progress::of_stderr().clear();
  return machines;
}

struct FollowedLog {
  const LookedAt* machine;
  KernelLog log;
};

/// Prints what is new in these logs; whether anybody still reads it. Logs that end are taken out.
Result<bool> print_news(const LookOptions& look, std::vector<FollowedLog>& logs, Printer& printer) {
  std::vector<Looked> news;
  for (auto each = logs.begin(); each != logs.end();) {
    const std::string& name = each->machine->name();
    if (!each->machine->is_there()) {
      say_of(name, "its machine has ended");
      each = logs.erase(each);
      continue;
    }
    each->machine->forget();
    auto taken = each->log.take_news();
    if (!taken) {
      say_of(name, taken.error().message + ": the guest may have started another kernel");
      each = logs.erase(each);
      continue;
    }
    if (taken->lost != 0)
      say_of(name, fmt::format("{} records were overwritten unread", taken->lost));
    keep_levels(taken->records, look.levels);
    if (!taken->records.empty()) news.push_back({name, std::move(taken->records), {}});
    ++each;
  }
  if (news.empty() || printer.print(news)) return true;
  if (!printer.problem().empty()) {
    return fail(ErrorCode::Io, "cannot write output: " + printer.problem());
  }
  return false;
}

/// Until it is interrupted, its reader goes, or no machine is left.
Result<void> follow_logs(const LookOptions& look,
                         const std::vector<std::unique_ptr<LookedAt>>& machines, Printer& printer,
                         const Signals& signals) {
  constexpr int kPauseMs = 200;
  std::vector<FollowedLog> logs;
  for (const auto& machine : machines) {
    auto log = KernelLog::open(machine->view());
    if (log)
      logs.push_back({machine.get(), *log});
    else
      say_of(machine->name(), log.error().message);
  }
  pollfd order{signals.fd(), POLLIN, 0};
  do {
    if (!TRY(print_news(look, logs, printer))) return {};
  } while (!logs.empty() && poll(&order, 1, kPauseMs) == 0);
  return {};
}

Result<bool> look(const CommandLine& line) {
  std::unique_ptr<Signals> signals;
  if (line.look.follow) signals = std::make_unique<Signals>(TRY(Signals::block()));
  const auto began = Clock::now();
  const auto tell_time = [&](std::string_view what) {
    if (!line.settings.debug) return;
    const std::chrono::duration<double, std::milli> spent = Clock::now() - began;
    say(fmt::format("{} after {:.1f} ms", what, spent.count()));
  };
  bool failed = false;
  const auto machines = find_machines(line, failed);
  tell_time("kernels found");
  Sink sink(STDOUT_FILENO);
  if (!line.output_file.empty()) sink = TRY(Sink::append_to(line.output_file));
  const bool names_machines =
      line.arguments.size() > 1 || (line.arguments.empty() && line.core_file.empty());
  Printer printer(line, std::move(sink), names_machines);
  if (line.look.follow) {
    TRY(follow_logs(line.look, machines, printer, *signals));
    return !failed;
  }
  std::vector<Looked> all;
  for (const auto& machine : machines) {
    auto looked = read_list(line.look, *machine);
    if (!looked) {
      failed = true;
      names_machines ? say_of(machine->name(), looked.error().message)
                     : say(looked.error().message);
      continue;
    }
    for (const std::string& note : looked->notes) say_of(machine->name(), note);
    all.push_back(std::move(*looked));
  }
  tell_time("lists read");
  if (!machines.empty() && all.empty()) return false;
  if (!printer.print(all) && !printer.problem().empty()) {
    return fail(ErrorCode::Io, "cannot write output: " + printer.problem());
  }
  tell_time("printed");
  return !failed;
}

}  // namespace

int run_look(const CommandLine& line) {
  if (line.look.list == List::Top) return run_top(line);
  const auto done = look(line);
  if (!done) say(done.error().message);
  return done && *done ? kExitOk : kExitFailure;
}

}  // namespace ringside::cli
