#include "cli/options/settings.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/options/option_rows.h"
#include "cli/options/option_values.h"

namespace ringside::cli {
namespace {

using std::chrono::nanoseconds;

TEST(Size, TakesEachSuffixInEitherCase) {
  EXPECT_EQ(parse_size("12"), 12u);
  EXPECT_EQ(parse_size("4k"), 4096u);
  EXPECT_EQ(parse_size("3M"), 3u << 20);
  EXPECT_EQ(parse_size("2g"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_size("1T"), std::uint64_t{1} << 40);
}

TEST(Size, RefusesWhatIsNotOne) {
  for (const char* bad : {"", "k", "4q", "4kk", "-1", " 4", "99999999999t"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(Rate, IsAnIntervalOrAFrequency) {
  EXPECT_EQ(parse_rate("100hz"), nanoseconds(10'000'000));
  EXPECT_EQ(parse_rate("4"), nanoseconds(250'000'000));
  EXPECT_EQ(parse_rate("5ns"), nanoseconds(5));
  EXPECT_EQ(parse_rate("5usec"), nanoseconds(5'000));
  EXPECT_EQ(parse_rate("10ms"), nanoseconds(10'000'000));
  EXPECT_EQ(parse_rate("2m"), nanoseconds(120'000'000'000));
  EXPECT_EQ(parse_rate("1d"), nanoseconds(86'400'000'000'000));
}

TEST(Rate, OfZeroIsAsOftenAsCanBe) {
  for (const char* zero : {"0", "0hz", "0ms"}) EXPECT_EQ(parse_rate(zero), nanoseconds(0)) << zero;
}

TEST(Rate, RefusesUnknownUnits) {
  for (const char* bad : {"", "5x", "0x", "hz", "99999999999999d"}) {
    EXPECT_FALSE(parse_rate(bad)) << bad;
  }
}

TEST(Number, TakesThreeBasesAndNothingElse) {
  EXPECT_EQ(parse_number("10"), 10u);
  EXPECT_EQ(parse_number("0x10"), 16u);
  EXPECT_EQ(parse_number("010"), 8u);
  EXPECT_EQ(parse_number("0"), 0u);
  for (const char* bad : {"", "0x", "1x", "-1", "+1", "09"}) EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(Option, SetsByDtracesName) {
  Settings settings;

  ASSERT_TRUE(apply_option_argument(settings, "quiet"));
  ASSERT_TRUE(apply_option_argument(settings, "bufsize=64k"));
  ASSERT_TRUE(apply_option_argument(settings, "strsize=1k"));
  ASSERT_TRUE(apply_option_argument(settings, "switchrate=10hz"));
  ASSERT_TRUE(apply_option_argument(settings, "aggsortkeypos=2"));

  EXPECT_TRUE(settings.quiet);
  EXPECT_EQ(settings.engine.buffer_size, 64u << 10);
  EXPECT_EQ(settings.engine.string_size, 1024u);
  EXPECT_EQ(settings.switch_interval, nanoseconds(100'000'000));
  EXPECT_EQ(settings.sort_key_position, 2u);
}

std::string complaint(std::string_view argument) {
  Settings settings;
  const auto done = apply_option_argument(settings, argument);
  return done ? std::string() : done.error().message;
}

TEST(Option, FlagCanBeTurnedOffAgain) {
  Settings settings;
  ASSERT_TRUE(apply_option_argument(settings, "quiet=on"));
  ASSERT_TRUE(apply_option_argument(settings, "quiet=off"));

  EXPECT_FALSE(settings.quiet);
  EXPECT_FALSE(apply_option_argument(settings, "quiet=perhaps"));
}

TEST(Option, MistakesHaveDtracesWords) {
  EXPECT_EQ(complaint("wombats=25"), "failed to set -x wombats: Invalid option name");
  EXPECT_EQ(complaint("bufsize=100wombats"),
            "failed to set -x bufsize: Invalid value for specified option: a size such as 4k");
  EXPECT_EQ(complaint("bufpolicy=round"),
            "failed to set -x bufpolicy: Invalid value for specified option: one of switch, ring "
            "and fill");
  for (const char* bad : {"maxslow=0", "maxslow=101", "maxslow=most", "maxrate=0", "maxrate=1hz"}) {
    EXPECT_FALSE(complaint(bad).empty()) << bad;
  }
  EXPECT_EQ(complaint("zdefs=yes"),
            "failed to set -x zdefs: Invalid value for specified option: it takes none");
}

TEST(Option, ABadValueIsAnsweredWithWhatItHasToBe) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"strsize=abc", "a size such as 4k, from 2 to 65536 bytes"},
      {"quiet=maybe", "yes or no"},
      {"aggrate=often", "a rate such as 10hz, or an interval such as 100ms"},
      {"stackframes=-1", "a number from 0 to 2048"},
      {"cpu=one", "a CPU's number, or all"},
      {"oformat=yaml",
       "one of text, json, jsonl, xml, html, csv, folded, flame, speedscope, heatmap and perfetto"},
      {"encoding=latin1", "ascii or utf8"},
      {"late=soon", "one of all, dynamic and static"},
      {"maxslow=101", "a percentage from 1 to 100"},
      {"maxrate=fast", "traps a second, or none"},
      {"setenv=x", ""},
      {"setenv==x", "NAME=VALUE"},
      {"amin=Nice", "attributes such as Evolving/Evolving/Common"},
      {"bootargs=", "it may not be empty"},
      {"sysroot=", "it may not be empty"},
  };
  for (const auto& [argument, wanted] : cases) {
    const std::string said = complaint(argument);
    EXPECT_EQ(said.empty(), wanted.empty()) << argument;
    EXPECT_TRUE(said.ends_with(wanted)) << said;
  }
}

TEST(Option, AMisspelledNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(complaint("strsiz=1"),
            "failed to set -x strsiz: Invalid option name; did you mean strsize?");
  EXPECT_EQ(complaint("aggsortrv"),
            "failed to set -x aggsortrv: Invalid option name; did you mean aggsortrev?");
}

TEST(Option, WhatCanMeanNothingSaysWhy) {
  EXPECT_EQ(complaint("zone=global"), "failed to set -x zone: Linux has no zones");
}

TEST(Option, WhatChangesNothingIsTakenIfItIsWellFormed) {
  for (const char* const taken :
       {"aggpercpu", "core", "evaltime=main", "late=dynamic", "lazyload", "linkmode=static",
        "linktype=dof", "lockmem=unlimited", "pgmax=8", "preallocate=4m", "pspec", "strip"}) {
    EXPECT_EQ(complaint(taken), "") << taken;
  }
  for (const char* const refused : {"late=never", "linkmode=x", "linktype=coff", "strip=1"}) {
    EXPECT_NE(complaint(refused), "") << refused;
  }
}

TEST(Option, WhatComesBeforeTheProgramCannotBeSetByIt) {
  Settings settings;
  const auto done = apply_option(settings, "incdir", "/tmp", OptionSource::Program);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "Option cannot be used from within a D program");
}

TEST(Option, OfASavedProgramIsWhatAPragmaMaySet) {
  const auto may_set = [](std::string_view name, OptionSource source) {
    Settings settings;
    const auto done = apply_option(settings, name, "no such value", source);
    return done || done.error().message != "Option cannot be used from within a D program";
  };
  for (const OptionRow& row : option_rows()) {
    if (row.name.empty()) continue;
    EXPECT_TRUE(may_set(row.name, OptionSource::CommandLine)) << row.name;
    EXPECT_EQ(may_set(row.name, OptionSource::SavedProgram),
              may_set(row.name, OptionSource::Program))
        << row.name;
  }
  Settings settings;
  const auto done = apply_option(settings, "bootargs", "x", OptionSource::SavedProgram);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "Option cannot be used from within a D program");
}

TEST(Option, VersionsAreThoseThatThereWere) {
  EXPECT_EQ(complaint("version=1.2.1"), "");
  EXPECT_EQ(complaint("version=1.2.9"),
            "failed to set -x version: Requested version is not supported by compiler");
  EXPECT_EQ(complaint("version=one"),
            "failed to set -x version: Version is not properly formatted or is too large");
}

TEST(Option, EveryOneOfDtracesIsKnownOnce) {
  std::set<std::string_view> names;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(row.name.empty() || names.insert(row.name).second) << row.name;
  }
  for (const std::string_view name : refused_names()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    Settings settings;
    const auto done = apply_option(settings, name, "", OptionSource::CommandLine);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code, ErrorCode::Unsupported) << name;
  }
  for (const char* const ours :
       {"aggmerge", "bootargs", "channel", "demangle", "jit", "jumpprobes", "maxrate", "maxslow",
        "meanwhile", "pcapfile", "pollthreads", "rawtext", "record", "recordfull", "sealed",
        "sysroot", "threads"}) {
    EXPECT_EQ(names.erase(ours), 1u) << ours;
  }
  EXPECT_EQ(names.size(), 97u);
}

TEST(Option, OnlyDynamicOnesChangeWhileTracing) {
  Settings settings;

  EXPECT_TRUE(apply_option(settings, "quiet", "", OptionSource::Setopt));
  const auto fixed = apply_option(settings, "bufsize", "1m", OptionSource::Setopt);

  EXPECT_TRUE(settings.quiet);
  ASSERT_FALSE(fixed);
  EXPECT_EQ(fixed.error().message, "Operation illegal when tracing is active");
}

TEST(Option, ProgramsAreMachineCodeUnlessJitIsOff) {
  Settings settings;
  EXPECT_TRUE(settings.engine.jit);

  ASSERT_TRUE(apply_option(settings, "jit", "no", OptionSource::CommandLine));

  EXPECT_FALSE(settings.engine.jit);
}

TEST(Option, StringSizeHasLimits) {
  EXPECT_NE(complaint("strsize=1"), "");
  EXPECT_EQ(complaint("strsize=2"), "");
  EXPECT_EQ(complaint("strsize=64k"), "");
  EXPECT_NE(complaint("strsize=65537"), "");
}

TEST(Option, RatesAreBroughtIntoDtracesBounds) {
  Settings settings;
  ASSERT_TRUE(apply_option_argument(settings, "cleanrate=1000000hz"));
  EXPECT_EQ(settings.engine.clean_interval, 200'000u);
  ASSERT_TRUE(apply_option_argument(settings, "cleanrate=1h"));
  EXPECT_EQ(settings.engine.clean_interval, 60'000'000'000u);
  ASSERT_TRUE(apply_option_argument(settings, "statusrate=1d"));
  EXPECT_EQ(settings.status_interval, std::chrono::seconds(10));
}

TEST(Option, PreprocessorDefinitionsKeepTheirOrder) {
  Settings settings;
  for (const char* option : {"define=A=1", "undef=A", "incdir=/inc", "cppargs=-C  -P", "cpp"}) {
    ASSERT_TRUE(apply_option_argument(settings, option)) << option;
  }

  const PreprocessorSettings& cpp = settings.preprocessor;
  EXPECT_TRUE(cpp.wanted);
  EXPECT_EQ(cpp.definitions, (std::vector<std::string>{"-DA=1", "-UA", "-I/inc"}));
  EXPECT_EQ(cpp.arguments, (std::vector<std::string>{"-C", "-P"}));
}

TEST(Option, VersionsAreReadAndBoundedByOurs) {
  Settings settings;
  ASSERT_TRUE(apply_option_argument(settings, "version=1.6.3"));
  EXPECT_EQ(settings.version, (std::array<unsigned, 3>{1, 6, 3}));
  for (const char* bad : {"1", "1.", "1.x", "1.2.3.4", "", "9.0", "-1.0"}) {
    EXPECT_FALSE(apply_option_argument(settings, std::string("version=") + bad)) << bad;
  }
}

TEST(Option, TheBudget) {
  Settings settings;
  EXPECT_EQ(settings.budget.max_rate, std::nullopt);
  EXPECT_EQ(settings.budget.max_slow, std::nullopt);
  ASSERT_TRUE(apply_option_argument(settings, "maxrate=20000/s"));
  ASSERT_TRUE(apply_option_argument(settings, "maxslow=90%"));

  EXPECT_EQ(settings.budget.max_rate, 20000u);
  EXPECT_EQ(settings.budget.max_slow, 90u);
  ASSERT_TRUE(apply_option_argument(settings, "maxrate=none"));
  EXPECT_TRUE(apply_option(settings, "maxslow", "100", OptionSource::Program));
  EXPECT_FALSE(settings.budget.limits());
}

TEST(Option, ASealedProgramMayNotChangeTheHostOrTheWaits) {
  Settings settings;
  settings.destructive = true;  // by the environment
  ASSERT_TRUE(apply_option_argument(settings, "maxslow=50"));
  ASSERT_TRUE(apply_option_argument(settings, "sealed"));

  EXPECT_FALSE(settings.destructive);
  for (const char* name :
       {"cpp", "ctypes", "destructive", "dtypes", "maxrate", "maxslow", "oformat"}) {
    for (const OptionSource source : {OptionSource::Program, OptionSource::SavedProgram}) {
      const auto done = apply_option(settings, name, "1", source);
      ASSERT_FALSE(done) << name;
      EXPECT_TRUE(done.error().message.starts_with("it may change the host")) << name;
    }
  }
  EXPECT_FALSE(settings.destructive);
  EXPECT_EQ(settings.budget.max_slow, 50u);
  EXPECT_TRUE(apply_option(settings, "strsize", "64", OptionSource::Program));
  EXPECT_FALSE(apply_option(settings, "sealed", "no", OptionSource::Program));
}

TEST(Option, PoliciesAttributesAndFormats) {
  Settings settings;
  ASSERT_TRUE(apply_option_argument(settings, "bufpolicy=ring"));
  ASSERT_TRUE(apply_option_argument(settings, "bufresize=manual"));
  ASSERT_TRUE(apply_option_argument(settings, "amin=stable/Evolving/common"));
  ASSERT_TRUE(apply_option_argument(settings, "oformat=jsonl"));
  ASSERT_TRUE(apply_option_argument(settings, "setenv=A=b=c"));
  ASSERT_TRUE(apply_option_argument(settings, "cpu=3"));

  EXPECT_EQ(settings.engine.buffer_policy, dif::BufferPolicy::Ring);
  EXPECT_EQ(settings.engine.buffer_resize, dif::BufferResize::Manual);
  EXPECT_EQ(settings.attribute_minimum->data, dif::Stability::Evolving);
  EXPECT_EQ(settings.format, OutputFormat::JsonLines);
  EXPECT_EQ(settings.environment[0], (std::pair<std::string, std::string>{"A", "b=c"}));
  EXPECT_EQ(settings.engine.cpu, 3u);
}

}  // namespace
}  // namespace ringside::cli
