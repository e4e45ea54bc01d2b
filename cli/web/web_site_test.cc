// The site's answers that need no command of ringside, its events, its programs' lines, its
// metrics.
#include "cli/web/web_site.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/web/line_splitter.h"
#include "cli/web/metrics.h"
#include "cli/web/page_files.h"

namespace ringside::cli {
namespace {

using Json = nlohmann::json;

class Site : public testing::Test {
 protected:
  HttpReply get(const std::string& path, std::map<std::string, std::string> parameters = {},
                const std::string& method = "GET", const std::string& body = {}) {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    request.parameter = [parameters](const char* name) {
      const auto found = parameters.find(name);
      return found == parameters.end() ? std::string() : found->second;
    };
    return site_.answer(request);
  }
  static std::string header(const HttpReply& reply, const std::string& name) {
    const auto found =
        std::ranges::find(reply.headers, name, [](const auto& each) { return each.first; });
    return found == reply.headers.end() ? "" : found->second;
  }
  WebSite site_{RequestRules("token", "127.0.0.1", 80), {"qmp:/run/a.sock"}};
};

TEST_F(Site, ItsFilesAreThereAndNothingElseIs) {
  for (const PageFile& file : page_files()) {
    const HttpReply reply = get(std::string(file.path));
    EXPECT_EQ(reply.status, 200u) << file.path;
    EXPECT_EQ(reply.body, file.text);
  }
  for (const char* path :
       {"/index.html", "/../etc/passwd", "/page.js/", "//", "/api", "/api/other"}) {
    EXPECT_EQ(get(path).status, 404u) << path;
  }
  EXPECT_EQ(get("/api/run").status, 405u);
  EXPECT_EQ(get("/page.js", {}, "POST").status, 404u);
}

TEST_F(Site, EveryReplyHasTheStrictPolicy) {
  for (const char* path : {"/", "/page.js", "/nothing", "/metrics", "/api/run", "/api/look"}) {
    const HttpReply reply = get(path);
    const std::string policy = header(reply, "Content-Security-Policy");
    EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"))
        << path;
    EXPECT_EQ(policy.find("unsafe"), policy.npos) << path;
    EXPECT_EQ(header(reply, "X-Content-Type-Options"), "nosniff") << path;
  }
  const std::string picture = header(get("/api/picture"), "Content-Security-Policy");
  EXPECT_NE(picture.find("sandbox allow-scripts;"), picture.npos);
}

TEST_F(Site, ThePageTakesNothingFromElsewhere) {
  for (const PageFile& file : page_files()) {
    const std::string text(file.text);
    for (const char* forbidden : {"innerHTML", "outerHTML =", "insertAdjacentHTML",
                                  "document.write", "eval(", "https://"}) {
      EXPECT_EQ(text.find(forbidden), text.npos) << file.path << ": " << forbidden;
    }
  }
  std::size_t size = 0;
  for (const PageFile& file : page_files()) size += file.text.size();
  EXPECT_LT(size, 1u << 20);
}

TEST_F(Site, AMachineOfAnotherTargetIsRefused) {
  EXPECT_EQ(get("/api/look", {{"command", "ps"}, {"target", "qmp:/run/b.sock"}}).status, 404u);
  EXPECT_EQ(get("/api/look", {{"command", "run"}, {"target", "qmp:/run/a.sock"}}).status, 400u);
  const Json order{
      {"page", "x"}, {"d", "BEGIN {}"}, {"targets", {"-w"}}, {"arguments", Json::array()}};
  const HttpReply reply = get("/api/run", {}, "POST", order.dump());
  EXPECT_EQ(reply.status, 400u);
  EXPECT_EQ(reply.body, "-w is no machine of this page\n");
}

TEST_F(Site, AnOrderThatIsNoneIsRefused) {
  for (const char* body :
       {"", "[]", "{", "3", R"({"page":"x"})", R"({"page":"x","d":3,"targets":[],"arguments":[]})",
        R"({"page":"x","d":"","targets":"a","arguments":[]})",
        R"({"page":"x","d":"","targets":[],"arguments":[1]})",
        R"({"page":"x","d":"","targets":[],"arguments":["a\u0000b"]})"}) {
    EXPECT_EQ(get("/api/run", {}, "POST", body).status, 400u) << body;
  }
  const HttpReply closed =
      get("/api/run", {}, "POST", R"({"page":"x","d":"","targets":[],"arguments":[]})");
  EXPECT_EQ(closed.status, 404u);
  for (const char* number : {"", "1", "-1", "x"}) {
    EXPECT_EQ(get("/api/records", {{"program", number}}).status, 404u) << number;
  }
}

std::string all_of(EventStream& stream, std::size_t piece = 1 << 20) {
  std::string text(piece, '\0');
  text.resize(stream.read(text.data(), text.size(), -1));
  return text;
}

TEST(WebEvents, ComeInOrderAndInPieces) {
  EventStream stream;
  stream.add("1");
  stream.add("2");

  std::string text;
  for (int i = 0; i < 9; ++i) text += all_of(stream, 2);

  EXPECT_EQ(text, "data: 1\n\ndata: 2\n\n");
}

TEST(WebEvents, OnlyTheLatestOfANameWaits) {
  EventStream stream;
  stream.set_latest("7/a", "old");
  stream.set_latest("7/a", "new");
  stream.set_latest("8/a", "other");
  stream.settle("7/");
  stream.add("end");

  EXPECT_EQ(all_of(stream), "data: new\n\ndata: end\n\n");
  EXPECT_EQ(all_of(stream), "data: other\n\n");
}

TEST(WebEvents, AreRefusedWhenTooMuchWaits) {
  EventStream stream;
  const std::string mebibyte(1 << 20, 'x');
  int taken = 0;
  while (taken < 100 && stream.add(mebibyte)) ++taken;

  EXPECT_EQ(taken, 8);
  EXPECT_TRUE(stream.add("urgent", true));
  EXPECT_FALSE(stream.add("another"));
}

TEST(WebEvents, EndWhenTheyAreClosed) {
  EventStream stream;
  stream.add("1");
  stream.close();

  EXPECT_EQ(all_of(stream), "");
  EXPECT_FALSE(stream.add("2", true));
}

TEST(WebLines, LongOnesAreNotKept) {
  std::vector<std::pair<std::string, std::size_t>> taken;
  LineSplitter lines(
      3, [&](std::string_view line, std::size_t length) { taken.emplace_back(line, length); });
  lines.add("a");
  lines.add("bc\n\nlong");
  EXPECT_TRUE(lines.is_inside());
  lines.add("er\nd\n");

  EXPECT_EQ(taken, (decltype(taken){{"abc", 3}, {"", 0}, {"", 6}, {"d", 1}}));
  EXPECT_FALSE(lines.is_inside());
}

TEST(WebMetrics, HaveEveryAggregationWhoseKeysAreLabels) {
  const std::string record = R"({"machine":"w\"1","output":[
    {"aggregation-name":"reads","aggregation-function":"count","aggregation-data":[
      {"keys":["<b>\n\\",3],"count":7},{"keys":[[{"name":"f"}],1],"count":9}]},
    {"aggregation-name":"ns","aggregation-function":"quantize","aggregation-data":[
      {"keys":[],"buckets":[{"value":0,"count":0},{"value":1,"count":2},{"value":2,"count":3},{"value":4,"count":0}]}]}]})";

