#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/output/fake_program_for_tests.h"
#include "cli/output/output.h"
#include "cli/output/structured_writer.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

using testing_support::action;
using testing_support::entry;
using testing_support::kInt;
using testing_support::kString;
using testing_support::on_aggregation;
using Json = nlohmann::json;
using dif::ActionKind;
using dif::ValueKind;
using dif::ValueType;

/// The keywords that our schema uses, and no other. Answers what is wrong, empty when nothing is.
class SchemaCheck {
 public:
  explicit SchemaCheck(Json schema) : root_(std::move(schema)) {}

  std::string check(const Json& value) const { return check(root_, value, "$"); }
  std::string check_record(const Json& value) const {
    return check(root_["$defs"]["record"], value, "$");
  }

 private:
  static bool has_type(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == value.type_name();
  }
  std::string check(const Json& schema, const Json& value, const std::string& at) const {
    if (schema.contains("$ref")) {
      const std::string path = schema["$ref"].get<std::string>().substr(1);
      return check(root_.at(Json::json_pointer(path)), value, at);
    }
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return at + ": not one of the enum";
    }
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      const bool any = std::any_of(types.begin(), types.end(),
                                   [&](const Json& type) { return has_type(value, type); });
      if (!any) return at + ": is a " + value.type_name();
    }
    if (value.is_array() && schema.contains("items")) return check_items(schema, value, at);
    return value.is_object() ? check_members(schema, value, at) : std::string();
  }
  std::string check_items(const Json& schema, const Json& value, const std::string& at) const {
    for (std::size_t i = 0; i < value.size(); ++i) {
      auto wrong = check(schema["items"], value[i], at + '[' + std::to_string(i) + ']');
      if (!wrong.empty()) return wrong;
    }
    return {};
  }
  std::string check_members(const Json& schema, const Json& value, const std::string& at) const {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return at + ": lacks " + name.dump();
    }
    const Json known = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      if (known.contains(name)) {
        auto wrong = check(known[name], member, at + '.' + name);
        if (!wrong.empty()) return wrong;
      } else if (schema.contains("additionalProperties")) {
        return at + ": has an unknown " + name;
      }
    }
    return {};
  }

  Json root_;
};

class Structured : public testing_support::OutputFixture {
 protected:
  /// One record of everything, a fault, a drop, an aggregation for the end.
  std::string everything(OutputFormat format) {
    settings_.format = format;
    dif::TypeShape number;
    number.kind = dif::TypeShape::Kind::Integer;
    number.name = "int";
    number.size = 4;
    number.is_signed = true;
    dif::TypeShape point;
    point.kind = dif::TypeShape::Kind::Struct;
    point.name = "struct point";
    point.size = 8;
    point.members = {{"x", 0, 0, 0}, {"y", 0, 32, 0}};
    program_.mutable_program().shapes = {number, point};
    const auto counts = program_.aggregation(dif::AggregateFunction::Count);
    program_.aggregation(dif::AggregateFunction::Quantize);
    auto printf = action(ActionKind::Printf), print = action(ActionKind::Print);
    printf.format = "%s: %d\n";
    print.shapes = {1};
    const ValueType text{ValueKind::String, false, 0}, bytes{ValueKind::Bytes, false, 8};
    const ValueType stack{ValueKind::KernelStack, false, 8}, sym{ValueKind::KernelSymbol, false, 8};
    const auto ecb =
        program_.add({"fbt", "vmlinux", "vfs_read", "entry"},
                     {printf, print, action(ActionKind::Trace), action(ActionKind::Trace),
                      action(ActionKind::Tracemem), on_aggregation(ActionKind::Printa, counts),
                      action(ActionKind::Exit)},
                     {{0, 0, 0, 8, text},
                      {0, 1, 8, 4, kInt},
                      {1, 0, 12, 8, bytes},
                      {2, 0, 20, 8, stack},
                      {3, 0, 28, 8, sym},
                      {4, 0, 36, 8, bytes},
                      {6, 0, 44, 4, kInt}});
    dif::TraceData trace_data;
    trace_data.aggregates = {entry(0, "cat", 12), entry(1, "ls", 0)};
    trace_data.aggregates[1].words.assign(127, 0);
    trace_data.aggregates[1].words[64] = 3;
    std::vector<std::byte> data(48);
    std::memcpy(data.data(), "a<\xff\x01\"&,", 8);
    data[8] = data[9] = data[10] = data[11] = std::byte{0xff};
    data[12] = std::byte{5};
    data[20] = std::byte{0x10};
    data[28] = std::byte{0x10};
    data[44] = std::byte{3};
    trace_data.records.push_back({ecb, 1, 12345, data});
    trace_data.faults = {{ecb, 0, 12346, 2, {FaultKind::BadAddress, 12, 0x10}}};
    trace_data.drops.resize(1);
    trace_data.drops[0][0] = 7;
    trace_data.clause_drops = {{0, dif::DropKind::Principal, 0, 6}};
    output().consume(trace_data);
    output().finish();
    return OutputFixture::text();
  }

