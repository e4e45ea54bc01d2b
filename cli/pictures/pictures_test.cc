#include "cli/pictures/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <regex>

#include "cli/pictures/stack_counts.h"
#include "cli/pictures/svg.h"

namespace ringside::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A frame; kernel functions are written in capitals.
Tree frame(const std::string& function) {
  const bool kernel = std::isupper(static_cast<unsigned char>(function[0])) != 0;
  const std::string module = kernel ? "vmlinux" : "a.out";
  return {{"address", kernel ? "0xffffffff81000010" : "0x401010"},
          {"name", module + '`' + function + "+0x10"},
          {"module", module},
          {"symbol", function},
          {"offset", 16}};
}

/// As records have it: the innermost first.
Tree stack(const std::vector<std::string>& functions) {
  Tree list = Tree::array();
  for (const std::string& each : functions) list.push_back(frame(each));
  return list;
}

Tree counted(Tree keys, std::int64_t count) {
  return {{"keys", std::move(keys)}, {"count", count}};
}

Tree aggregation(Tree data, const std::string& name = "_") {
  return {{"aggregation-data", std::move(data)},
          {"aggregation-name", name},
          {"aggregation-function", "count"}};
}

Tree record(Tree output, std::uint64_t time = 1, const std::string& machine = "web") {
  return {{"timestamp", time},
          {"machine", machine},
          {"provider", "profile"},
          {"name", "tick-1s"},
          {"output", std::move(output)}};
}

/// The only entry of an array, however deep it is an array itself.
Tree list(std::initializer_list<Tree> items) {
  Tree all = Tree::array();
  for (const Tree& each : items) all.push_back(each);
  return all;
}

std::string drawn(OutputFormat format, const std::vector<Tree>& records,
                  std::vector<std::string>* notes = nullptr) {
  const auto picture = make_picture(format);
  for (const Tree& each : records) {
    if (const auto taken = picture->add(each); !taken) return taken.error().message;
  }
  auto result = picture->draw();
  if (!result) return result.error().message;
  if (notes != nullptr) *notes = result->notes;
  return result->text;
}

std::string folded(const std::vector<Tree>& records) {
  return drawn(OutputFormat::Folded, records);
}

TEST(Folded, HasTheRootFirstAndTheKernelOverTheProcess) {
  const Tree both = list({stack({"VFS_READ", "ENTRY"}), stack({"read", "main"})});
  const Tree turned = list({stack({"read", "main"}), stack({"VFS_READ", "ENTRY"})});
  const std::string line = "a.out`main;a.out`read;vmlinux`ENTRY;vmlinux`VFS_READ 12\n";

  EXPECT_EQ(folded({record(list({aggregation(list({counted(both, 12)}))}))}), line);
  EXPECT_EQ(folded({record(list({aggregation(list({counted(turned, 12)}))}))}), line);
}

TEST(Folded, KeysBeforeTheStacksAreRootFrames) {
  const Tree key = list({"dd", 4711, nullptr, stack({"VFS_READ"})});

  EXPECT_EQ(folded({record(list({aggregation(list({counted(key, 3)}))}))}),
            "dd;4711;-;vmlinux`VFS_READ 3\n");
}

TEST(Folded, NamesCannotMakeFramesLinesOrCounts) {
  const auto key_of = [](const char* name) { return list({name, stack({})}); };
  const std::string text = folded({record(list({aggregation(list(
      {counted(key_of("a;b"), 1), counted(key_of("c\nd 5\n"), 2), counted(key_of("kworker 1"), 3),
       counted(key_of("\x1b[2J"), 4), counted(key_of(""), 5), counted(key_of("a b"), 6)}))}))});

  EXPECT_EQ(text, "- 5\n\\033[2J 4\na b 6\na:b 1\nc\\nd 5\\n 2\nkworker_1 3\n");
}

