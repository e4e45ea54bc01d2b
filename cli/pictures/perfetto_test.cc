// A trace's records as a file for Perfetto. tests/perfetto_trace.py reads such files by
// docs/perfetto.proto, and checks them by more rules.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>

#include "cli/pictures/perfetto_trace.h"
#include "cli/pictures/pictures.h"
#include "cli/pictures/stack_counts.h"

namespace ringside::cli {
namespace {

using protozero::pbf_reader;
using testing::ElementsAre;
using testing::IsEmpty;

/// A file's events as lines in the order of time: "web: dd 7/dd 8: begin read at 10 value=3". The
/// track is a process with a thread, or a name below its machine's.
class DecodedFile {
 public:
  explicit DecodedFile(const std::string& file) {
    pbf_reader trace(file);
    while (trace.next(1)) take_packet(trace.get_message());
    std::ranges::stable_sort(events_, {}, &std::pair<std::uint64_t, std::string>::first);
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const auto& [time, line] : events_) all.push_back(line);
    return all;
  }
  std::size_t packets() const { return packets_; }

 private:
  void take_packet(pbf_reader packet) {
    ++packets_;
    std::uint64_t time = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8: time = packet.get_uint64(); break;
        case 11: take_event(time, packet.get_message()); break;
        case 12: take_names(packet.get_message()); break;
        case 60: take_track(packet.get_message()); break;
        default: packet.skip();
      }
    }
  }
  void take_names(pbf_reader interned) {
    while (interned.next()) {
      auto& names = names_[interned.tag()];
      pbf_reader entry = interned.get_message();
      entry.next(1);
      const std::uint64_t number = entry.get_uint64();
      entry.next(2);
      EXPECT_TRUE(names.emplace(number, entry.get_string()).second);
    }
  }
  static std::string described(pbf_reader message, std::uint32_t number, std::uint32_t name) {
    std::string text, id;
    while (message.next()) {
      if (message.tag() == number) {
        id = std::to_string(message.get_int32());
      } else if (message.tag() == name) {
        text = message.get_string();
      } else {
        message.skip();
      }
    }
    return text + ' ' + id;
  }
  void take_track(pbf_reader track) {
    std::uint64_t uuid = 0, parent = 0;
    std::string name;
    while (track.next()) {
      switch (track.tag()) {
        case 1: uuid = track.get_uint64(); break;
        case 2: name = track.get_string(); break;
        case 3: name = described(track.get_message(), 1, 6); break;
        case 4: name = described(track.get_message(), 2, 5); break;
        case 5: parent = track.get_uint64(); break;
        default: track.skip();
      }
    }
    EXPECT_TRUE(parent == 0 || tracks_.contains(parent));
    tracks_[uuid] = parent == 0 ? name : tracks_[parent] + '/' + name;
  }
  std::string note(pbf_reader note) {
    std::string text;
    while (note.next()) {
      switch (note.tag()) {
        case 1: text = names_[3].at(note.get_uint64()); break;
        case 3: text += fmt::format("={}u", note.get_uint64()); break;
        case 4: text += fmt::format("={}", note.get_int64()); break;
        case 5: text += fmt::format("={}", note.get_double()); break;
        case 6: text += '=' + note.get_string(); break;
        default: note.skip();
      }
    }
    return text;
  }
  void take_event(std::uint64_t time, pbf_reader event) {
    constexpr const char* kTypes[] = {"?", "begin", "end", "instant", "counter"};
    std::string track, type, name, notes;
    while (event.next()) {
      switch (event.tag()) {
        case 4: notes += ' ' + note(event.get_message()); break;
        case 9: type = kTypes[event.get_enum()]; break;
        case 10: name = ' ' + names_[2].at(event.get_uint64()); break;
        case 11: track = tracks_.at(event.get_uint64()); break;
        case 23: name = ' ' + event.get_string(); break;
        case 30: notes += fmt::format(" {}", event.get_int64()); break;
        default: event.skip();
      }
    }
    events_.emplace_back(time, fmt::format("{}: {}{} at {}{}", track, type, name, time, notes));
  }

  std::map<std::uint32_t, std::map<std::uint64_t, std::string>> names_;
  std::map<std::uint64_t, std::string> tracks_;
  std::vector<std::pair<std::uint64_t, std::string>> events_;
  std::size_t packets_ = 0;
};

struct From {
  std::string machine = "web";
  unsigned pid = 7, tid = 7, cpu = 0;
  std::string execname = "dd";
};

