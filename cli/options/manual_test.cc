// The page ringside-d(7) and the shells' completions know what the compiler and the providers know.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "dif/program/action_kind.h"
#include "dif/program/builtin.h"

namespace ringside::cli {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A manual page as its reader sees it, near enough: without fonts, with plain hyphens.
std::string page(const std::string& name) {
  const std::string source = text_of(std::string(SOURCE_ROOT "/docs/man/") + name);
  return std::regex_replace(source, std::regex(R"(\\f[BIRP])"), "");
}

bool has_word(const std::string& text, const std::string& word) {
  const std::regex whole("(^|[^A-Za-z0-9_-])" + word + "($|[^A-Za-z0-9_-])");
  return std::regex_search(text, whole);
}

/// The part of a page's source from this heading to the next one.
std::string section(const std::string& source, const std::string& heading) {
  const std::size_t begin = source.find(heading + "\n");
  EXPECT_NE(begin, source.npos) << heading;
  return begin == source.npos ? "" : source.substr(begin, source.find("\n.S", begin) - begin);
}

/// The names of all providers: of stable ones by D's libraries, of others by their sources.
std::set<std::string> provider_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SOURCE_ROOT "/dif/d/library")) {
    const std::regex defined(R"re((?:^|\n)provider ([a-z]+) \{)re");
    const std::string text = text_of(entry.path().string());
    for (std::sregex_iterator at(text.begin(), text.end(), defined), end; at != end; ++at) {
      names.insert((*at)[1]);
    }
  }
  const std::regex made(R"re(Provider\("([a-z]+)", (k|\{))re");
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SOURCE_ROOT "/providers")) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".cc") || path.ends_with("_test.cc")) continue;
    const std::string text = text_of(path);
    for (std::sregex_iterator at(text.begin(), text.end(), made), end; at != end; ++at) {
      names.insert((*at)[1]);
    }
  }
  return names;
}

TEST(Manual, HasEveryProvider) {
  const std::string manual = text_of(SOURCE_ROOT "/docs/man/ringside-d.7");
  const std::string probes = section(manual, ".SH PROBES");

  const auto names = provider_names();

  EXPECT_TRUE(names.contains("dtrace") && names.contains("fbt") && names.contains("vm"));
  ASSERT_GT(names.size(), 16u);
  for (const std::string& name : names) {
    EXPECT_NE(probes.find("\\fB" + name + "\\fR"), probes.npos) << name;
  }
}

TEST(Manual, HasEveryVariableAndSubroutineOfD) {
  const std::string manual = page("ringside-d.7");

  std::set<std::string> names;
#define DIF_BUILTIN(name, id, text, type, source) names.insert(text);
#define DIF_SUBROUTINE(name, id, text, result, least, most, a1, a2, a3, changes, call, reason) \
  if (std::string_view(reason).empty()) names.insert(text);
#include "dif/program/builtin.def"
  for (int n = 1; n < 9; ++n) names.erase("arg" + std::to_string(n));  // "arg0 to arg9"
  // Those of the libraries alone.
  std::erase_if(names, [](const std::string& name) { return name.starts_with("__"); });

  for (const std::string& name : names) EXPECT_TRUE(has_word(manual, name)) << name;
}

TEST(Manual, HasEveryActionAndAggregatingFunctionThatWorks) {
  const std::string manual = page("ringside-d.7");

  std::set<std::string> names;
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  if (dif::Changes::changes != dif::Changes::Guest) names.insert(text);
#define DIF_CODE_ACTION(number, text, least, most, value, bytes) names.insert(text);
#define DIF_AGGREGATING(function, number, text, least, most, result) names.insert(text);
#include "dif/program/actions.def"

  for (const std::string& name : names) EXPECT_TRUE(has_word(manual, name)) << name;
}

TEST(Tables, ActionsAreListedNowhereElse) {
  std::set<std::string> quoted, cases;
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  quoted.insert("\"" text "\"");                                                                 \
  cases.insert("case ActionKind::" #kind ":");
#define DIF_CODE_ACTION(number, text, least, most, value, bytes) quoted.insert("\"" text "\"");
#define DIF_AGGREGATING(function, number, text, least, most, result) quoted.insert("\"" text "\"");
#include "dif/program/actions.def"
  constexpr std::size_t kFew = 10;  // keys of structured output have some of these names

  std::size_t looked_at = 0;
  for (const char* folder : {"cli", "dif", "providers"}) {
    const std::string root = std::string(SOURCE_ROOT "/") + folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const std::string path = entry.path().string();
      const bool source = path.ends_with(".cc") || path.ends_with(".h");
      // identifier_table.cc says of names of all kinds since when D has them.
      if (!source || path.ends_with("_test.cc") || path.ends_with("/identifier_table.cc")) continue;
      const std::string text = text_of(path);
      const auto found = [&](const std::string& word) { return text.find(word) != text.npos; };
      EXPECT_LT(std::ranges::count_if(quoted, found), kFew) << path;
      EXPECT_LT(std::ranges::count_if(cases, found), kFew) << path;
      ++looked_at;
    }
  }
  EXPECT_GT(looked_at, 100u);
}

TEST(Completions, HaveEveryProvider) {
  const std::regex list(R"((_ringside_providers="|compadd )(dtrace [a-z ]+))");
  std::string expected;
  for (const std::string& name : provider_names()) expected += (expected.empty() ? "" : " ") + name;

  for (const char* shell : {"ringside.bash.in", "_ringside.in"}) {
    const std::string completion = text_of(std::string(SOURCE_ROOT "/cli/completions/") + shell);
    std::smatch found;
    ASSERT_TRUE(std::regex_search(completion, found, list)) << shell;
    EXPECT_EQ(found[2], expected) << shell;
  }
}

}  // namespace
}  // namespace ringside::cli