  const ProgramMetrics program{4, 100, 12, 1, {record, "no JSON"}};
  const MachineMetrics machine{4, "w\"1", 30, 2, 1};
  const std::string text = open_metrics(std::span(&program, 1), std::span(&machine, 1));

  EXPECT_EQ(text, R"(# TYPE ringside_aggregation gauge
# HELP ringside_aggregation Aggregations of the programs that run.
ringside_aggregation{program="4",machine="w\"1",aggregation="reads",key1="<b>\n\\",key2="3"} 7
# TYPE ringside_distribution histogram
# HELP ringside_distribution Distributions of the programs that run.
ringside_distribution_bucket{program="4",machine="w\"1",aggregation="ns",le="0.0"} 0
ringside_distribution_bucket{program="4",machine="w\"1",aggregation="ns",le="1.0"} 2
ringside_distribution_bucket{program="4",machine="w\"1",aggregation="ns",le="3.0"} 5
ringside_distribution_bucket{program="4",machine="w\"1",aggregation="ns",le="+Inf"} 5
# TYPE ringside_drops counter
# HELP ringside_drops Records and keys for which there was no room.
ringside_drops_total{program="4",machine="w\"1"} 1
# TYPE ringside_firings counter
# HELP ringside_firings Firings of probes.
ringside_firings_total{program="4",machine="w\"1"} 30
# TYPE ringside_missed_traps counter
# HELP ringside_missed_traps Traps that fired nothing, as nobody answered in time.
ringside_missed_traps_total{program="4",machine="w\"1"} 2
# TYPE ringside_records counter
# HELP ringside_records Records that the program has made.
ringside_records_total{program="4"} 12
# TYPE ringside_records_not_shown counter
# HELP ringside_records_not_shown Records that its page was not sent.
ringside_records_not_shown_total{program="4"} 1
# EOF
)");
}

TEST(WebMetrics, RangesBelowZeroEndWithTheirOwnValue) {
  const std::string record = R"({"machine":"m","output":[
    {"aggregation-name":"q","aggregation-function":"quantize","aggregation-data":[
      {"keys":[],"buckets":[{"value":-8,"count":0},{"value":-4,"count":2},{"value":-2,"count":1},{"value":-1,"count":0},{"value":0,"count":1}]}]},
    {"aggregation-name":"l","aggregation-function":"lquantize","aggregation-data":[
      {"keys":[],"buckets":[{"value":-10,"count":2},{"value":-5,"count":1},{"value":0,"count":0}]}]}]})";

  const ProgramMetrics program{1, 100, 0, 0, {record}};
  const std::string text = open_metrics(std::span(&program, 1), {});

  // -7 to -4, -3 to -2, -1; and -10 to -6.
  for (const char* const line : {"\"q\",le=\"-4.0\"} 2\n", "\"q\",le=\"-2.0\"} 3\n",
                                 "\"q\",le=\"-1.0\"} 3\n", "\"l\",le=\"-6.0\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace ringside::cli