TEST(Folded, AddressesOfOneFunctionAreOneFrame) {
  Tree other = stack({"VFS_READ"});
  other[0]["name"] = "vmlinux`VFS_READ+0x2f";
  Tree unknown = stack({"f"}), nowhere = stack({"f"});
  for (Tree* each : {&unknown, &nowhere}) (*each)[0].erase("symbol");
  unknown[0]["name"] = "a.out`0x1234";
  nowhere[0].erase("module");
  nowhere[0]["name"] = "0x1234";

  EXPECT_EQ(folded({record(list({aggregation(
                list({counted(list({stack({"VFS_READ"})}), 3), counted(list({other}), 4),
                      counted(list({unknown}), 5), counted(list({nowhere}), 6)}))}))}),
            "[unknown] 6\na.out`[unknown] 5\nvmlinux`VFS_READ 7\n");
}

TEST(Folded, AKernelThreadsOwnStackIsThereOnce) {
  const Tree key = list({stack({"KTHREAD"}), stack({"SLEEP", "KTHREAD"})});

  EXPECT_EQ(folded({record(list({aggregation(list({counted(key, 3)}))}))}),
            "vmlinux`KTHREAD;vmlinux`SLEEP 3\n");
}

TEST(Folded, MachinesAndAggregationsAreRootFramesWhereThereAreSeveral) {
  const auto one = list({counted(list({stack({"F"})}), 1)});
  const std::vector<Tree> records{
      record(list({aggregation(one, "a"), aggregation(one, "b")}), 1, "web"),
      record(list({aggregation(one, "a")}), 1, "database")};

  EXPECT_EQ(folded(records), "database;@a;vmlinux`F 1\nweb;@a;vmlinux`F 1\nweb;@b;vmlinux`F 1\n");
}

TEST(Folded, MergedAggregationsAreOfNoMachine) {
  Tree tick = aggregation(list({counted(list({stack({"F"})}), 5)}));
  Tree end = aggregation(list({counted(list({stack({"F"})}), 7)}));
  tick["merged"] = end["merged"] = true;

  EXPECT_EQ(folded({record(list({tick}), 1, "web"), record(list({}), 2, "database"),
                    record(list({end}), 3, "database")}),
            "vmlinux`F 7\n");
}

TEST(Folded, TheLastPrintCountsAndClearBeginsAnew) {
  const auto shown = [](std::int64_t count) {
    return aggregation(list({counted(list({stack({"F"})}), count)}), "a");
  };
  const Tree clear{{"clear", "a"}}, trunc{{"trunc", "a"}}, keep{{"trunc", "a"}, {"keep", 3}};

  EXPECT_EQ(folded({record(list({shown(5)})), record(list({shown(8)}))}), "vmlinux`F 8\n");
  EXPECT_EQ(folded({record(list({shown(5), clear})), record(list({shown(8)}))}), "vmlinux`F 13\n");
  EXPECT_EQ(folded({record(list({shown(5), trunc})), record(list({shown(8), trunc}))}),
            "vmlinux`F 13\n");
  EXPECT_EQ(folded({record(list({shown(5), keep})), record(list({shown(8)}))}), "vmlinux`F 8\n");
}

TEST(Folded, TellsOfValuesThatNoPictureShows) {
  std::vector<std::string> notes;
  const std::string text =
      drawn(OutputFormat::Folded,
            {record(list({aggregation(
                list({counted(list({stack({"F"})}), -1), counted(list({stack({"G"})}), 2)}))}))},
            &notes);

  EXPECT_EQ(text, "vmlinux`G 2\n");
  EXPECT_THAT(notes, ElementsAre("1 keys with a value below 0 are not in the picture"));
}

TEST(Folded, SaysWhatToMakeWhereThereAreNoStacks) {
  EXPECT_EQ(folded({record(list({aggregation(list({counted(list({"dd"}), 1)}), "names")}))}),
            "there is nothing to draw in @names; a picture needs a count() or sum() whose key ends "
            "in stack() or ustack(): @[execname, ustack(), stack()] = count()");
}

