// The commands `ps`, `dmesg`, `modules`, `mounts`, `lsof`, `netstat` and `top`: what guests have,
// from outside, as text or JSON. Nothing enters the guests. Does not: read the guests' structures
// (vmm/linux/listing).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/options/options.h"
#include "cli/output/structured_writer.h"
#include "vmm/base/result.h"
#include "vmm/linux/health/kernel_log.h"
#include "vmm/linux/listing/file_list.h"
#include "vmm/linux/listing/module_list.h"
#include "vmm/linux/listing/mount_list.h"
#include "vmm/linux/listing/socket_list.h"
#include "vmm/linux/listing/task_list.h"

namespace ringside::cli {

/// Runs the one that the command line asks for. Returns the exit status: 1 if one of the machines
/// could not be looked at. Errors and notes are printed on stderr.
int run_look(const CommandLine& line);

struct SocketTable {
  std::vector<guest_linux::SocketRow> rows;
  guest_linux::SocketHolders holders;
};
using Rows = std::variant<std::vector<guest_linux::TaskRow>, std::vector<guest_linux::LogRecord>,
                          std::vector<guest_linux::ModuleRow>, std::vector<guest_linux::MountRow>,
                          std::vector<guest_linux::FileRow>, SocketTable>;

/// One machine's list.
struct Looked {
  std::string machine;
  Rows rows;
  std::vector<std::string> notes;  // what is missing, a line each
};

class LookedAt;
/// Reads one of the lists, but not top's.
Result<Looked> read_list(const LookOptions& look, const LookedAt& machine);

/// A table for the operator, with a column VM if `names_machines`; a log is lines. Text of guests
/// is escaped.
std::string look_text(const LookOptions& look, const std::vector<Looked>& all, bool names_machines);
/// One machine's list for programs; docs/commands.md describes the fields.
Tree look_tree(const LookOptions& look, const Looked& looked);

// Pieces that `top` has as well.

using Cells = std::vector<std::string>;
/// Columns as wide as their widest cell. Those whose header begins with '>' stand on the right; the
/// last one is not padded. The first row is the header.
std::string table_text(std::vector<Cells> rows);
/// The command line of a process, or its name in brackets where it has none; "-T" shows threads'
/// own names.
std::string command_text(const guest_linux::TaskRow& task, bool threads);
/// "1-02:03:04", "02:03:04".
std::string time_text(std::uint64_t nanoseconds);

/// Runs `top`: until it is ended, or for its number of rounds.
int run_top(const CommandLine& line);

}  // namespace ringside::cli