Tree firing(const std::string& probe, std::uint64_t time, const From& from = {},
            Tree output = Tree::array()) {
  const auto at = [&](int n) {
    std::size_t begin = 0;
    for (int i = 0; i < n; ++i) begin = probe.find(':', begin) + 1;
    return probe.substr(begin, probe.find(':', begin) - begin);
  };
  return {{"timestamp", time},
          {"machine", from.machine},
          {"cpu", from.cpu},
          {"provider", at(0)},
          {"module", at(1)},
          {"function", at(2)},
          {"name", at(3)},
          {"pid", from.pid},
          {"tid", from.tid},
          {"execname", from.execname},
          {"output", std::move(output)}};
}

Tree value_items(std::initializer_list<Tree> values) {
  Tree items = Tree::array();
  for (const Tree& each : values) items.push_back({{"type", "long"}, {"value", each}});
  return items;
}

/// The events of the records, or the error.
std::vector<std::string> events_of(const std::vector<Tree>& records,
                                   std::vector<std::string>* notes = nullptr) {
  const auto picture = make_picture(OutputFormat::Perfetto);
  std::string file;
  for (const Tree& each : records) {
    if (const auto taken = picture->add(each); !taken) return {taken.error().message};
    file += picture->take_text();
  }
  auto drawn = picture->draw();
  if (!drawn) return {drawn.error().message};
  if (notes != nullptr) *notes = drawn->notes;
  return DecodedFile(file + drawn->text).lines();
}

const std::string kEntry = "fbt:vmlinux:vfs_read:entry", kReturn = "fbt:vmlinux:vfs_read:return",
                  kSyscall = "syscall::read:entry", kSyscallReturn = "syscall::read:return";

TEST(Perfetto, MakesASliceOfEntryAndReturn) {
  EXPECT_THAT(
      events_of({firing(kSyscall, 10, {}, value_items({3, "a"})), firing(kEntry, 20),
                 firing(kReturn, 30, {}, value_items({-1})),
                 firing(kSyscallReturn, 40, {}, value_items({UINT64_MAX, 0.5}))}),
      ElementsAre(
          "web: dd 7/dd 7: begin read at 10 value=3 value 2=a",
          "web: dd 7/dd 7: begin vfs_read at 20", "web: dd 7/dd 7: end at 30 return value=-1",
          "web: dd 7/dd 7: end at 40 return value=18446744073709551615u return value 2=0.5"));
}

TEST(Perfetto, PairsOtherBeginningsAndEndsByTheirNames) {
  EXPECT_THAT(
      events_of({firing("postgresql9:postgres:exec:query-start", 1),
                 firing("sdt:irq::irq_handler_entry", 2), firing("sdt:irq::irq_handler_exit", 3),
                 firing("postgresql8:postgres:exec:query-done", 4),
                 firing("postgresql9:postgres:other:query-done", 5), firing("x:::begin", 6),
                 firing("x:::end", 7), firing("x:::done", 8), firing("io:::start", 9),
                 firing("io:::done", 10)}),
      ElementsAre("web: dd 7/dd 7: begin query at 1", "web: dd 7/dd 7: begin irq_handler at 2",
                  "web: dd 7/dd 7: end at 3", "web: dd 7/dd 7: instant exec:query-done at 4",
                  "web: dd 7/dd 7: end at 5", "web: dd 7/dd 7: begin x at 6",
                  "web: dd 7/dd 7: end at 7", "web: dd 7/dd 7: instant done at 8",
                  "web: dd 7/dd 7: instant start at 9", "web: dd 7/dd 7: instant done at 10"));
}

TEST(Perfetto, PairsRequestsByTheirFirstNumbers) {
  const auto start = [](std::uint64_t time, int request) {
    return firing("io:::start", time, {}, value_items({request, 512}));
  };
  const auto done = [](std::uint64_t time, int request) {
    return firing("io:::done", time, {.pid = 0, .tid = 0}, value_items({request}));
  };
  // Two overlap; the third begins where one of them has ended; an end and a beginning are lost.
  EXPECT_THAT(events_of({start(10, 1), start(20, 2), done(30, 1), done(40, 2), start(50, 3),
                         done(60, 3), done(70, 4), start(80, 5), start(90, 5)}),
              ElementsAre("web/requests 1: begin io at 10 value=1 value 2=512",
                          "web/requests 2: begin io at 20 value=2 value 2=512",
                          "web/requests 1: end at 30 done value=1",
                          "web/requests 2: end at 40 done value=2",
                          "web/requests 1: begin io at 50 value=3 value 2=512",
                          "web/requests 1: end at 60 done value=3",
                          "web/vCPU 0 while idle: instant done at 70 done value=4",
                          "web: instant start at 80 value=5 value 2=512",
                          "web: instant start at 90 value=5 value 2=512"));
}