TEST(Pictures, RefuseRecordsOfAnotherShape) {
  const auto shape = [](const char* text) { return folded({Tree::parse(text)}); };

  EXPECT_EQ(shape(R"({"output": 3})"), "\"output\" is no array");
  EXPECT_EQ(shape(R"({"output": [3]})"), "an item of \"output\" is no object");
  EXPECT_EQ(shape(R"({"output": [{"aggregation-data": []}]})"), "an aggregation has no name");
  EXPECT_EQ(shape(R"({"output": [{"aggregation-data": 1, "aggregation-name": "a"}]})"),
            "\"aggregation-data\" is no array");
  EXPECT_EQ(shape(R"({"output": [{"aggregation-data": [1], "aggregation-name": "a"}]})"),
            "an entry of \"aggregation-data\" lacks its keys");
  EXPECT_EQ(shape(R"({"output": [{"aggregation-data": [{"keys": [[1]], "count": 1}],
                                  "aggregation-name": "a"}]})"),
            "a frame of a stack is no object");
  EXPECT_EQ(shape(R"({"output": [{"aggregation-data": [{"keys": [[{"name": "f"}]], "count": 1}],
                                  "aggregation-name": "a"}]})"),
            "a frame of a stack lacks its name or address");
  EXPECT_EQ(shape(R"({"output": [{"aggregation-data": [{"keys": [[]], "count": 1.5}],
                                  "aggregation-name": "a"}]})"),
            "the value of a key is no integer");
}

TEST(Pictures, RefuseAStackWithoutEnd) {
  const std::vector<std::string> deep(StackTable::kMostFrames + 1, "F");

  EXPECT_EQ(folded({record(list({aggregation(list({counted(list({stack(deep)}), 1)}))}))}),
            "a stack has more than 8192 frames");
}

TEST(Pictures, SumsOfHostileCountsStayNumbers) {
  Tree most = counted(list({stack({"F"})}), 0);
  most["count"] = UINT64_MAX;

  EXPECT_EQ(folded({record(list({aggregation(list({most, most}))}))}),
            "vmlinux`F 18446744073709551615\n");
  EXPECT_THAT(drawn(OutputFormat::Flame, {record(list({aggregation(list({most, most}))}))}),
              HasSubstr("(100.00 %)"));
}