  static SchemaCheck schema() {
    std::ifstream file(SCHEMA);
    return SchemaCheck(Json::parse(file));
  }
};

TEST_F(Structured, JsonIsOneDocumentThatItsSchemaAllows) {
  const Json document = Json::parse(everything(OutputFormat::Json));

  EXPECT_EQ(schema().check(document), "");
  const Json& probes = document["dtrace"]["probes"];
  ASSERT_EQ(probes.size(), 4u);
  const Json& first = probes[0];
  EXPECT_EQ(first["timestamp"], 12345);
  EXPECT_EQ(first["machine"], "guest");
  EXPECT_EQ(first["cpu"], 1);
  EXPECT_EQ(first["function"], "vfs_read");
  EXPECT_EQ(first["output"], Json::parse(R"([
    {"message": "a<\ufffd\u0001\"&,: -1\n"},
    {"type": "string", "value": "a<\ufffd\u0001\"&,"},
    {"type": "int32_t", "value": -1},
    {"type": "struct point", "value": {"x": 5, "y": 0}},
    {"stack-frames": [{"address": "0x10", "name": "vmlinux`f+0x10", "module": "vmlinux",
                       "symbol": "f", "offset": 16}]},
    {"sym": "vmlinux`f"},
    {"tracemem": "0000000000000000"},
    {"aggregation-data": [{"keys": ["cat"], "count": 12}], "aggregation-name": "_",
     "aggregation-function": "count"},
    {"exit": 3}])"));
}

TEST_F(Structured, AggregationsAreShownMeanwhileWhenTheyHaveChanged) {
  settings_.format = OutputFormat::JsonLines;
  program_.aggregation(dif::AggregateFunction::Count);
  dif::TraceData trace_data;
  constexpr int kKeys = 1200;  // 200 more than are shown
  for (int i = 0; i < kKeys; ++i)
    trace_data.aggregates.push_back(entry(0, fmt::format("key {}", i), i));

  const std::string path = testing::TempDir() + "meanwhile.jsonl";
  std::filesystem::remove(path);
  Sink sink = *Sink::append_to(path);
  Output output = *Output::create(program_, settings_, sink);

  EXPECT_FALSE(output.show_aggregations_meanwhile());
  output.consume(trace_data);
  EXPECT_TRUE(output.show_aggregations_meanwhile());
  EXPECT_FALSE(output.show_aggregations_meanwhile()) << "nothing has changed";
  EXPECT_TRUE(output.finish());
  sink.flush();

  std::ifstream lines(path);
  std::string meanwhile, end, more;
  std::getline(lines, meanwhile);
  std::getline(lines, end);
  EXPECT_FALSE(std::getline(lines, more)) << more;
  const Json first = Json::parse(meanwhile), last = Json::parse(end);
  EXPECT_EQ(schema().check({{"dtrace", {{"probes", {first, last}}}}}), "");
  EXPECT_EQ(first["name"], "MEANWHILE");
  EXPECT_EQ(first["output"][0]["left-out"], 200);
  EXPECT_EQ(first["output"][0]["aggregation-data"].size(), 1000u);
  EXPECT_EQ(first["output"][0]["aggregation-data"][0]["count"], 200);
  EXPECT_EQ(last["name"], "AGGREGATIONS");
  EXPECT_EQ(last["output"][0]["aggregation-data"].size(), 1200u);
  EXPECT_FALSE(last["output"][0].contains("left-out"));
}

TEST_F(Structured, AnIntegerOf128BitsIsANumberWhere64HoldIt) {
  settings_.format = OutputFormat::JsonLines;
  dif::TypeShape wide;
  wide.kind = dif::TypeShape::Kind::Integer;
  wide.name = "unsigned __int128";
  wide.size = 16;
  program_.mutable_program().shapes = {wide};
  auto print = action(ActionKind::Print);
  print.shapes = {0};
  const ValueType bytes{ValueKind::Bytes, false, 16};
  const auto ecb = program_.add({"fbt", "vmlinux", "vfs_read", "entry"}, {print, print},
                                {{0, 0, 0, 16, bytes}, {1, 0, 16, 16, bytes}});
  fire(ecb, std::array<std::uint64_t, 4>{7, 0, 5, 0xab});
  output().finish();

  const Json tree = Json::parse(OutputFixture::text());

  EXPECT_EQ(tree["output"][0]["value"], 7) << tree.dump();
  EXPECT_EQ(tree["output"][1]["value"], "0xab0000000000000005") << tree.dump();
}

