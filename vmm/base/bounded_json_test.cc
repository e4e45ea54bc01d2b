#include "vmm/base/bounded_json.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside {
namespace {

std::string nested(std::size_t levels, char open, char close) {
  return std::string(levels, open) + std::string(levels, close);
}

TEST(BoundedJson, IsJson) {
  EXPECT_EQ(parse_bounded(R"({"a": [1, {"b": null}], "c": "[["})"),
            nlohmann::json({{"a", {1, {{"b", nullptr}}}}, {"c", "[["}}));
  EXPECT_EQ(parse_bounded<nlohmann::ordered_json>(R"({"b": 1, "a": 2})").dump(),
            R"({"b":1,"a":2})");
  for (const char* text : {"", "{", "nul", "[1,]", "{} {}", "\xff", "\"\xc3\""}) {
    EXPECT_TRUE(parse_bounded(text).is_discarded()) << text;
  }
}

TEST(BoundedJson, HasNoMoreLevelsThanAreGoodForTheStack) {
  EXPECT_TRUE(parse_bounded(nested(kMostJsonLevels, '[', ']')).is_array());
  EXPECT_TRUE(parse_bounded(nested(kMostJsonLevels + 2, '[', ']')).is_discarded());
  EXPECT_TRUE(parse_bounded(nested(1'000'000, '[', ']')).is_discarded());
  EXPECT_TRUE(parse_bounded("{\"a\": " + nested(1'000'000, '[', ']') + "}").is_discarded());
  EXPECT_TRUE(parse_bounded(std::string(1'000'000, '[')).is_discarded());
}

}  // namespace
}  // namespace ringside
