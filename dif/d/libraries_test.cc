// D libraries: order, what they depend on, and where their errors are reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

CompileOptions with(std::vector<LibrarySource> libraries) {
  CompileOptions options;
  options.libraries = std::move(libraries);
  return options;
}

TEST(Library, IsParsedBeforeTheProgram) {
  const Outcome out = run("BEGIN { trace(ANSWER); }", with({{"a.d", "inline int ANSWER = 42;\n"}}));

  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.values, std::vector<Recorded>{std::int64_t{42}});
}

TEST(Library, ComesBehindThoseItDependsOn) {
  const Outcome out =
      run("BEGIN { trace(sizeof(second_t)); }",
          with({{"b.d", "\n\t# pragma D depends_on library a.d\ntypedef first_t second_t;"},
                {"a.d", "typedef short first_t;"}}));

  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.values, std::vector<Recorded>{std::int64_t{2}});
}

TEST(Library, IsLeftOutWithoutWhatItDependsOn) {
  const auto options = with({{"a.d", "#pragma D depends_on module nosuch\ninline int A = 1;"},
                             {"b.d", "#pragma D depends_on library a.d\ninline int B = 1;"},
                             {"c.d", "#pragma D depends_on provider nosuch\ninline int C = 1;"},
                             {"d.d", "inline int D = 1;"}});

  for (const std::string name : {"A", "B", "C"}) {
    EXPECT_TRUE(error_of("BEGIN { trace(" + name + "); }", options).starts_with("[D_IDENT_UNDEF]"));
  }
  EXPECT_EQ(error_of("BEGIN { trace(D); }", options), "");
}

TEST(Library, ErrorsNameTheFile) {
  const std::string message =
      error_of("BEGIN { }", with({{"bad.d", "typedef int fine;\ninline int x = = 1;\n"}}));

  EXPECT_TRUE(
      message.starts_with("[D_SYNTAX] \"bad.d\", line 2: syntax error near \"=\"\n"
                          "inline int x = = 1;\n"))
      << message;
}

TEST(Library, ThatIsNotThereIsAnError) {
  const std::string message = error_of(
      "BEGIN { }", with({{"a.d", "inline int A = 1;\n#pragma D depends_on library b.d\n"}}));

  EXPECT_TRUE(message.starts_with("[D_PRAGMA_DEPEND] \"a.d\", line 2: ")) << message;
}

TEST(Library, CirclesAreErrors) {
  const std::string message =
      error_of("BEGIN { }", with({{"a.d", "#pragma D depends_on library b.d\n"},
                                  {"b.d", "#pragma D depends_on library a.d\n"}}));

  EXPECT_TRUE(message.starts_with("[D_PRAGMA_DEPEND] \"b.d\", line 1: ")) << message;
}

TEST(Library, MembersThatAKernelLacksMatterOnlyWhenUsed) {
  const auto options =
      with({{"a.d",
             "typedef struct info { int a; int b; } info_t;\n"
             "translator info_t < struct task_struct *t > { a = t->pid; b = t->nosuch; };\n"
             "inline info_t *me = xlate <info_t *> (curthread);"}});

  EXPECT_EQ(error_of("BEGIN { trace(me->a); }", options), "");
  EXPECT_TRUE(error_of("BEGIN { trace(me->b); }", options).starts_with("[D_TYPE_MEMBER] line 1: "));
}

TEST(Library, StandsInForVariablesOfAnotherSystemsKernel) {
  const auto options = with({{"genunix.d",
                              "inline int __genunix_freemem = 41;\n"
                              "inline int __genunix_load[int i] = i * 2;\n"
                              "inline int __genunix_number = 1;\n"}});

  const Outcome out =
      run("BEGIN { trace(`freemem + 1); trace((long)genunix`freemem); trace(unix`load[3]);"
          " trace(`number); }",
          options);

  ASSERT_EQ(out.error, "");
  const std::vector<Recorded> expected{std::int64_t{42}, std::int64_t{41}, std::int64_t{6},
                                       std::int64_t{-7}};
  EXPECT_EQ(out.values, expected) << "the kernel's own variable comes first";
  EXPECT_TRUE(error_of("BEGIN { trace(ext4`freemem); }", options).starts_with("[D_IDENT_UNDEF]"));
}

/// The library that is shipped, from the source folder.
std::vector<LibrarySource> shipped() {
  std::vector<LibrarySource> result;
  for (const auto& entry : std::filesystem::directory_iterator(D_LIBRARY_FOLDER)) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    result.push_back({entry.path().filename().string(), text.str()});
  }
  std::ranges::sort(result, {}, &LibrarySource::name);
  return result;
}

/// Programs are compiled without these files (cli/program/libraries.h).
TEST(OwnLibrary, FilesOfProvidersDefineProbesAndNothingElse) {
  const std::regex comment(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/)");
  const std::regex allowed(R"((\s*#pragma[^\n]*\n|\s*provider \w+ [\w\s",*]*;)+\s*)");
  int files = 0;
  for (const LibrarySource& library : shipped()) {
    if (!library.name.starts_with("provider_")) continue;
    ++files;
    std::string outside;
    int depth = 0;
    for (const char c : std::regex_replace(library.text, comment, "")) {
      if (c == '{') ++depth;
      if (depth == 0) outside += c;
      if (c == '}') --depth;
    }
    EXPECT_TRUE(std::regex_match(outside, allowed)) << library.name << ": " << outside;
  }
  EXPECT_GT(files, 10);
}

TEST(OwnLibrary, CompilesWithoutAGuest) {
  const CompileOptions options = with(shipped());
  const Outcome out = run(
      "BEGIN { trace(EPERM + SIGKILL); trace(R_RIP); trace(DTRACEFLT_DIVZERO); "
      "trace(curcpu->cpu_id);"
      " trace(curpsinfo->pr_fname); trace(curlwpsinfo->pr_sname); trace(sizeof(fileinfo_t) > 0);"
      " trace(O_RDWR | AF_INET6); }",
      options);

  ASSERT_EQ(out.error, "");
  ASSERT_EQ(out.faults.size(), 0U);
  const std::vector<Recorded> expected{std::int64_t{10}, std::int64_t{17},        std::int64_t{4},
                                       std::int64_t{0},  std::string("workload"), std::int64_t{'O'},
                                       std::int64_t{1},  std::int64_t{10}};
  EXPECT_EQ(out.values, expected);
}

}  // namespace
}  // namespace ringside::d