TEST(Perfetto, MakesInstantsOfHalves) {
  // A return whose entry was before the trace, a call whose return was lost, one that goes on, and
  // one that never returns.
  EXPECT_THAT(events_of({firing(kReturn, 10), firing(kSyscall, 20), firing(kEntry, 30),
                         firing(kSyscallReturn, 40), firing(kSyscall, 50),
                         firing("fbt:vmlinux:do_exit:entry", 60)}),
              ElementsAre("web: dd 7/dd 7: instant vfs_read:return at 10",
                          "web: dd 7/dd 7: begin read at 20",
                          "web: dd 7/dd 7: instant vfs_read:entry at 30",
                          "web: dd 7/dd 7: end at 40", "web: dd 7/dd 7: begin read at 50",
                          "web: dd 7/dd 7: instant do_exit:entry at 60"));
}

TEST(Perfetto, KnowsThatSystemCallsAreNotInsideOfOthers) {
  EXPECT_THAT(
      events_of({firing(kSyscall, 10), firing(kEntry, 20), firing("syscall::write:entry", 30),
                 firing("syscall::write:return", 40), firing(kSyscallReturn, 50)}),
      ElementsAre("web: dd 7/dd 7: instant read:entry at 10",
                  "web: dd 7/dd 7: instant vfs_read:entry at 20",
                  "web: dd 7/dd 7: begin write at 30", "web: dd 7/dd 7: end at 40",
                  "web: dd 7/dd 7: instant read:return at 50"));
}

TEST(Perfetto, NestsSlicesOfOneTimeAndOfRecursion) {
  const std::string inner = "fbt:vmlinux:new_sync_read:";
  EXPECT_THAT(
      events_of({firing(kSyscall, 10), firing(kEntry, 10), firing(inner + "entry", 10),
                 firing(kEntry, 20), firing(kReturn, 30), firing(inner + "return", 40),
                 firing(kReturn, 40), firing(kSyscallReturn, 40)}),
      ElementsAre("web: dd 7/dd 7: begin read at 10", "web: dd 7/dd 7: begin vfs_read at 11",
                  "web: dd 7/dd 7: begin new_sync_read at 12",
                  "web: dd 7/dd 7: begin vfs_read at 20", "web: dd 7/dd 7: end at 30",
                  "web: dd 7/dd 7: end at 40", "web: dd 7/dd 7: end at 41",
                  "web: dd 7/dd 7: end at 42"));
}

TEST(Perfetto, JoinsWhatClausesRecordInOneFiring) {
  EXPECT_THAT(events_of({firing(kEntry, 10, {}, value_items({1})),
                         firing(kEntry, 10, {}, value_items({2})), firing(kReturn, 20)}),
              ElementsAre("web: dd 7/dd 7: begin vfs_read at 10 value=1 value=2",
                          "web: dd 7/dd 7: end at 20"));
}

