// --help, the page ringside(1) and the completions as they are made from options.def.
#include "cli/options/option_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cli/options/option_rows.h"

namespace ringside::cli {
namespace {

using testing::HasSubstr;

/// The file that is installed for this template.
std::string made_from(const std::string& path) {
  std::ifstream file(SOURCE_ROOT "/" + path);
  EXPECT_TRUE(file) << path;
  return fill_page(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// The page without fonts, with plain hyphens.
std::string manual() {
  const std::string page = made_from("docs/man/ringside.1.in");
  return std::regex_replace(page, std::regex(R"(\\f[BIR]|\\(?=-))"), "");
}

std::string page_section(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find(heading + "\n");
  EXPECT_NE(begin, page.npos) << heading;
  return begin == page.npos ? "" : page.substr(begin, page.find("\n.S", begin) - begin);
}

/// Whether the option begins a line, or follows another one there.
bool is_label(const std::string& text, const std::string& flag) {
  return std::regex_search(text, std::regex("(^|\n|, )(  )?" + flag + "($|[\n ,=\\[])"));
}

TEST(Help, FitsIntoATerminalAndBeginsWithTheCommands) {
  const std::string help = help_text("ringside");

  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_LT(help.find("\nCommands"), help.find("\nPrograms"));
  for (const CommandRow& command : command_rows()) {
    EXPECT_NE(help.find("\n  " + std::string(command.name) + ' '), help.npos) << command.name;
  }
  EXPECT_THAT(help, HasSubstr("-qmp unix:PATH,server=on,wait=off"));
}

TEST(Help, HasTheOptionsOfALineWithTheirValues) {
  const std::string help = help_text("ringside");

  for (const OptionRow& row : option_rows()) {
    if (row.flag().empty()) continue;
    const bool has_size = row.letter == '3' || row.letter == '6';
    const std::string flag = row.flag() + (has_size ? std::string(row.value) : "");
    EXPECT_TRUE(is_label(help, flag)) << flag;
  }
  EXPECT_THAT(help, HasSubstr("\n  --memory SIZE     memory (512m)\n"));
  EXPECT_THAT(help, HasSubstr("\n  -32, -64, -B      no effect\n"));
  EXPECT_THAT(help, HasSubstr("\n  -x channel=auto|spin|exit\n"
                              "                    how traps reach ringside\n"));
}

TEST(Usage, HasTheLettersAsDtraceWritesThem) {
  const std::string usage = usage_text("ringside");

  EXPECT_THAT(usage, HasSubstr("Usage: ringside [-32|-64] [-aABCdeFGhHlOqSvVwZ] [-b bufsz]"));
}

TEST(Manual, HasEachOptionOnceUnderTheTimeAtWhichItMayBeSet) {
  const std::string page = manual();
  const std::string compiling = page_section(page, ".SS While programs are compiled");
  const std::string running = page_section(page, ".SS While programs run");
  const std::string any_time = page_section(page, ".SS At any time");

  for (const OptionRow& row : option_rows()) {
    if (row.name.empty()) continue;
    const std::string name(row.name);
    const bool is_run = row.when == When::Run || row.when == When::RunFirst;
    EXPECT_EQ(is_label(running, name), is_run) << name;
    EXPECT_EQ(is_label(any_time, name), row.when == When::Dynamic) << name;
    const bool ignored = row.when == When::Ignored || row.when == When::IgnoredFirst;
    const bool is_compiled = row.when == When::Compile || row.when == When::CompileFirst;
    EXPECT_EQ(
        is_label(compiling, name) || std::regex_search(compiling, std::regex(' ' + name + "[,.]")),
        is_compiled || ignored)
        << name;
  }
  for (const std::string_view name : refused_names()) {
    EXPECT_THAT(compiling, HasSubstr(' ' + std::string(name)));
  }
}

TEST(Manual, SaysWhatEachOptionIsFor) {
  const std::string page = manual();

  EXPECT_THAT(page, HasSubstr(".TP\n-o file\nAppend the output to a file.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n--disk file[,ro]\nA raw file as a virtio disk;"));
  EXPECT_THAT(page, HasSubstr(".TP\nbufsize=size\nAs -b.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\njumpprobes[=no]\nUse jumps"));
  EXPECT_THAT(page, HasSubstr(".TP\nvms [-O json]\nList the virtual machines"));
  EXPECT_THAT(page, HasSubstr("ringside compile -o file [options]\n"));
  EXPECT_THAT(made_from("docs/man/ringside.1.in"),
              HasSubstr("\\fB\\-\\-cpus\\fR \\fIn\\fR\nVirtual CPUs"));
}

TEST(Manual, GivesEveryRowAText) {
  for (const OptionRow& row : option_rows()) {
    const bool ignored = row.when == When::Ignored || row.when == When::IgnoredFirst;
    EXPECT_EQ(row.help.empty() && row.manual.empty(), ignored) << row.flag() << row.name;
  }
}

TEST(Completions, OfferWhatIsOfUse) {
  for (const char* shell : {"ringside.bash.in", "_ringside.in"}) {
    const std::string completion = made_from(std::string("cli/completions/") + shell);
    const auto has_word = [&](const std::string& word) {
      return std::regex_search(completion,
                               std::regex("(^|[^A-Za-z0-9_-])" + word + "($|[^A-Za-z0-9_-])"));
    };
    for (const OptionRow& row : option_rows()) {
      EXPECT_TRUE(row.name.empty() || has_word(std::string(row.name))) << shell << row.name;
      // Those that are refused or change nothing are not offered.
      if (row.flag().empty() || std::string_view("36BaAGh").find(row.letter) != row.word.npos) {
        continue;
      }
      EXPECT_TRUE(has_word(row.flag())) << shell << ": " << row.flag();
    }
    EXPECT_FALSE(has_word("-G") || has_word("-A")) << shell;
    EXPECT_EQ(completion.find('@'), completion.rfind('@')) << shell << " has a key left";
  }
}

TEST(Completions, KnowTheKindsOfValues) {
  const std::string bash = made_from("cli/completions/ringside.bash.in");
  const std::string zsh = made_from("cli/completions/_ringside.in");

  EXPECT_THAT(bash, HasSubstr("--boot) COMPREPLY=($(compgen -W \"auto pvh bzimage\" --"));
  EXPECT_THAT(bash, HasSubstr("-I) compopt -o filenames; COMPREPLY=($(compgen -d --"));
  EXPECT_THAT(bash, HasSubstr(" bufsize= "));
  EXPECT_THAT(zsh, HasSubstr("'*--disk[a raw file as a virtio disk]:file[,ro]:_files'"));
  EXPECT_THAT(zsh, HasSubstr("'--console[the terminal is the guest'\\''s console]'"));
  EXPECT_THAT(zsh, HasSubstr("'--boot[how a kernel file is started]:auto|pvh|bzimage:(auto pvh "
                             "bzimage)'"));
}

TEST(Pages, WithAnUnknownKeyAreNotMade) {
  EXPECT_EQ(fill_page("a @NO_SUCH_KEY@ b"), "");
  EXPECT_EQ(fill_page("@[execname] and ${name[@]}: @COMMAND_NAMES@.").substr(0, 29),
            "@[execname] and ${name[@]}: v");
}

}  // namespace
}  // namespace ringside::cli
