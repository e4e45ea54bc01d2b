// Pointers into the memory of a process: `userland` in D, and what is read through such a pointer.
#include <gtest/gtest.h>

#include <string>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

const std::string kNode =
    "struct node { int id; char name[8]; unsigned low : 3, high : 5; struct node *next;"
    " char *text; int values[3]; };\n";

/// The statements, with this->n for the first node.
Outcome with_node(const std::string& statements) {
  return run(kNode + "BEGIN { this->n = (userland struct node *)(arg3 + 0x100); " + statements +
             " }");
}

Recorded value(const std::string& expression) {
  const Outcome outcome = with_node("trace(" + expression + ");");
  EXPECT_EQ(outcome.error, "") << expression;
  EXPECT_TRUE(outcome.faults.empty()) << expression;
  return outcome.values.size() == 1 ? outcome.values[0] : Recorded("no value");
}

Recorded number(std::int64_t n) {
  return n;
}
Recorded text(const std::string& s) {
  return s;
}

TEST(Userland, MembersAreReadFromTheProcess) {
  EXPECT_EQ(value("this->n->id"), number(-3));
  EXPECT_EQ(value("(*this->n).id"), number(-3));
  EXPECT_EQ(value("this->n->next->id"), number(-2));
  EXPECT_EQ(value("this->n[1].id"), number(-2));
  EXPECT_EQ(value("(this->n + 1)->id"), number(-2));
  EXPECT_EQ(value("this->n->next->next == NULL"), number(1));
}

TEST(Userland, ArraysAndBitFields) {
  EXPECT_EQ(value("this->n->values[1]"), number(-8));
  EXPECT_EQ(value("*(this->n->values + 2)"), number(9));
  EXPECT_EQ(value("this->n->low"), number(5));
  EXPECT_EQ(value("this->n->high"), number(21));
  EXPECT_EQ(value("this->n->name[1]"), number('i'));
  EXPECT_EQ(value("*&this->n->values[0]"), number(7));
}

TEST(Userland, TextIsCopied) {
  EXPECT_EQ(value("stringof(this->n->text)"), text("from user"));
  EXPECT_EQ(value("stringof(this->n->name)"), text("first"));
  EXPECT_EQ(value("(string)this->n->text"), text("from user"));
  EXPECT_EQ(value("strlen(this->n->text)"), number(9));
  EXPECT_EQ(value("strjoin(this->n->name, this->n->next->name)"), text("firstunended"));
  EXPECT_EQ(value("this->n->text == \"from user\""), number(1));
  EXPECT_EQ(value("this->n->name == \"last\""), number(0));
  EXPECT_EQ(value("this->n->id ? this->n->text : \"none\""), text("from user"));
  EXPECT_EQ(value("copyinstr(this->n->text, 4)"), text("from"));
}

TEST(Userland, NamesWithoutAnEndStopAtTheirs) {
  const Outcome outcome =
      run("struct node { char name[3]; };"
          "BEGIN { trace(stringof(((userland struct node *)(arg3 + 0x104))->name)); }");
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.values, std::vector<Recorded>{text("fir")});
}

TEST(Userland, VariablesHoldCopiesAndPointers) {
  EXPECT_EQ(with_node("self->p = this->n->next; trace(self->p->id);").values,
            std::vector<Recorded>{number(-2)});
  EXPECT_EQ(with_node("this->all = *this->n; trace(this->all.id); trace(this->all.values[2]);"
                      "trace(stringof(this->all.name));")
                .values,
            (std::vector<Recorded>{number(-3), number(9), text("first")}));
  EXPECT_EQ(with_node("seen[this->n->id, stringof(this->n->text)] = this->n->values[0];"
                      "trace(seen[-3, \"from user\"]);")
                .values,
            std::vector<Recorded>{number(7)});
  EXPECT_EQ(with_node("this->x = this->n->id; this->x++; trace(this->x);").values,
            std::vector<Recorded>{number(-2)});
}

TEST(Userland, CastsStayInTheProcess) {
  EXPECT_EQ(value("*(char *)this->n->text"), number('f'));
  EXPECT_EQ(value("((struct node *)this->n->next)->id"), number(-2));
  EXPECT_EQ(value("**(userland char **)(arg3 + 0x118)"), number('f'));
  EXPECT_EQ(value("(uintptr_t)this->n->next"), number(0x40'0130));
}

TEST(Userland, AKernelsPointerDoesNotReadAProcess) {
  const Outcome outcome = run(kNode + "BEGIN { trace(((struct node *)(arg3 + 0x100))->id); }");
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.faults.size(), 1U);
}

TEST(Userland, AnAddressThatIsNotMappedIsAFault) {
  const Outcome outcome = with_node("trace(this->n->next->next->id);");
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.faults.size(), 1U);
  EXPECT_EQ(with_node("trace(stringof((userland char *)8));").faults.size(), 1U);
}

TEST(Userland, IsReadAlone) {
  EXPECT_NE(with_node("this->n->id = 1;").error.find("copyout"), std::string::npos);
}

TEST(Userland, AStructureOfAProgramIsNotTheKernelsOfThatName) {
  EXPECT_NE(error_of("struct unknown; BEGIN { trace(((userland struct unknown *)arg3)->x); }")
                .find("forward declaration"),
            std::string::npos);
}

}  // namespace
}  // namespace ringside::d