TEST(Perfetto, LeavesWhatWasCommittedLateAtItsOwnTime) {
  EXPECT_THAT(
      events_of({firing(kEntry, 50'000), firing(kEntry, 1'000), firing(kReturn, 60'000)}),
      ElementsAre("web: dd 7/dd 7: instant vfs_read:entry at 1000",
                  "web: dd 7/dd 7: begin vfs_read at 50000", "web: dd 7/dd 7: end at 60000"));
}

TEST(Perfetto, ShowsWhatRunsOnEachVcpu) {
  const From dd, cat{.pid = 8, .tid = 9, .execname = "cat"},
      idle{.pid = 0, .tid = 0, .execname = "swapper/0"}, other{.cpu = 1};
  EXPECT_THAT(
      events_of(
          {firing("sched:vmlinux:x:off-cpu", 5, cat), firing("sched:vmlinux:y:on-cpu", 10, dd),
           firing("sched:vmlinux:x:off-cpu", 20, dd, value_items({1})),
           firing("sched:vmlinux:y:on-cpu", 30, cat), firing("sched:vmlinux:y:on-cpu", 40, idle),
           firing("sched:vmlinux:x:off-cpu", 50, idle),
           firing("sched:vmlinux:y:on-cpu", 60, other)}),
      ElementsAre("web/vCPU 0: instant x:off-cpu at 5", "web/vCPU 0: begin dd 7 at 10",
                  "web/vCPU 0: end at 20 off-cpu value=1", "web/vCPU 0: begin cat 9 at 30",
                  "web/vCPU 0: end at 40", "web/vCPU 1: begin dd 7 at 60"));
}

TEST(Perfetto, NamesWhatRunsAsItIsNamedWhenItStops) {
  EXPECT_THAT(events_of({firing("sched:vmlinux:y:on-cpu", 1, {.execname = "sh"}),
                         firing("sched:vmlinux:x:off-cpu", 2)}),
              ElementsAre("web/vCPU 0: begin dd 7 at 1", "web/vCPU 0: end at 2"));
}

TEST(Perfetto, KeepsMachinesThreadsAndIdleTasksApart) {
  const From web, db{.machine = "db", .pid = 7, .tid = 8}, idle0{.pid = 0, .tid = 0},
      idle1{.pid = 0, .tid = 0, .cpu = 1};
  EXPECT_THAT(events_of({firing(kEntry, 1, web), firing(kEntry, 2, db), firing(kEntry, 3, idle0),
                         firing(kReturn, 4, idle1), firing(kReturn, 5, db), firing(kReturn, 6, web),
                         firing(kReturn, 7, idle0)}),
              ElementsAre("web: dd 7/dd 7: begin vfs_read at 1",
                          "db: dd 10000007/dd 10000008: begin vfs_read at 2",
                          "web/vCPU 0 while idle: begin vfs_read at 3",
                          "web/vCPU 1 while idle: instant vfs_read:return at 4",
                          "db: dd 10000007/dd 10000008: end at 5", "web: dd 7/dd 7: end at 6",
                          "web/vCPU 0 while idle: end at 7"));
}

TEST(Perfetto, NamesAThreadAsItIsNamedLast) {
  EXPECT_THAT(events_of({firing("proc:::exec", 1, {.execname = "sh"}), firing("proc:::exec", 2),
                         firing("proc:::exec", 3, {.tid = 8, .execname = "worker"})}),
              ElementsAre("web: dd 7/dd 7: instant exec at 1", "web: dd 7/dd 7: instant exec at 2",
                          "web: dd 7/worker 8: instant exec at 3"));
}

TEST(Perfetto, HasInstantsOfWhatFiresOnNoThread) {
  Tree begin = Tree::array();
  begin.push_back({{"message", "hello\n"}});
  const Tree fault{
      {"timestamp", 3}, {"machine", "web"}, {"cpu", 0},        {"provider", "fbt"},
      {"module", "m"},  {"function", "f"},  {"name", "entry"}, {"error", {{"msg", "bad address"}}}};
  const Tree drops{{"timestamp", 4},       {"machine", "web"},     {"cpu", 0},
                   {"provider", "dtrace"}, {"module", "INTERNAL"}, {"function", "INTERNAL"},
                   {"name", "DROP"},       {"count", 2},           {"msg", "2 drops on CPU 0"}};
  std::vector<std::string> notes;
  Tree threadless = firing(kEntry, 2);
  for (const char* each : {"pid", "tid", "execname"}) threadless.erase(each);

  EXPECT_THAT(events_of({firing("dtrace:::BEGIN", 1, {}, begin), threadless, fault, drops}, &notes),
              ElementsAre("web: instant BEGIN at 1 message=hello",
                          "web/vCPU 0: instant vfs_read:entry at 2",
                          "web: instant error at 3 message=bad address",
                          "web: instant drops at 4 message=2 drops on CPU 0"));
  EXPECT_THAT(notes, ElementsAre("records that do not tell their thread, so that they are no "
                                 "slices: 1; save them with -x threads"));
}

TEST(Perfetto, CountsAggregationsByKey) {
  const auto item = [](Tree data, const char* member = "aggregation-data") {
    Tree items = Tree::array();
    items.push_back({{member, std::move(data)}, {"aggregation-name", "a"}});
    return items;
  };
  const Tree counts{{{"keys", {"dd", 4}}, {"count", 3}}, {{"keys", {"cat", 4}}, {"count", 1}}};
  const Tree spread{{{"keys", Tree::array()},
                     {"buckets", {{{"value", 1}, {"count", 2}}, {{"value", 2}, {"count", 5}}}}}};
  const Tree percentiles{
      {{"keys", {"dd"}},
       {"percentiles",
        {{{"percentile", 99.9}, {"low", 2}, {"high", 3}}, {{"percentile", 50}, {"low", 1}}}}}};

  EXPECT_THAT(
      events_of({firing("profile:::tick-1s", 1, {}, item(counts)),
                 firing("profile:::tick-1s", 2, {}, item(spread)),
                 firing("profile:::tick-1s", 3, {}, item(percentiles, "aggregation-percentiles")),
                 firing("profile:::tick-1s", 4, {}, item(counts))}),
      ElementsAre("web/@a[dd, 4]: counter at 1 3", "web/@a[cat, 4]: counter at 1 1",
                  "web/@a: counter at 2 7", "web/@a[dd] p99.9: counter at 3 3",
                  "web/@a[dd] p50: counter at 3 1", "web/@a[dd, 4]: counter at 4 3",
                  "web/@a[cat, 4]: counter at 4 1"));
}

TEST(Perfetto, KeepsCountersApartWhoseShownNamesAreTheSame) {
  const std::string same(300, 'x');
  Tree data = Tree::array();
  for (const char* end : {"1", "2"}) {
    data.push_back({{"keys", Tree::array({same + end})}, {"count", 1}});
  }
  Tree items = Tree::array();
  items.push_back({{"aggregation-data", data}, {"aggregation-name", "a"}});
  const auto picture = make_picture(OutputFormat::Perfetto);
  ASSERT_TRUE(picture->add(firing("profile:::tick-1s", 1, {}, items)));
  const std::string shown = "web/@a[" + same.substr(0, 195) + "..: counter at 1 1";

  EXPECT_THAT(DecodedFile(picture->draw()->text).lines(), ElementsAre(shown, shown));
}

TEST(Perfetto, ShowsStacksAndStructuresAsText) {
  Tree items = Tree::array();
  items.push_back({{"stack-frames",
                    {{{"address", "0x1"}, {"name", "vmlinux`a+0x1"}},
                     {{"address", "0x2"}, {"name", "vmlinux`b+0x2"}}}}});
  items.push_back({{"type", "struct s"}, {"value", {{"x", 1}}}});
  items.push_back({{"exit", 0}});
  EXPECT_THAT(events_of({firing("fbt:vmlinux:f:7", 1, {}, items)}),
              ElementsAre("web: dd 7/dd 7: instant f:7 at 1 stack=vmlinux`a+0x1\nvmlinux`b+0x2 "
                          "value={\"x\":1} exit=0"));
}

TEST(Perfetto, HasNothingButTextInNames) {
  const std::string bad = std::string("<b>\xff\0\x1b\n\xc3\xa4", 9),
                    good = "<b>\ufffd\ufffd\ufffd\n\u00e4";
  EXPECT_THAT(events_of({firing("p:m:" + bad + ":7", 1, {.machine = bad, .execname = bad},
                                value_items({bad}))}),
              ElementsAre(fmt::format("{0}: {0} 7/{0} 7: instant {0}:7 at 1 value={0}", good)));
}

TEST(Perfetto, RefusesRecordsThatAreNone) {
  const auto changed = [](const char* member, Tree value) {
    Tree record = firing(kEntry, 1);
    record[member] = std::move(value);
    return events_of({record});
  };
  EXPECT_THAT(changed("timestamp", -1), ElementsAre("\"timestamp\" is no time in nanoseconds"));
  EXPECT_THAT(changed("timestamp", UINT64_MAX),
              ElementsAre("\"timestamp\" is no time in nanoseconds"));
  EXPECT_THAT(changed("cpu", "x"), ElementsAre("\"cpu\" is no number of a vCPU"));
  EXPECT_THAT(changed("tid", -1),
              ElementsAre("\"pid\", \"tid\" and \"execname\" are not of a thread"));
  EXPECT_THAT(changed("function", 1), ElementsAre("\"function\" is no text"));
  EXPECT_THAT(changed("output", 1), ElementsAre("\"output\" is no array"));
  EXPECT_THAT(changed("output", {1}), ElementsAre("an item of \"output\" is no object"));
  EXPECT_THAT(changed("error", 1), ElementsAre("\"error\" has no message"));
  EXPECT_THAT(events_of({}),
              ElementsAre("there is nothing to draw; a picture needs what its clauses "
                          "record, or aggregations: fbt::vfs_read:entry, "
                          "fbt::vfs_read:return { trace(arg1); }"));
}

TEST(Perfetto, BoundsWhatWaitsAndCounts) {
  std::vector<Tree> calls;
  for (std::uint64_t i = 0; i <= PerfettoTrace::kMostOpen; ++i)
    calls.push_back(firing(kEntry, 1 + i));
  calls.push_back(firing(kReturn, 1'000));
  const std::vector<std::string> events = events_of(calls);
  EXPECT_EQ(
      std::ranges::count_if(events, [](const auto& e) { return e.find("instant") != e.npos; }),
      static_cast<std::ptrdiff_t>(PerfettoTrace::kMostOpen / 2));

  Tree data = Tree::array();
  for (std::size_t i = 0; i < PerfettoTrace::kMostCounters + 5; ++i) {
    data.push_back({{"keys", {i}}, {"count", 1}});
  }
  Tree items = Tree::array();
  items.push_back({{"aggregation-data", data}, {"aggregation-name", "a"}});
  std::vector<std::string> notes;
  EXPECT_EQ(events_of({firing("profile:::tick-1s", 1, {}, items)}, &notes).size(),
            PerfettoTrace::kMostCounters);
  EXPECT_THAT(notes, ElementsAre("5 values of aggregations are not in the picture: they have more "
                                 "than 10000 keys"));

  std::vector<Tree> machines;
  for (std::size_t i = 0; i <= PerfettoTrace::kMostMachines; ++i) {
    machines.push_back(firing(kEntry, 1, {.machine = std::to_string(i)}));
  }
  EXPECT_THAT(events_of(machines), ElementsAre("there are more than 200 machines"));
}

TEST(Perfetto, WritesNothingUntilThereIsAnEvent) {
  const auto picture = make_picture(OutputFormat::Perfetto);
  Tree quiet = firing("profile:::tick-1s", 1);
  quiet["output"].push_back({{"clear", "a"}});
  ASSERT_TRUE(picture->add(quiet));

  EXPECT_THAT(picture->take_text(), IsEmpty());
  EXPECT_FALSE(picture->draw());
}

/// The file of one record that a program's output tells without a tree, and of its tree.
TEST(Perfetto, APlainRecordIsWhatItsTreeIs) {
  using Kind = PlainRecord::Item::Kind;
  const dif::ProbeDescription probe{"fbt", "vmlinux", "vfs_read", "return"};
  const std::vector<PlainRecord::Item> items{
      {.kind = Kind::Message, .text = "read 5\n"},
      {.kind = Kind::Integer, .type = {dif::ValueKind::Integer, true, 8}, .bits = UINT64_MAX},
      {.kind = Kind::Integer, .type = {dif::ValueKind::Integer, false, 8}, .bits = UINT64_MAX},
      {.kind = Kind::Message, .text = "\n"},
      {.kind = Kind::String, .type = {dif::ValueKind::String, false, 0}, .text = "a \x01 name\n"},
      {.kind = Kind::Exit, .bits = 3}};
  Tree tree = firing("fbt:vmlinux:vfs_read:return", 77, {.machine = "web1"});
  tree["cpu"] = 2;
  tree["pid"] = 7, tree["tid"] = 8, tree["execname"] = "dd";
  tree["output"] = {{{"message", "read 5\n"}},
                    {{"type", "int64_t"}, {"value", -1}},
                    {{"type", "uint64_t"}, {"value", UINT64_MAX}},
                    {{"message", "\n"}},
                    {{"type", "string"}, {"value", "a \x01 name\n"}},
                    {{"exit", 3}}};
  const auto plain = make_picture(OutputFormat::Perfetto),
             of_tree = make_picture(OutputFormat::Perfetto);
  for (int n = 0; n < 2; ++n) {  // names are told once
    ASSERT_TRUE(plain->add_plain({77, 2, probe, "web1", PlainRecord::Thread{7, 8, "dd"}, items}));
    ASSERT_TRUE(of_tree->add(tree));
  }
  EXPECT_FALSE(plain->add_plain({UINT64_MAX, 2, probe, "web1", {}, items}))
      << "the tree's error is told";
  const std::string file = plain->draw()->text;
  EXPECT_THAT(DecodedFile(file).lines(), testing::Not(IsEmpty()));
  EXPECT_EQ(file, of_tree->draw()->text);
}

}  // namespace
}  // namespace ringside::cli