TEST_F(Structured, ClearAndTruncAreTold) {
  settings_.format = OutputFormat::JsonLines;
  const auto counts = program_.aggregation(dif::AggregateFunction::Count);
  auto keep = on_aggregation(ActionKind::Trunc, counts);
  keep.has_argument = true;
  keep.argument = static_cast<std::uint64_t>(-3);
  const auto ecb = program_.add(
      {"profile", "", "", "tick-1s"},
      {on_aggregation(ActionKind::Clear, counts), on_aggregation(ActionKind::Trunc, counts), keep});
  fire(ecb);
  output().finish();

  const Json tree = Json::parse(OutputFixture::text());

  EXPECT_EQ(schema().check_record(tree), "");
  EXPECT_EQ(tree["output"],
            Json::parse(R"([{"clear": "_"}, {"trunc": "_"}, {"trunc": "_", "keep": -3}])"));
}

TEST_F(Structured, PercentilesHaveBothEndsOfTheirBucket) {
  settings_.format = OutputFormat::JsonLines;
  const auto values = program_.aggregation(dif::AggregateFunction::Lquantize);
  program_.mutable_program().aggregations[values].parameters =
      dif::LinearParameters{0, 10, 10}.pack();
  auto percentile = on_aggregation(ActionKind::Percentile, values);
  percentile.text = "50,99.9";
  const auto ecb = program_.add({"profile", "", "", "tick-1s"}, {percentile});
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(values, "cat", 0)};
  trace_data.aggregates[0].words.assign(12, 0);
  trace_data.aggregates[0].words[6] = trace_data.aggregates[0].words[11] = 1;
  output().consume(trace_data);
  fire(ecb);
  output().finish();

  std::string line = OutputFixture::text();
  line.resize(line.find('\n'));
  const Json tree = Json::parse(line);

  EXPECT_EQ(schema().check_record(tree), "");
  EXPECT_EQ(tree["output"], Json::parse(R"([{
    "aggregation-percentiles": [{"keys": ["cat"], "percentiles": [
      {"percentile": 50.0, "low": 50, "high": 59}, {"percentile": 99.9, "low": 100}]}],
    "aggregation-name": "_", "aggregation-function": "lquantize"}])"));
}

TEST_F(Structured, APictureIsMadeOfTheSameRecords) {
  settings_.format = OutputFormat::Folded;
  dif::Aggregation& stacks = program_.mutable_program().aggregations.emplace_back();
  stacks.function = dif::AggregateFunction::Count;
  stacks.keys = {kString, {ValueKind::KernelStack, false, 16}};
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(0, "cat", 12)};
  const std::array<std::uint64_t, 2> frames{0xffff'ffff'8100'0000, 0};
  const auto bytes = std::as_bytes(std::span(frames));
  auto& key = trace_data.aggregates[0].key;
  key.insert(key.end(), bytes.begin(), bytes.end());
  output().consume(trace_data);

  ASSERT_TRUE(output().finish());

  EXPECT_EQ(OutputFixture::text(), "cat;vmlinux`f 12\n");
}

TEST_F(Structured, APictureOfNothingIsAnError) {
  settings_.format = OutputFormat::Flame;
  EXPECT_FALSE(Output::create(program_, settings_, sink_)) << "no aggregation can be drawn";
  dif::Aggregation& stacks = program_.mutable_program().aggregations.emplace_back();
  stacks.function = dif::AggregateFunction::Count;
  stacks.keys = {{ValueKind::KernelStack, false, 16}};

  const auto done = output().finish();

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::NotFound);
}

TEST_F(Structured, FaultsDropsAndLateAggregationsAreRecords) {
  const Json probes = Json::parse(everything(OutputFormat::Json))["dtrace"]["probes"];

  EXPECT_EQ(probes[1]["timestamp"], 12346);
  EXPECT_EQ(probes[1]["error"]["address"], "0x10");
  EXPECT_EQ(probes[1]["error"]["offset"], 12);
  EXPECT_EQ(probes[2]["name"], "DROP");
  EXPECT_EQ(probes[2]["timestamp"], 12346) << "that of the latest firing, which failed";
  EXPECT_EQ(probes[2]["kind"], "principal");
  EXPECT_EQ(probes[2]["count"], 7);
  EXPECT_EQ(probes[2]["msg"], "7 drops on CPU 0");
  EXPECT_EQ(probes[2]["clauses"], Json::parse(R"([{"line": 0, "count": 6}])"));
  EXPECT_EQ(probes[3]["name"], "AGGREGATIONS");
  EXPECT_EQ(probes[3]["output"][0]["aggregation-data"][0]["buckets"],
            Json::parse(R"([{"value": 0, "count": 0}, {"value": 1, "count": 3},
                            {"value": 2, "count": 0}])"));
}

