#include <arpa/inet.h>

#include "cli/look/look.h"

namespace ringside::cli {
namespace {

using guest_linux::FileRow;
using guest_linux::LogRecord;
using guest_linux::ModuleRow;
using guest_linux::MountRow;
using guest_linux::SocketAddress;
using guest_linux::SocketRow;
using guest_linux::TaskRow;

template <class T>
Tree or_null(const std::optional<T>& value) {
  return value ? Tree(*value) : Tree();
}

/// The words of a command line, NULs between them.
Tree words_of(std::string_view command) {
  Tree words = Tree::array();
  while (!command.empty()) {
    const std::size_t end = std::min(command.find('\0'), command.size());
    words.push_back(std::string(command.substr(0, end)));
    command.remove_prefix(std::min(end + 1, command.size()));
  }
  return words;
}

Tree tree_of(const TaskRow& task, const LookOptions& look) {
  Tree tree = {{"pid", task.process}};
  if (look.threads) tree["tid"] = task.thread;
  tree["ppid"] = task.parent;
  tree["uid"] = task.uid;
  tree["state"] = std::string(1, task.state);
  tree["nice"] = task.nice;
  tree["threads"] = task.threads;
  tree["last_cpu"] = task.last_cpu;
  tree["cpu_ns"] = task.cpu_time;
  tree["started_ns"] = task.started;
  tree["age_ns"] = or_null(task.age);
  tree["resident_bytes"] = or_null(task.resident);
  tree["cgroup"] = or_null(task.control_group);
  tree["name"] = task.name;
  tree["kernel_thread"] = task.is_kernel_thread;
  tree["command"] = words_of(task.command);
  return tree;
}

Tree tree_of(const LogRecord& record, const LookOptions&) {
  return {{"sequence", record.sequence},
          {"time_ns", record.time},
          {"level", record.level},
          {"facility", record.facility},
          {"text", record.text}};
}

Tree tree_of(const ModuleRow& module, const LookOptions&) {
  return {{"name", module.name},
          {"size", module.size},
          {"references", or_null(module.references)},
          {"used_by", module.used_by},
          {"permanent", module.is_permanent},
          {"state", module.state},
          {"address", module.address.raw()}};
}

Tree tree_of(const MountRow& mount, const LookOptions&) {
  return {{"device", mount.device},
          {"path", mount.path},
          {"type", mount.type},
          {"options", mount.options}};
}

Tree tree_of(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.is_ipv6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return {{"address", text}, {"port", address.port}};
}

Tree tree_of(const SocketRow& socket) {
  Tree tree = {{"protocol", socket.protocol}};
  if (socket.protocol == "unix") {
    tree["type"] = socket.type;
    tree["path"] = socket.path.empty() ? Tree() : Tree(socket.path);
    tree["peer_inode"] = socket.peer_inode != 0 ? Tree(socket.peer_inode) : Tree();
  } else {
    tree["local"] = tree_of(socket.local);
    tree["remote"] = tree_of(socket.remote);
  }
  tree["state"] = socket.state.empty() ? Tree() : Tree(socket.state);
  tree["receive_queue"] = socket.receive_queue;
  tree["send_queue"] = socket.send_queue;
  tree["uid"] = or_null(socket.uid);
  tree["inode"] = socket.inode != 0 ? Tree(socket.inode) : Tree();
  tree["net_namespace"] = socket.name_space;
  tree["first_net_namespace"] = socket.is_first_name_space;
  return tree;
}

Tree tree_of(const FileRow& file, const LookOptions&) {
  Tree tree = {{"pid", file.process}, {"name", file.command}, {"uid", file.uid}};
  tree["fd"] = or_null(file.descriptor);
  tree["role"] = file.role.empty() ? Tree() : Tree(file.role);
  tree["access"] = file.access == ' ' ? Tree() : Tree(std::string(1, file.access));
  tree["type"] = file.type;
  tree["device"] = {{"major", file.major}, {"minor", file.minor}};
  tree["inode"] = file.inode;
  tree["size"] = or_null(file.size);
  tree["position"] = file.position;
  tree["path"] = file.path;
  tree["socket"] = file.socket ? tree_of(*file.socket) : Tree();
  return tree;
}

template <class Row>
Tree list_of(const std::vector<Row>& rows, const LookOptions& look) {
  Tree list = Tree::array();
  for (const Row& row : rows) list.push_back(tree_of(row, look));
  return list;
}

Tree list_of(const SocketTable& table, const LookOptions&) {
  Tree list = Tree::array();
  for (const SocketRow& row : table.rows) {
    Tree holders = Tree::array();
    const auto found = table.holders.by_socket.find(row.socket.raw());
    if (found != table.holders.by_socket.end()) {
      for (const auto& holder : found->second) {
        holders.push_back(
            {{"pid", holder.process}, {"name", holder.command}, {"fd", holder.descriptor}});
      }
    }
    Tree tree = tree_of(row);
    tree["processes"] = std::move(holders);
    list.push_back(std::move(tree));
  }
  return list;
}

const char* rows_name(LookOptions::List list, bool threads) {
  using List = LookOptions::List;
  switch (list) {
    case List::Top:
    case List::Processes: return threads ? "threads" : "processes";
    case List::Log: return "records";
    case List::Modules: return "modules";
    case List::Mounts: return "mounts";
    case List::Files: return "files";
    case List::Sockets: return "sockets";
  }
  return "rows";
}

}  // namespace

Tree look_tree(const LookOptions& look, const Looked& looked) {
  Tree tree = {{"machine", looked.machine}};
  tree[rows_name(look.list, look.threads)] =
      std::visit([&](const auto& rows) { return list_of(rows, look); }, looked.rows);
  tree["notes"] = looked.notes;
  return tree;
}

}  // namespace ringside::cli
