#include "cli/draw.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace ringside::cli {
namespace {

constexpr const char* kRecord =
    R"({"timestamp": 1, "machine": "web", "provider": "fbt", "name": "entry", "output": []})";

/// How many records there are, or the error.
std::string read(const std::string& text) {
  std::istringstream input(text);
  std::size_t records = 0;
  const auto drops = read_records(input, "a.jsonl", [&](const Tree&) -> Result<void> {
    ++records;
    return {};
  });
  return drops ? std::to_string(records) : drops.error().message;
}

TEST(ReadRecords, TakesALineEach) {
  const std::string record = kRecord;

  EXPECT_EQ(read(""), "0");
  EXPECT_EQ(read(record + '\n' + record + "\n\n"), "2");
  EXPECT_EQ(read(record + '\n' + record), "2") << "without a newline at the end";
  EXPECT_EQ(read(R"({"pad": ")" + std::string(3 << 20, 'x') + R"(", )" + record.substr(1)), "1")
      << "longer than what is read at once";
}

TEST(ReadRecords, NamesTheLineThatIsNone) {
  const std::string record = kRecord;
  const std::string no_json = "it is no JSON: cut off, damaged, or no output of -O jsonl";

  EXPECT_EQ(read(record + "\n" + record.substr(0, 40)), "a.jsonl: line 2: " + no_json);
  EXPECT_EQ(read("{\"dtrace\": {\"probes\": [\n"), "a.jsonl: line 1: " + no_json);
  EXPECT_EQ(read(record + "\n\n3\n"), "a.jsonl: line 3: it is no record of -O jsonl");
  EXPECT_EQ(read("{}"), "a.jsonl: line 1: it is no record of -O jsonl");
  EXPECT_EQ(read(std::string(5, '\0')), "a.jsonl: line 1: " + no_json);
}

TEST(ReadRecords, IsNotTakenInByHostileRecords) {
  const std::string deep(1'000'000, '[');
  std::string many = kRecord;
  many.pop_back();
  for (int i = 0; i < 100'000; ++i) many += ", \"k" + std::to_string(i) + "\": 1";

  EXPECT_EQ(read(deep), "a.jsonl: line 1: it nests too deep for a record of -O jsonl");
  EXPECT_EQ(read(many + '}'), "1") << "objects of ours look members up one after the other";
}

TEST(ReadRecords, KeepsTheMembersOfStructuresUpToABound) {
  const auto with = [](int members) {
    std::string value = "{\"k\": 1";
    for (int i = 0; i < members; ++i) value += ", \"k" + std::to_string(i) + "\": {\"a\": 2}";
    return R"({"timestamp": 1, "provider": "fbt", "name": "entry", "output": [{"value": )" + value +
           R"(}, "other": 1}]})";
  };
  std::istringstream input(with(2));
  std::string output;
  ASSERT_TRUE(read_records(input, "a", [&](const Tree& record) -> Result<void> {
    output = record["output"].dump();
    return {};
  }));

  EXPECT_EQ(output, R"([{"value":{"k":1,"k0":{"a":2},"k1":{"a":2}}}])");
  EXPECT_EQ(read(with(20'000)),
            "a.jsonl: line 1: the structures in it have more than 20000 members");
}

TEST(ReadRecords, CountsDropsAndPassesErrorsOn) {
  std::istringstream input(
      R"({"timestamp": 1, "provider": "dtrace", "name": "DROP", "count": 7, "total": 7})"
      "\n"
      R"({"timestamp": 1, "provider": "dtrace", "name": "DROP", "count": -1, "total": 7})");
  const auto take = [](const Tree&) -> Result<void> { return {}; };
  EXPECT_EQ(read_records(input, "a", take), 7u);

  std::istringstream again(kRecord);
  const auto refuse = [](const Tree&) -> Result<void> { return fail(ErrorCode::Invalid, "no"); };
  const auto refused = read_records(again, "a", refuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a: line 1: no");
}

}  // namespace
}  // namespace ringside::cli
