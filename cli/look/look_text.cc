// In this file, top to bottom: pieces, a row of each list, logs, the whole.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/look/look.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using guest_linux::FileRow;
using guest_linux::LogRecord;
using guest_linux::ModuleRow;
using guest_linux::MountRow;
using guest_linux::SocketAddress;
using guest_linux::SocketHolder;
using guest_linux::SocketRow;
using guest_linux::TaskRow;

std::string safe(std::string_view text) {
  return terminal_text(text, Breaks::Escaped);
}

/// Characters, as far as a terminal shows each in one column.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string address_text(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.is_ipv6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  const std::string port = address.port == 0 ? "*" : std::to_string(address.port);
  return address.is_ipv6 ? fmt::format("[{}]:{}", text, port) : fmt::format("{}:{}", text, port);
}

template <class T>
std::string or_dash(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

Cells header_of(const std::vector<TaskRow>&, const LookOptions& look) {
  Cells cells{">PID"};
  if (look.threads) cells.emplace_back(">TID");
  for (const char* each : {">PPID", ">UID", "S", ">%CPU", ">TIME", ">RSS", "CGROUP", "COMMAND"})
    cells.emplace_back(each);
  return cells;
}

Cells cells_of(const TaskRow& task, const LookOptions& look) {
  Cells cells{std::to_string(task.process)};
  if (look.threads) cells.push_back(std::to_string(task.thread));
  cells.push_back(std::to_string(task.parent));
  cells.push_back(std::to_string(task.uid));
  cells.emplace_back(1, task.state);
  const bool has_age = task.age.value_or(0) != 0;
  cells.push_back(has_age ? fmt::format("{:.1f}", 100.0 * static_cast<double>(task.cpu_time) /
                                                      static_cast<double>(*task.age))
                          : "-");
  cells.push_back(time_text(task.cpu_time));
  cells.push_back(task.resident ? std::to_string(*task.resident >> 10) : "-");
  cells.push_back(task.control_group ? safe(*task.control_group) : "-");
  cells.push_back(safe(command_text(task, look.threads)));
  return cells;
}

Cells header_of(const std::vector<ModuleRow>&, const LookOptions&) {
  return {"MODULE", ">SIZE", ">USED", "BY"};
}

Cells cells_of(const ModuleRow& module, const LookOptions&) {
  std::string by;
  for (const std::string& user : module.used_by) by += (by.empty() ? "" : ",") + safe(user);
  if (module.is_permanent) by += by.empty() ? "[permanent]" : ",[permanent]";
  if (module.state != "live") by += (by.empty() ? "(" : " (") + module.state + ")";
  return {safe(module.name), std::to_string(module.size), or_dash(module.references), by};
}

Cells header_of(const std::vector<MountRow>&, const LookOptions&) {
  return {"DEVICE", "PATH", "TYPE", "OPTIONS"};
}

/// As the kernel writes it into /proc/mounts, so that each cell is a word.
std::string mangled(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\\') {
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return safe(out);
}

Cells cells_of(const MountRow& mount, const LookOptions&) {
  return {mangled(mount.device), mangled(mount.path), mangled(mount.type),
          fmt::format("{}", fmt::join(mount.options, ","))};
}

/// "TCP 10.0.2.15:22->10.0.2.2:51404 (ESTABLISHED)", "/run/x.sock (LISTEN)".
std::string socket_text(const SocketRow& socket) {
  const std::string state =
      socket.state.empty() ? std::string() : fmt::format(" ({})", socket.state);
  if (socket.protocol == "unix") {
    return fmt::format("unix {} {}{}", socket.type, safe(socket.path.empty() ? "-" : socket.path),
                       state);
  }
  const bool has_peer = socket.remote.port != 0;
  return fmt::format("{} {}{}{}", socket.protocol, address_text(socket.local),
                     has_peer ? "->" + address_text(socket.remote) : "", state);
}

Cells header_of(const std::vector<FileRow>&, const LookOptions&) {
  return {"COMMAND", ">PID", ">UID", ">FD", "TYPE", ">DEVICE", ">SIZE/OFF", ">NODE", "NAME"};
}

Cells cells_of(const FileRow& file, const LookOptions&) {
  std::string descriptor(file.role);
  if (file.descriptor) descriptor = fmt::format("{}{}", *file.descriptor, file.access);
  const std::string place =
      file.size ? std::to_string(*file.size) : fmt::format("0t{}", file.position);
  const std::string name = file.socket
                               ? fmt::format("{} {}", safe(file.path), socket_text(*file.socket))
                               : safe(file.path);
  return {safe(file.command),
          std::to_string(file.process),
          std::to_string(file.uid),
          descriptor,
          std::string(file.type),
          fmt::format("{},{}", file.major, file.minor),
          place,
          std::to_string(file.inode),
          name};
}

Cells header_of_sockets() {
  return {"PROTO", ">RECV-Q", ">SEND-Q", "LOCAL",  "REMOTE",
          "STATE", ">UID",    ">INODE",  ">NETNS", "PROCESS"};
}

/// "sshd[312]:3,sshd[340]:4".
std::string holders_text(const SocketTable& table, const SocketRow& socket) {
  constexpr std::size_t kShown = 4;
  const auto found = table.holders.by_socket.find(socket.socket.raw());
  if (found == table.holders.by_socket.end()) return "-";
  std::string text;
  for (std::size_t i = 0; i < std::min(found->second.size(), kShown); ++i) {
    const SocketHolder& holder = found->second[i];
    text += fmt::format("{}{}[{}]:{}", i == 0 ? "" : ",", safe(holder.command), holder.process,
                        holder.descriptor);
  }
  if (found->second.size() > kShown) {
    text += fmt::format(" and {} more", found->second.size() - kShown);
  }
  return text;
}

Cells cells_of(const SocketTable& table, const SocketRow& socket) {
  const bool is_unix = socket.protocol == "unix";
  const std::string name = socket.path.empty() ? "-" : safe(socket.path);
  const std::string peer = socket.peer_inode != 0 ? fmt::format("->{}", socket.peer_inode) : "-";
  return {is_unix ? fmt::format("unix/{}", socket.type) : std::string(socket.protocol),
          std::to_string(socket.receive_queue),
          std::to_string(socket.send_queue),
          is_unix ? name : address_text(socket.local),
          is_unix ? peer : address_text(socket.remote),
          socket.state.empty() ? "-" : std::string(socket.state),
          or_dash(socket.uid),
          socket.inode != 0 ? std::to_string(socket.inode) : "-",
          socket.is_first_name_space ? "-" : std::to_string(socket.name_space),
          holders_text(table, socket)};
}

template <class Row>
void add_rows(std::vector<Cells>& cells, const std::vector<Row>& rows, const LookOptions& look) {
  if (cells.empty()) cells.push_back(header_of(rows, look));
  for (const Row& row : rows) cells.push_back(cells_of(row, look));
}

void add_rows(std::vector<Cells>& cells, const SocketTable& table, const LookOptions&) {
  if (cells.empty()) cells.push_back(header_of_sockets());
  for (const SocketRow& row : table.rows) cells.push_back(cells_of(table, row));
}

/// As dmesg prints it: every line of a record has its time.
std::string log_text(const std::vector<LogRecord>& records, const std::string& prefix) {
  std::string text;
  for (const LogRecord& record : records) {
    std::string_view rest = record.text;
    do {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      text += fmt::format("{}[{:5}.{:06}] {}\n", prefix, record.time / 1'000'000'000,
                          record.time / 1000 % 1'000'000, terminal_text(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    } while (!rest.empty());
  }
  return text;
}

/// A column that says nothing is left out.
void drop_column(std::vector<Cells>& rows, std::string_view header, std::string_view nothing) {
  if (rows.empty()) return;
  const auto found = std::ranges::find(rows.front(), header);
  const auto at = found - rows.front().begin();
  if (found == rows.front().end()) return;
  const auto says_something = [&](const Cells& row) {
    return row[static_cast<std::size_t>(at)] != nothing;
  };
  if (std::any_of(rows.begin() + 1, rows.end(), says_something)) return;
  for (Cells& row : rows) row.erase(row.begin() + at);
}

}  // namespace

std::string time_text(std::uint64_t nanoseconds) {
  const std::uint64_t seconds = nanoseconds / 1'000'000'000;
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds >= 86'400 ? fmt::format("{}-{}", seconds / 86'400, clock) : clock;
}

std::string command_text(const TaskRow& task, bool threads) {
  // A thread that has a name of its own shows it.
  if (task.command.empty() || (threads && task.thread != task.process))
    return "[" + task.name + "]";
  std::string text = task.command;
  std::ranges::replace(text, '\0', ' ');
  return text;
}

std::string table_text(std::vector<Cells> rows) {
  if (rows.empty()) return {};
  std::vector<bool> right;
  for (std::string& header : rows.front()) {
    right.push_back(header.starts_with('>'));
    if (right.back()) header.erase(0, 1);
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      const bool is_last = i + 1 == row.size();
      if (right[i]) text += blanks;
      text += row[i];
      if (!right[i] && !is_last) text += blanks;
      if (!is_last) text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);  // of a last cell that is empty
    text += '\n';
  }
  return text;
}

std::string look_text(const LookOptions& look, const std::vector<Looked>& all,
                      bool names_machines) {
  std::string text;
  std::vector<Cells> rows;
  for (const Looked& each : all) {
    if (const auto* const records = std::get_if<std::vector<LogRecord>>(&each.rows)) {
      text += log_text(*records, names_machines ? printable(each.machine) + ": " : "");
      continue;
    }
    const std::size_t before = rows.size();
    std::visit(
        [&](const auto& list) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(list)>, std::vector<LogRecord>>) {
            add_rows(rows, list, look);
          }
        },
        each.rows);
    if (!names_machines) continue;
    if (before == 0) rows.front().insert(rows.front().begin(), "VM");
    for (std::size_t i = std::max<std::size_t>(before, 1); i < rows.size(); ++i) {
      rows[i].insert(rows[i].begin(), printable(each.machine));
    }
  }
  drop_column(rows, "CGROUP", "/");
  drop_column(rows, ">NETNS", "-");
  return text + table_text(std::move(rows));
}

}  // namespace ringside::cli