/// All boxes in order: "NAME count at x y wide width", in pixels.
std::vector<std::string> boxes(const std::string& svg) {
  std::vector<std::string> found;
  const std::regex box(
      R"x(<title>([^<]*)\n([0-9,]+) [^<]*</title><rect x="([^"]*)" y="([^"]*)" width="([^"]*)")x");
  for (std::sregex_iterator at(svg.begin(), svg.end(), box), end; at != end; ++at) {
    found.push_back((*at)[1].str() + ' ' + (*at)[2].str() + " at " + (*at)[3].str() + ' ' +
                    (*at)[4].str() + " wide " + (*at)[5].str());
  }
  return found;
}

TEST(Flame, BoxesAreAsWideAsTheirShare) {
  const std::string svg =
      drawn(OutputFormat::Flame,
            {record(list({aggregation(list({counted(list({"dd", stack({"B", "A"})}), 750),
                                            counted(list({"dd", stack({"C", "A"})}), 250),
                                            counted(list({"ls", stack({"A"})}), 1000)}))}))});

  EXPECT_THAT(boxes(svg),
              ElementsAre("all 2,000 at 10 110 wide 1179.5", "dd 1,000 at 10 92 wide 589.5",
                          "vmlinux`A 1,000 at 10 74 wide 589.5", "vmlinux`B 750 at 10 56 wide 442",
                          "vmlinux`C 250 at 452.5 56 wide 147", "ls 1,000 at 600 92 wide 589.5",
                          "vmlinux`A 1,000 at 600 74 wide 589.5"));
  EXPECT_THAT(svg, HasSubstr(">2,000 in 3 stacks</text>"));
  EXPECT_THAT(svg, HasSubstr("(37.50 %)"));
}

TEST(Flame, TextOfAGuestIsNoMarkup) {
  const char* const name = "<script>alert(1)</script>]]>\"'&";
  const std::string svg =
      drawn(OutputFormat::Flame,
            {record(list({aggregation(list({counted(list({name, stack({"F"})}), 1)}),
                                      "<script>alert(2)</script>")}),
                    1, "<script>alert(3)</script>"),
             record(list({aggregation(list({counted(list({name, stack({"F"})}), 1)}))}), 1, "b")});

  EXPECT_THAT(svg, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;]]&gt;&quot;&#39;&amp;\n"));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert(3)&lt;/script&gt;"));
  const std::string script = svg.substr(svg.find("<script>"));
  EXPECT_EQ(script.find("]]>"), script.rfind("]]>")) << "the script's own end";
}

TEST(Flame, LeavesOutBoxesThatNobodyCouldSee) {
  const std::string svg =
      drawn(OutputFormat::Flame,
            {record(list({aggregation(list({counted(list({stack({"A"})}), 1'000'000),
                                            counted(list({stack({"C", "B"})}), 1)}))}))});

  EXPECT_THAT(svg, Not(HasSubstr("vmlinux`B")));
  EXPECT_THAT(svg, HasSubstr("1,000,001 in 2 stacks; without 2 frames that would be too narrow"));
}

TEST(Flame, EachAggregationAndMachineHasAGraph) {
  const auto one = list({counted(list({stack({"F"})}), 1)});
  const std::string svg = drawn(
      OutputFormat::Flame, {record(list({aggregation(one, "a"), aggregation(one, "b")}), 1, "web"),
                            record(list({aggregation(one, "a")}), 1, "database")});

  const auto at = [&](const char* title) { return svg.find(title); };
  EXPECT_LT(at(">@a, database</text>"), at(">@a, web</text>"));
  EXPECT_LT(at(">@a, web</text>"), at(">@b, web</text>"));
  EXPECT_NE(at(">@b, web</text>"), svg.npos);
}

TEST(FlameDifference, ColoursBySharesAndTellsBoth) {
  const auto run = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return record(
        list({aggregation(list({counted(list({stack({"A"})}), a), counted(list({stack({"B"})}), b),
                                counted(list({stack({"C"})}), c)}))}));
  };
  StackTable before;
  ASSERT_TRUE(before.add(run(10, 80, 10)));
  const auto picture = make_difference(std::move(before));
  ASSERT_TRUE(picture->add(run(100, 60, 40)));

  const std::string svg = picture->draw()->text;

  EXPECT_THAT(svg, HasSubstr("f d6\" data-s=\"0\" data-n=\"100\"><title>vmlinux`A\n"
                             "100 (50.00 %), before 10 (10.00 %)</title>"));
  EXPECT_THAT(svg, HasSubstr("f d0\" data-s=\"100\" data-n=\"60\"><title>vmlinux`B\n"
                             "60 (30.00 %), before 80 (80.00 %)</title>"));
  EXPECT_THAT(svg, HasSubstr("f d6\" data-s=\"160\" data-n=\"40\"><title>vmlinux`C\n"
                             "40 (20.00 %), before 10 (10.00 %)</title>"));
}