TEST_F(Structured, JsonLinesAreARecordEach) {
  const std::string text = everything(OutputFormat::JsonLines);

  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    const std::size_t end = text.find('\n', at);
    ASSERT_NE(end, text.npos);
    EXPECT_EQ(schema().check_record(Json::parse(text.substr(at, end - at))), "");
    at = end + 1;
  }
  EXPECT_EQ(lines, 4u);
}

TEST_F(Structured, ADocumentWithoutRecordsIsStillOne) {
  settings_.format = OutputFormat::Json;

  output().finish();

  EXPECT_EQ(Json::parse(OutputFixture::text()), Json::parse(R"({"dtrace": {"probes": []}})"));
}

TEST_F(Structured, XmlNestsAndEscapes) {
  const std::string text = everything(OutputFormat::Xml);

  EXPECT_TRUE(
      text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dtrace>\n  <probes>\n"
                       "    <timestamp>12345</timestamp>\n"));
  EXPECT_TRUE(text.ends_with("</dtrace>\n"));
  EXPECT_NE(text.find("<message>a&lt;\xef\xbf\xbd\xef\xbf\xbd&quot;&amp;,: -1\n</message>"),
            text.npos);
  EXPECT_NE(text.find("<x>5</x>"), text.npos);
}

TEST_F(Structured, HtmlIsATableWithEscapedCells) {
  const std::string text = everything(OutputFormat::Html);

  EXPECT_TRUE(text.starts_with("<!DOCTYPE html>\n"));
  EXPECT_TRUE(text.ends_with("</html>\n"));
  EXPECT_NE(text.find("<td>12345</td><td>guest</td><td>1</td>"), text.npos);
  EXPECT_NE(text.find("<dd>a&lt;"), text.npos);
  EXPECT_EQ(text.find("a<\xff"), text.npos);
}

TEST_F(Structured, CsvHasARowForEachScalar) {
  const std::string text = everything(OutputFormat::Csv);

  EXPECT_TRUE(
      text.starts_with("timestamp,machine,cpu,id,provider,module,function,name,field,value\r\n"
                       "12345,guest,1,1,fbt,vmlinux,vfs_read,entry,output.0.message,"
                       "\"a<\xef\xbf\xbd\x01\"\"&,: -1\n\"\r\n"));
  EXPECT_NE(text.find("entry,output.3.value.x,5\r\n"), text.npos);
  EXPECT_NE(text.find("entry,output.7.aggregation-data.0.keys.0,cat\r\n"), text.npos);
}

/// Keeps the records as they are.
class KeepingWriter final : public RecordWriter {
 public:
  explicit KeepingWriter(std::vector<Tree>& kept) : kept_(kept) {}
  void record(Tree&& tree) override { kept_.push_back(std::move(tree)); }
  Result<std::vector<std::string>> finish() override { return {}; }

 private:
  std::vector<Tree>& kept_;
};

TEST_F(Structured, AWriterOfOnesOwnGetsTreesAndFaultsAndDropsAreNoLines) {
  const auto counts = program_.aggregation(dif::AggregateFunction::Count);
  const auto ecb = program_.add({"fbt", "vmlinux", "vfs_read", "entry"},
                                {action(ActionKind::Trace)}, {{0, 0, 0, 4, kInt}});
  const ProgramView* const view = &program_;
  std::vector<Tree> kept;
  auto output =
      Output::create(std::span(&view, 1), settings_, sink_, std::make_unique<KeepingWriter>(kept));
  ASSERT_TRUE(output);
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(counts, "cat", 12)};
  const std::vector<std::byte> bytes(4, std::byte{1});
  trace_data.records.push_back({ecb, 1, 12345, bytes});
  trace_data.faults = {{ecb, 0, 12346, 2, {FaultKind::BadAddress, 12, 0x10}}};
  trace_data.drops.resize(1);
  trace_data.drops[0][0] = 7;

  output->consume(trace_data);
  output->show_aggregations();

  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept[0]["output"][0]["value"], 0x01010101);
  EXPECT_TRUE(kept[1].contains("error"));
  EXPECT_EQ(kept[2]["count"], 7);
  EXPECT_EQ(kept[3]["output"][0]["aggregation-data"][0]["count"], 12);
  EXPECT_EQ(output->take_messages(), std::vector<std::string>{});
  EXPECT_EQ(output->take_drops(), std::vector<std::string>{});
  EXPECT_EQ(output->drops(0), 7u);
}

TEST(ValidUtf8, ReplacesWhatIsNone) {
  EXPECT_EQ(valid_utf8("a\xc3\xa9\xf0\x9f\x98\x80"), "a\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(valid_utf8("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd") << "overlong";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80").size(), 9u) << "a surrogate";
  EXPECT_EQ(valid_utf8("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd") << "cut short";
}

}  // namespace
}  // namespace ringside::cli
