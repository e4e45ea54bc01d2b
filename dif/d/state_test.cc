// Values that a clause keeps are as good after 10,000 firings as after one: by-reference values of
// every kind of variable, keys and translated structures, from the guest's memory and from D's.
#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

constexpr int kFirings = 10'000;

/// The values that the last firing of `body` traced; the clause runs kFirings times.
std::vector<Recorded> last_of(const std::string& declarations, const std::string& body) {
  const Outcome out =
      run(declarations + "long n; fbt::vfs_read:entry { n++; " + body +
              " } fbt::vfs_read:entry /n == " + std::to_string(kFirings) + "/ { trace(kept); }",
          {}, kFirings);
  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.faults.size(), 0u);
  return out.values;
}

using Values = std::vector<Recorded>;

TEST(KeptState, AStringOfTheGuestsInAGlobal) {
  EXPECT_EQ(last_of("string kept;", "kept = stringof(args[1]->file->f_name);"), Values{"hello"});
}

TEST(KeptState, ACharacterArrayOfTheGuestsAsAString) {
  EXPECT_EQ(last_of("string kept;", "kept = stringof(args[1]->comm);"), Values{"swapper/0"});
}

TEST(KeptState, AStringOfTheGuestsInAClauseLocal) {
  EXPECT_EQ(last_of("string kept; this string s;",
                    "this->s = stringof(args[1]->file->f_name); kept = strjoin(this->s, \"!\");"),
            Values{"hello!"});
}

TEST(KeptState, AStringOfTheGuestsInAThreadLocal) {
  EXPECT_EQ(last_of("string kept; self string s;",
                    "self->s = stringof(args[1]->file->f_name); kept = strjoin(self->s, \"!\");"),
            Values{"hello!"});
}

TEST(KeptState, AStringOfTheGuestsInAnArray) {
  EXPECT_EQ(last_of("string kept; string a[int];",
                    "a[n % 100] = stringof(args[1]->file->f_name); kept = a[(n + 50) % 100];"),
            Values{"hello"});
}

TEST(KeptState, AStringOfTheGuestsAsAKey) {
  EXPECT_EQ(last_of("int kept; int a[string, int];",
                    "a[stringof(args[1]->file->f_name), 1]++; "
                    "kept = a[stringof(args[1]->file->f_name), 1];"),
            Values{kFirings});
}

TEST(KeptState, AStringOfTheGuestsThatIsKeptOnlyOnceInAWhile) {
  EXPECT_EQ(last_of("string kept; string never;",
                    "kept = n % 7 == 0 ? \"seven\" : stringof(args[1]->file->f_name);"),
            Values{"hello"});
}

TEST(KeptState, AComparisonWithAStringOfTheGuests) {
  EXPECT_EQ(last_of("int kept;",
                    "kept += stringof(args[1]->file->f_name) == \"hello\" && "
                    "\"hello\" == stringof(args[1]->file->f_name);"),
            Values{kFirings});
}

TEST(KeptState, AStructureOfTheGuestsInAGlobal) {
  EXPECT_EQ(last_of("int kept; struct task_struct task;", "task = *args[1]; kept = task.pid;"),
            Values{4711});
}

TEST(KeptState, AStructureOfTheGuestsInAThreadLocal) {
  EXPECT_EQ(last_of("int kept; self struct task_struct task;",
                    "self->task = *args[1]; kept = self->task.counts[2];"),
            Values{30});
}

TEST(KeptState, AStructureOfTheGuestsInAnArray) {
  EXPECT_EQ(last_of("int kept; struct task_struct tasks[int];",
                    "tasks[n % 10] = *args[1]; kept = tasks[n % 10].counts[2];"),
            Values{30});
}

TEST(KeptState, ATranslatedStructureWithStrings) {
  EXPECT_EQ(last_of("string kept; struct shown { string name; int number; }; struct shown all; "
                    "translator struct shown < struct task_struct *t > "
                    "{ name = stringof(t->file->f_name); number = t->pid; };",
                    "all = xlate <struct shown> (args[1]); kept = all.name;"),
            Values{"hello"});
}

TEST(KeptState, AStringThatIsMadeOfItself) {
  EXPECT_EQ(last_of("string kept;",
                    "kept = n % 5 == 1 ? stringof(args[1]->file->f_name) : strjoin(kept, \"+\");"),
            Values{"hello++++"});
}

TEST(KeptState, StringsThatComeAndGoInAnArray) {
  EXPECT_EQ(last_of("string kept; string a[int];",
                    "a[n] = stringof(args[1]->file->f_name); kept = a[n]; a[n - 10] = 0;"),
            Values{"hello"});
}

}  // namespace
}  // namespace ringside::d