TEST(FlameDifference, JoinsStacksThatOnlyOneRunHas) {
  StackTable before;
  ASSERT_TRUE(before.add(record(list({aggregation(
      list({counted(list({stack({"OLD", "MAIN"})}), 5), counted(list({stack({"MAIN"})}), 5)}))}))));
  const auto picture = make_difference(std::move(before));
  ASSERT_TRUE(picture->add(record(list({aggregation(
      list({counted(list({stack({"NEW", "MAIN"})}), 3), counted(list({stack({"MAIN"})}), 1)}))}))));

  const std::string svg = picture->draw()->text;

  EXPECT_THAT(svg, HasSubstr("vmlinux`MAIN\n4 (100.00 %), before 10 (100.00 %)"));
  EXPECT_THAT(svg, HasSubstr("vmlinux`NEW\n3 (75.00 %), before 0 (0.00 %)"));
  EXPECT_THAT(svg, Not(HasSubstr("vmlinux`OLD")));
  EXPECT_THAT(svg, HasSubstr(">4 in 2 stacks; red: a larger share than before (10), blue"));
}

TEST(Speedscope, HasWeightedSamplesOfSharedFrames) {
  const Tree file =
      Tree::parse(drawn(OutputFormat::Speedscope,
                        {record(list({aggregation(list({counted(list({"dd", stack({"B", "A"})}), 7),
                                                        counted(list({"dd", stack({"A"})}), 3)}),
                                                  "a")}))}));

  EXPECT_EQ(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
  ASSERT_EQ(file["profiles"].size(), 1u);
  const Tree& profile = file["profiles"][0];
  EXPECT_EQ(profile["type"], "sampled");
  EXPECT_EQ(profile["name"], "@a");
  EXPECT_EQ(profile["endValue"], 10);
  EXPECT_EQ(profile["weights"], Tree::parse("[3, 7]"));
  std::vector<std::string> names;
  for (const Tree& frame : profile["samples"][1]) {
    names.push_back(file["shared"]["frames"][frame.get<std::size_t>()]["name"]);
  }
  EXPECT_THAT(names, ElementsAre("dd", "vmlinux`A", "vmlinux`B"));
}

Tree bucket(std::int64_t value, std::int64_t count) {
  return {{"value", value}, {"count", count}};
}

Tree distribution(const Tree& keys, const Tree& buckets, const std::string& name = "_") {
  return {{"aggregation-data", list({Tree{{"keys", keys}, {"buckets", buckets}}})},
          {"aggregation-name", name},
          {"aggregation-function", "quantize"}};
}

constexpr std::uint64_t kSecond = 1'000'000'000;

/// The titles of cells, their lines joined by '|'.
std::vector<std::string> cells(const std::string& svg) {
  std::vector<std::string> found;
  const std::regex cell(R"x(class="cell (h\d)"[^>]*><title>([^<]*)\n([^<]*)\n([^<]*)</title>)x");
  for (std::sregex_iterator at(svg.begin(), svg.end(), cell), end; at != end; ++at) {
    found.push_back((*at)[2].str() + '|' + (*at)[3].str() + '|' + (*at)[4].str() + '|' +
                    (*at)[1].str());
  }
  return found;
}

TEST(Heatmap, AColumnHasWhatCameSinceThePrintBefore) {
  const auto tick = [](std::uint64_t second, std::int64_t four, std::int64_t eight) {
    return record(list({distribution(list({"dd"}), list({bucket(2, 0), bucket(4, four),
                                                         bucket(8, eight), bucket(16, 0)}))}),
                  second * kSecond);
  };
  const std::string svg =
      drawn(OutputFormat::Heatmap, {tick(10, 1, 0), tick(11, 1, 64), tick(13, 5, 64)});

  EXPECT_THAT(cells(svg),
              ElementsAre("4 .. 7|0.000 .. 1.000 s|1|h0", "4 .. 7|2.000 .. 4.000 s|4|h2",
                          "8 .. 15|1.000 .. 2.000 s|64|h7"));
  EXPECT_THAT(svg, HasSubstr(">dd: 69 values</text>"));
}

TEST(Heatmap, AfterClearAPrintHasOnlyWhatIsNew) {
  const auto tick = [](std::uint64_t second) {
    return record(list({distribution(list({}), list({bucket(2, 0), bucket(4, 3), bucket(8, 0)})),
                        Tree{{"clear", "_"}}}),
                  second * kSecond);
  };

  EXPECT_THAT(cells(drawn(OutputFormat::Heatmap, {tick(1), tick(2)})),
              ElementsAre("4 .. 7|0.000 .. 1.000 s|3|h7", "4 .. 7|1.000 .. 2.000 s|3|h7"));
}

TEST(Heatmap, NamesRangesBelowZeroAndOpenEnds) {
  Tree below = bucket(-1, 2), above = bucket(100, 2);
  below["range"] = "< 0";
  above["range"] = ">= 100";
  Tree linear = distribution(list({}), list({below, bucket(0, 2), bucket(50, 2), above}), "linear");
  linear["aggregation-function"] = "lquantize";
  const Tree powers = distribution(
      list({}), list({bucket(-8, 0), bucket(-4, 2), bucket(-2, 0), bucket(-1, 2), bucket(0, 2)}));

  EXPECT_THAT(cells(drawn(OutputFormat::Heatmap, {record(list({linear}))})),
              ElementsAre("&lt; 0|all of the trace|2|h7", "0 .. 49|all of the trace|2|h7",
                          "50 .. 99|all of the trace|2|h7", "&gt;= 100|all of the trace|2|h7"));
  EXPECT_THAT(cells(drawn(OutputFormat::Heatmap, {record(list({powers}))})),
              ElementsAre("-7 .. -4|all of the trace|2|h7", "-1|all of the trace|2|h7",
                          "0 .. 9,223,372,036,854,775,807|all of the trace|2|h7"));
}

TEST(Heatmap, OfOnePrintHasOneColumnAndSaysSo) {
  std::vector<std::string> notes;
  drawn(OutputFormat::Heatmap,
        {record(list({distribution(list({}), list({bucket(2, 1), bucket(4, 0)}))}))}, &notes);

  EXPECT_THAT(notes, ElementsAre(HasSubstr("print at each tick: tick-1s { printa(@); }")));
}

TEST(Heatmap, CutsTheSmallestOfManyKeysAndSaysSo) {
  Tree many = distribution(list({}), list({}));
  many["aggregation-data"] = Tree::array();
  for (int i = 1; i <= 30; ++i) {
    many["aggregation-data"].push_back(Tree{{"keys", list({"key" + std::to_string(i)})},
                                            {"buckets", list({bucket(1, i), bucket(2, 0)})}});
  }
  std::vector<std::string> notes;

  const std::string svg = drawn(OutputFormat::Heatmap, {record(list({many}))}, &notes);

  EXPECT_THAT(notes, testing::Contains(
                         "18 of 30 maps are not in the picture: those with the fewest values"));
  EXPECT_THAT(svg, HasSubstr("12 of 30 maps are drawn"));
  EXPECT_THAT(svg, HasSubstr(">key19: 19 values<"));
  EXPECT_THAT(svg, Not(HasSubstr(">key18: 18 values<")));
}

TEST(Heatmap, ManyRowsAndColumnsAreDrawnTogether) {
  std::vector<Tree> records;
  for (std::uint64_t second = 1; second <= 1000; ++second) {
    Tree buckets = Tree::array();
    for (int i = 0; i < 300; ++i) buckets.push_back(bucket(i, static_cast<std::int64_t>(second)));
    records.push_back(record(list({distribution(list({}), buckets)}), second * kSecond));
  }

  const std::vector<std::string> drawn_cells = cells(drawn(OutputFormat::Heatmap, records));

  EXPECT_EQ(drawn_cells.size(), 100u * 334u) << "3 rows, and 3 columns, are one";
  EXPECT_EQ(drawn_cells.front(), "0 .. 2|0.000 .. 3.000 s|9|h7");
}

TEST(Heatmap, RefusesBucketsOfAnotherShape) {
  const auto shape = [](const Tree& buckets) {
    return drawn(OutputFormat::Heatmap, {record(list({distribution(list({}), buckets)}))});
  };

  EXPECT_EQ(shape(3), "\"buckets\" is no array");
  EXPECT_EQ(shape(list({bucket(2, 1), bucket(1, 1)})), "buckets are not in order");
  EXPECT_EQ(shape(list({Tree{{"value", 1}}})), "a bucket lacks its value or count");
  Tree most = bucket(1, 1);
  most["count"] = UINT64_MAX;
  EXPECT_EQ(shape(list({most})), "a bucket lacks its value or count");
}

TEST(Heatmap, SaysWhatToMakeWhereThereAreNoDistributions) {
  EXPECT_EQ(
      drawn(OutputFormat::Heatmap, {record(list({aggregation(list({counted(list({"dd"}), 1)}))}))}),
      "there is nothing to draw in @; a picture needs a quantize(), lquantize() or llquantize(), "
      "printed at each tick: @[execname] = quantize(arg1); tick-1s { printa(@); }");
}

TEST(CheckDrawable, KnowsBeforeATraceBegins) {
  dif::Aggregation stacks, counts, values;
  stacks.function = counts.function = dif::AggregateFunction::Count;
  stacks.keys = {{dif::ValueKind::String, false, 0}, {dif::ValueKind::KernelStack, false, 160}};
  counts.keys = {{dif::ValueKind::KernelStack, false, 160}, {dif::ValueKind::String, false, 0}};
  values.function = dif::AggregateFunction::Quantize;
  dif::Program all, without, plain, empty;
  all.aggregations = {counts, values, stacks};
  without.aggregations = {counts, values};
  plain.aggregations = {counts};
  dif::Program records;
  records.clauses.emplace_back();  // dtrace's default action
  empty.clauses.emplace_back().actions.emplace_back().kind = dif::ActionKind::Evaluate;

  EXPECT_TRUE(check_drawable(OutputFormat::Flame, all));
  EXPECT_FALSE(check_drawable(OutputFormat::Flame, without));
  EXPECT_TRUE(check_drawable(OutputFormat::Heatmap, without));
  EXPECT_FALSE(check_drawable(OutputFormat::Heatmap, plain));
  EXPECT_TRUE(check_drawable(OutputFormat::Json, plain));
  EXPECT_TRUE(check_drawable(OutputFormat::Perfetto, plain));
  EXPECT_TRUE(check_drawable(OutputFormat::Perfetto, records));
  EXPECT_EQ(check_drawable(OutputFormat::Perfetto, empty).error().message,
            "the program has nothing to draw; a picture needs what its clauses record, or "
            "aggregations: fbt::vfs_read:entry, fbt::vfs_read:return { trace(arg1); }");
}

TEST(Svg, EscapesWhatXmlCannotHold) {
  std::string text;
  append_escaped(text, "a<b>&\"'\x01\x7f\xff\xef\xbf\xbe\xc2\x9b\xc3\xa4\n");

  EXPECT_EQ(text, "a&lt;b&gt;&amp;&quot;&#39;\ufffd\ufffd\ufffd\ufffd\ufffd\u00e4\ufffd");
}

TEST(Svg, CutsTextBetweenCharacters) {
  EXPECT_EQ(shortened("\u00e4\u00f6\u00fc\u00df", 4), "\u00e4\u00f6\u00fc\u00df");
  EXPECT_EQ(shortened("\u00e4\u00f6\u00fc\u00dfx", 4), "\u00e4\u00f6..");
}

TEST(Svg, WritesNumbers) {
  const auto pixels = [](double number) {
    std::string text;
    append_pixels(text, number);
    return text;
  };

  EXPECT_EQ(pixels(12), "12");
  EXPECT_EQ(pixels(12.5), "12.5");
  EXPECT_EQ(pixels(12.049), "12.05");
}

}  // namespace
}  // namespace ringside::cli
