// Lists of guests as they are printed: columns, names that try to be more than names, JSON.
#include "cli/look/look.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

using guest_linux::LogRecord;
using guest_linux::ModuleRow;
using guest_linux::MountRow;
using guest_linux::SocketRow;
using guest_linux::TaskRow;
using List = LookOptions::List;

TaskRow task(std::int64_t pid, std::string name, std::string command) {
  TaskRow row;
  row.process = row.thread = pid;
  row.parent = 1;
  row.state = 'S';
  row.cpu_time = 3'723'000'000'000;
  row.age = 7'446'000'000'000;
  row.resident = 12 << 10;
  row.name = std::move(name);
  row.command = std::move(command);
  row.control_group = "/";
  return row;
}

TEST(Look, ProcessesAreAlignedAndAGroupThatSaysNothingIsLeftOut) {
  const LookOptions look;
  const Looked one{
      "web1",
      std::vector{task(7, "sh", std::string("sh\0-c\0true", 10)), task(100, "kworker/0:1", "")},
      {}};

  EXPECT_EQ(look_text(look, {one}, false),
            "PID  PPID  UID  S  %CPU      TIME  RSS  COMMAND\n"
            "  7     1    0  S  50.0  01:02:03   12  sh -c true\n"
            "100     1    0  S  50.0  01:02:03   12  [kworker/0:1]\n");
}

TEST(Look, SeveralMachinesHaveAColumnForTheirNames) {
  const LookOptions look;
  auto grouped = task(9, "a", "a");
  grouped.control_group = "/x";
  const Looked one{"web1", std::vector{task(7, "sh", "sh")}, {}},
      two{"db\x1b[2J", std::vector{grouped}, {}};

  EXPECT_EQ(look_text(look, {one, two}, true),
            "VM      PID  PPID  UID  S  %CPU      TIME  RSS  CGROUP  COMMAND\n"
            "web1      7     1    0  S  50.0  01:02:03   12  /       sh\n"
            "db?[2J    9     1    0  S  50.0  01:02:03   12  /x      a\n");
}

TEST(Look, ANameCannotMakeARowOfItsOwnNorControlATerminal) {
  const LookOptions look;
  const Looked one{"web1", std::vector{task(7, "x", "a\n666 root\x1b[31m\t\xc2\x9b\xff")}, {}};

  const std::string text = look_text(look, {one}, false);

  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_NE(text.find(R"(a\n666 root\033[31m\t\302\233\377)"), text.npos) << text;
}

TEST(Look, EachLineOfARecordOfTheLogHasItsTimeAndNoEscapes) {
  LookOptions look;
  look.list = List::Log;
  const Looked one{"web1",
                   std::vector{LogRecord{1, 1, 5'000'123'000, 6, 0, "two\nlines\x1b[2J"},
                               LogRecord{2, 2, 0, 3, 1, ""}},
                   {}};

  EXPECT_EQ(look_text(look, {one}, false),
            "[    5.000123] two\n"
            "[    5.000123] lines\\033[2J\n"
            "[    0.000000] \n");
  EXPECT_EQ(look_text(look, {one}, true).substr(0, 7), "web1: [");
}

TEST(Look, CellsOfMountsAreWords) {
  LookOptions look;
  look.list = List::Mounts;
  const Looked one{"web1", std::vector{MountRow{"a b", "/x\ny", "tmpfs", {"ro", "nosuid"}}}, {}};

  EXPECT_EQ(look_text(look, {one}, false),
            "DEVICE  PATH     TYPE   OPTIONS\n"
            "a\\040b  /x\\012y  tmpfs  ro,nosuid\n");
}

TEST(Look, AModuleNamesItsUsersAndLeavesNoBlanksBehind) {
  LookOptions look;
  look.list = List::Modules;
  const Looked one{"web1",
                   std::vector{ModuleRow{"virtio", 4096, 2, {"net", "blk"}, true, "live", {}},
                               ModuleRow{"loop", 32768, 0, {}, false, "loading", {}},
                               ModuleRow{"x", 1, {}, {}, false, "live", {}}},
                   {}};

  EXPECT_EQ(look_text(look, {one}, false),
            "MODULE   SIZE  USED  BY\n"
            "virtio   4096     2  net,blk,[permanent]\n"
            "loop    32768     0  (loading)\n"
            "x           1     -\n");
}

SocketTable sockets() {
  SocketTable table;
  SocketRow tcp;
  tcp.socket = GuestVirt(1);
  tcp.protocol = "tcp6";
  tcp.state = "LISTEN";
  tcp.local.is_ipv6 = true;
  tcp.local.bytes[15] = 1;
  tcp.local.port = 80;
  tcp.remote.is_ipv6 = true;
  tcp.uid = 33;
  tcp.inode = 77;
  SocketRow unix;
  unix.socket = GuestVirt(2);
  unix.protocol = "unix";
  unix.type = "stream";
  unix.path = "@a\nb";
  table.rows = {tcp, unix};
  table.holders.by_socket[1] = {
      {5, "ng\x1bx", 3}, {6, "b", 3}, {7, "c", 3}, {8, "d", 3}, {9, "e", 3}};
  return table;
}

TEST(Look, SocketsHaveTheirProcesses) {
  LookOptions look;
  look.list = List::Sockets;

  EXPECT_EQ(look_text(look, {{"web1", sockets(), {}}}, false),
            "PROTO        RECV-Q  SEND-Q  LOCAL     REMOTE  STATE   UID  INODE  PROCESS\n"
            "tcp6              0       0  [::1]:80  [::]:*  LISTEN   33     77  "
            "ng\\033x[5]:3,b[6]:3,c[7]:3,d[8]:3 and 1 more\n"
            "unix/stream       0       0  @a\\nb     -       -         -      -  -\n");
  const Tree tree = look_tree(look, {"web1", sockets(), {"cut"}});
  EXPECT_EQ(tree["sockets"][0]["local"], (Tree{{"address", "::1"}, {"port", 80}}));
  EXPECT_EQ(tree["sockets"][0]["processes"].size(), 5u);
  EXPECT_EQ(tree["sockets"][1]["inode"], Tree());
  EXPECT_EQ(tree["notes"], Tree::array({"cut"}));
}

TEST(Look, JsonHasTheWordsOfACommandAndNullForWhatIsNotThere) {
  LookOptions look;
  look.threads = true;
  auto row = task(7, "sh", std::string("sh\0\0x", 5));
  row.resident.reset();

  const Tree tree = look_tree(look, {"web1", std::vector{row}, {}});

  const Tree& first = tree["threads"][0];
  EXPECT_EQ(first["command"], Tree::array({"sh", "", "x"}));
  EXPECT_EQ(first["resident_bytes"], Tree());
  EXPECT_EQ(first["tid"], 7);
  EXPECT_EQ(tree["machine"], "web1");
}

TEST(Look, TimesAreThoseOfPs) {
  EXPECT_EQ(time_text(0), "00:00:00");
  EXPECT_EQ(time_text(90'061'000'000'000), "1-01:01:01");
}

}  // namespace
}  // namespace ringside::cli
