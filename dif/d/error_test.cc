// Programs that must not compile: tag, words, line and column.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

struct Case {
  const char* source;
  const char* start;  // of the message
};

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, WithItsTagAndReason) {
  const std::string message = error_of(GetParam().source);

  EXPECT_TRUE(message.starts_with(GetParam().start)) << GetParam().source << "\n" << message;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Refused,
    testing::Values(
        Case{"BEGIN { trace(x); }",
             "[D_IDENT_UNDEF] line 1: failed to resolve x: Unknown variable name\n"},
        Case{"BEGIN { trace(self->x); }",
             "[D_VAR_UNDEF] line 1: self->x has not yet been declared or assigned\n"},
        Case{"BEGIN\n{ foo(); }", "[D_FUNC_UNDEF] line 2: undefined function name: foo\n"},
        Case{"BEGIN { trace(1) \n", "[D_SYNTAX] line 1: syntax error near end of input\n"},
        Case{"BEGIN { trace(1) trace(2); }", "[D_SYNTAX] line 1: syntax error near \"trace\"\n"},
        Case{"BEGIN { trace(1.5); }",
             "[D_SYNTAX] line 1: floating-point constants are not permitted\n"},
        Case{"BEGIN { trace(\"abc); }",
             "[D_SYNTAX] line 1: end-of-file encountered before end of string"},
        Case{"BEGIN { trace(\"abc\n\"); }", "[D_STR_NL] line 1: "},
        Case{"BEGIN { trace(''); }", "[D_CHR_NULL] line 1: "},
        Case{"BEGIN { trace(089); }", "[D_INT_DIGIT] line 1: "},
        Case{"BEGIN { trace(99999999999999999999); }", "[D_INT_OFLOW] line 1: "},
        Case{"nosuch:::probe { }",
             "[D_PDESC_ZERO] line 1: probe description nosuch:::probe does not match any probes\n"},
        Case{"a:b:c:d:e:f { }", "[D_PDESC_INVAL] line 1: "}, Case{"", "[D_EMPTY] line 1: "},
        Case{"/* nothing */", "[D_EMPTY] line 1: "},
        Case{"BEGIN { trace(1 / 0); }",
             "[D_DIV_ZERO] line 1: expression contains division by zero\n"},
        Case{"BEGIN { pid = 1; }", "[D_OP_WRITE] line 1: "},
        Case{"BEGIN { 1 = 2; }", "[D_OP_LVAL] line 1: "},
        Case{"BEGIN { NULL = 1; }", "[D_OP_LVAL] line 1: "},
        Case{"BEGIN { x = 1; x = \"a\"; }", "[D_OP_INCOMPAT] line 1: "},
        Case{"BEGIN { trace(-execname); }", "[D_OP_ARITH] line 1: "},
        Case{"BEGIN { trace(*pid); }", "[D_DEREF_NONPTR] line 1: "},
        Case{"BEGIN { trace(*(void *)0); }", "[D_DEREF_VOID] line 1: "},
        Case{"BEGIN { x = 1; trace(&x); }", "[D_ADDROF_VAR] line 1: "},
        Case{"fbt:::entry { trace(args[1]->nope); }",
             "[D_TYPE_MEMBER] line 1: nope is not a member of struct task_struct; it has pid, "
             "state, "
             "balance, comm, file, counts, total\n"},
        Case{"fbt:::entry { trace(args[7]); }", "[D_ARGS_IDX] line 1: "},
        Case{"BEGIN { trace(args[0]); }", "[D_ARGS_IDX] line 1: "},
        Case{"fbt:::entry { trace(args[4]); }",
             "[D_ARGS_TYPE] line 1: args[4] of type struct task_struct is not supported yet\n"},
        Case{"fbt::: { trace(args[0]); }",
             "[D_ARGS_MULTI] line 1: args[ ] may not be referenced because probe description "
             "fbt::: matches an unstable set of probes\n"},
        Case{
            "fbt:::entry,BEGIN { trace(args[0]); }",
            "[D_ARGS_IDX] line 1: index 0 is out of range for dtrace:::BEGIN args[ ]: no types are "
            "known, use arg0 to arg9 (in this clause for :::BEGIN)\n"},
        Case{"BEGIN { print(*(struct later *)0); }",
             "[D_TYPE_ERR] line 1: a value of type struct later cannot be used here\n"},
        Case{
            "io:::start { trace(args[0]); }",
            "[D_ARGS_XLATOR] line 1: translator for args[0] from type struct task_struct * to type "
            "struct buf * is not defined\n"},
        Case{"BEGIN { trace(self); }",
             "[D_IDENT_BADREF] line 1: scope 'self' may not be referenced as scalar\n"},
        Case{"BEGIN /this/ { }", "[D_IDENT_BADREF] line 1: scope 'this' may not "},
        Case{"BEGIN { x = this - 1; }", "[D_IDENT_BADREF] line 1: scope 'this' may not "},
        Case{"BEGIN { self 5; }", "[D_SYNTAX] line 1: syntax error near \"5\"\n"},
        Case{"fbt:::entry { trace(&args[1]->state); }", "[D_ADDROF_BITFIELD] line 1: "},
        Case{"fbt:::entry { trace(sizeof(args[1]->state)); }", "[D_SIZEOF_BITFIELD] line 1: "},
        Case{"BEGIN { a[1] = 1; a[1, 2] = 2; }", "[D_PROTO_LEN] line 1: "},
        Case{"BEGIN { a[1] = 1; trace(a[\"x\"]); }", "[D_PROTO_ARG] line 1: "},
        Case{"BEGIN { this->a[1] = 1; }", "[D_ARR_LOCAL] line 1: "},
        Case{"BEGIN { trace(strlen()); }",
             "[D_PROTO_LEN] line 1: strlen( ) prototype mismatch: 0 args passed, 1 expected\n"},
        Case{"BEGIN { trace(strlen(1)); }", "[D_PROTO_ARG] line 1: "},
        Case{"BEGIN { x = trace(1); }", "[D_OP_INCOMPAT] line 1: "},
        Case{"BEGIN { printf(\"%d\"); }", "[D_PRINTF_ARG_PROTO] line 1: "},
        Case{"BEGIN { printf(\"%d\", 1, 2); }", "[D_PRINTF_ARG_EXTRA] line 1: "},
        Case{"BEGIN { printf(\"%s\", 1); }", "[D_PRINTF_ARG_TYPE] line 1: "},
        Case{"BEGIN { printf(\"\"); }", "[D_PRINTF_FMT_EMPTY] line 1: "},
        Case{"BEGIN { @a = count(); @a = sum(1); }",
             "[D_AGG_REDEF] line 1: aggregation redefined: @a: current: sum( ), previous: "},
        Case{"BEGIN { @a = pid; }", "[D_AGG_FUNC] line 1: "},
        Case{"BEGIN { @a = strlen(execname); }", "[D_AGG_FUNC] line 1: "},
        Case{"BEGIN { @a = sum(execname); }", "[D_AGG_SCALAR] line 1: "},
        Case{"BEGIN { printa(@nope); }",
             "[D_PRINTA_AGGBAD] line 1: undefined aggregation: @nope\n"},
        Case{"BEGIN { @ = lquantize(1, 10, 5); }", "[D_LQUANT_MISMATCH] line 1: "},
        Case{"BEGIN { @ = llquantize(1, 10, 0, 30, 20); }", "[D_LLQUANT_MAGTOOBIG] line 1: "},
        Case{"BEGIN { tracemem(arg0, 0); }", "[D_TRACEMEM_SIZE] line 1: "},
        Case{"BEGIN { trace(`untyped); }", "[D_SYM_NOTYPES] line 1: "},
        Case{"BEGIN { trace(`each_cpus.pid); }",
             "[D_SYM_NOTYPES] line 1: each CPU has its own `each_cpus: the one of the CPU that "
             "fires is *(struct task_struct *)((uintptr_t)&`each_cpus + `__per_cpu_offset[cpu])\n"},
        Case{"BEGIN { trace($1); }", "[D_MACRO_UNDEF] line 1: "},
        Case{"#pragma D nonsense\nBEGIN { }", "[D_PRAGMA_INVAL] line 1: "},
        Case{"struct s { int x; }; struct s { int y; }; BEGIN { }", "[D_DECL_TYPERED] line 1: "},
        Case{"/* never closed",
             "[D_SYNTAX] line 1: end-of-file encountered before matching */\n"}));

TEST(Diagnostics, OfDeclarationsComeBeforeLaterClausesAndTheirSyntax) {
  for (const char* source : {"struct s { struct t m; };\nBEGIN { = }",
                             "struct s { struct t m; };\nBEGIN { trace(\"a\nb\"); }",
                             "struct s { struct t m; }; BEGIN { x = nothing; }"}) {
    EXPECT_TRUE(error_of(source).starts_with("[D_DECL_INCOMPLETE] line 1: ")) << source;
  }
  EXPECT_TRUE(error_of("BEGIN { x = nothing; }\nstruct s { struct t m; };")
                  .starts_with("[D_DECL_INCOMPLETE] line 2: "));
  EXPECT_TRUE(error_of("BEGIN { x = nothing; }\nEND { = }").starts_with("[D_SYNTAX] line 2: "));
}

TEST(Diagnostics, OfNamesComeBeforeThoseOfActions) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"printf(\"%d\"); x = nothing;", "D_IDENT_UNDEF"},
      {"printf(\"%d\"); trace();", "D_PROTO_LEN"},
      {"printf(\"%d %d\", sizeof(v.a));", "D_SIZEOF_BITFIELD"},
      {"pid ? trace() : trace(1);", "D_PROTO_LEN"},
      {"pid ? printf() : trace(1);", "D_PROTO_LEN"},
      {"pid ? trace(nothing) : trace(1);", "D_IDENT_UNDEF"},
      {"pid ? trace(2) : trace(1);", "D_OP_ACT"},
  };
  for (const auto& [body, tag] : cases) {
    const std::string message = error_of("struct { int a : 3; } v; BEGIN { " + body + " }");
    EXPECT_TRUE(message.starts_with("[" + tag + "]")) << body << "\n" << message;
  }
}

TEST(Diagnostics, OfAggregationsThatNobodyAssigned) {
  for (const char* body : {"@a;", "x = @a + 1;", "x = @a ? 1 : 2;", "x = &@a;"}) {
    EXPECT_TRUE(error_of(std::string("BEGIN { ") + body + " }").starts_with("[D_IDENT_UNDEF]"))
        << body;
  }
  EXPECT_TRUE(error_of("BEGIN { @a = count(); x = @a + 1; }").starts_with("[D_OP_INCOMPAT]"));
  EXPECT_TRUE(error_of("BEGIN { @a = count(); &@a; }").starts_with("[D_ADDROF_VAR]"));
  EXPECT_TRUE(error_of("int x; char *p; BEGIN { x -= p; }").starts_with("[D_OP_VFPTR]"));
}

TEST(Diagnostics, OfUnknownTypesNameThem) {
  for (const char* source :
       {"BEGIN { x = (nosuch_t)1; }", "BEGIN { x = (nosuch_t *)arg0; }",
        "BEGIN { x = (nosuch_t **) arg0; }", "BEGIN { x = sizeof(nosuch_t *); }", "nosuch_t x;",
        "nosuch_t *x;", "nosuch_t * x;", "nosuch_t x[4];", "self nosuch_t x;",
        "this const nosuch_t *x;", "extern nosuch_t x;", "typedef nosuch_t foo_t;",
        "struct s { int a; nosuch_t x; };", "int f(nosuch_t x);", "int f(int, nosuch_t *x);",
        "inline nosuch_t X = 1;", "translator nosuch_t < int *p > { x = 1; };",
        "BEGIN { x = xlate<nosuch_t *>(arg0)->m; }", "BEGIN { x = offsetof(nosuch_t, m); }"}) {
    const std::string message = error_of(source);
    EXPECT_TRUE(message.starts_with(
        "[D_SYNTAX] line 1: failed to resolve type nosuch_t: Unknown type name\n"))
        << source << "\n"
        << message;
  }
}

TEST(Diagnostics, OfOtherSyntaxStayAsTheyAre) {
  for (const char* source :
       {"BEGIN { trace(x) trace(2); }", "BEGIN { if x; }", "typedef int foo bar;", "int x y;",
        "BEGIN { x = 1 2; }", "BEGIN { = }"}) {
    EXPECT_NE(error_of(source).find("syntax error near \""), std::string::npos) << source << "\n"
                                                                                << error_of(source);
  }
}

TEST(Diagnostics, ShowWhatIsPrintable) {
  const std::string message =
      error_of("BEGIN { x = \"\u00e4\xff\x1b[31m\"; trace(1\x01\xc2\x9b); }");

  EXPECT_NE(message.find("\nBEGIN { x = \"\u00e4\\377\\033[31m\"; trace(1\\001\\302\\233); }\n" +
                         std::string(36, ' ') + "^ column 32"),
            std::string::npos)
      << message;
  EXPECT_TRUE(message.starts_with("[D_SYNTAX] line 1: syntax error near \"\\001\"\n")) << message;
}

TEST(Diagnostics, OfArgumentsOfNoProbeSayThatThereIsNone) {
  CompileOptions options;
  options.allow_zero_matches = true;

  EXPECT_TRUE(error_of("nosuch:::probe { trace(args[0]); }", options)
                  .starts_with("[D_ARGS_NONE] line 1: args[ ] may not be referenced because "
                               "nosuch:::probe matches no probe\n"));
}

TEST(Scopes, MayStandApartFromTheirArrows) {
  const Outcome out =
      run("BEGIN { self /* of */ -> /* it */ y = 3; this\n->z = 5;\n"
          "trace(self->y); trace(this->z); }");

  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.values, (std::vector<Recorded>{3, 5}));
}

TEST(Diagnostics, ShowTheLineWithACaretUnderTheColumn) {
  const Outcome out = run("BEGIN\n{\n\ttrace(1 + nope);\n}\n");

  EXPECT_EQ(out.error,
            "line 3: failed to resolve nope: Unknown variable name\n"
            "\ttrace(1 + nope);\n"
            "\t          ^ column 12");
}

TEST(Diagnostics, FollowTheLineMarkersOfThePreprocessor) {
  const Outcome out = run("# 70 \"script.d\"\nBEGIN { trace(nope); }\n");

  EXPECT_EQ(out.error,
            "line 70: failed to resolve nope: Unknown variable name\n"
            "BEGIN { trace(nope); }\n"
            "              ^ column 15");
}

TEST(Diagnostics, DoNotRepeatBytesThatATerminalObeys) {
  const Outcome out = run("BEGIN { trace(\x1b[2J); }");

  EXPECT_EQ(out.error.find('\x1b'), std::string::npos);
}

TEST(Limits, AChainOfConditionsIsNoNesting) {
  std::string any = "pid == -1", all = "1", mixed = "0";
  for (int i = 2; i < 5000; ++i) {
    any += fmt::format(" || pid == -{}", i);
    all += fmt::format(" && pid != -{}", i);
    mixed += fmt::format(" || pid == -{} && (arg0 || arg1)", i);
  }
  const auto fires = [](const std::string& predicate) {
    const Outcome outcome = run("BEGIN /" + predicate + "/ { trace(1); }");
    EXPECT_EQ(outcome.error.substr(0, 200), "");
    return !outcome.values.empty();
  };
  EXPECT_FALSE(fires(any));
  EXPECT_TRUE(fires(any + " || 1"));
  EXPECT_TRUE(fires(all));
  EXPECT_FALSE(fires(all + " && 0"));
  EXPECT_FALSE(fires(mixed));
  EXPECT_TRUE(fires("(" + any + ") ^^ (" + all + ")"));
}

TEST(Limits, DeepNestingIsAnErrorNotACrash) {
  const std::string parentheses(10'000, '('), close(10'000, ')');
  std::string sum = "1", structs = "int x;", blocks = "trace(1);";
  for (int i = 0; i < 5000; ++i) {
    sum += " + 1";
    structs = "struct { " + structs + " } x;";
    blocks = "if (1) { " + blocks + " }";
  }
  const std::string stars(10'000, '*'), bangs(20'000, '!');

  for (const std::string& source :
       {"BEGIN { trace(" + parentheses + "1" + close + "); }", "BEGIN { trace(" + sum + "); }",
        "struct s { " + structs + " }; BEGIN { }", "BEGIN { " + blocks + " }",
        "int " + stars + "x; BEGIN { }", "BEGIN { trace(" + bangs + "1); }",
        "BEGIN { trace(" + parentheses + "1); }"}) {
    EXPECT_TRUE(error_of(source).starts_with("[D_SYNTAX] line 1: ")) << source.substr(0, 40);
  }
}

TEST(Limits, GrowingInlinesAreBounded) {
  std::string source = "inline int i0 = pid;\n";
  for (int i = 1; i < 40; ++i) {
    const std::string previous = "i" + std::to_string(i - 1);
    source += "inline int i" + std::to_string(i) + " = " + previous + " + " + previous + ";\n";
  }

  EXPECT_TRUE(error_of(source + "BEGIN { trace(i39); }").starts_with("[D_UNKNOWN] line "));
}

TEST(Limits, LongChainsOfInlinesAreBoundedToo) {
  std::string constants = "inline int i0 = 1;\n", variables = "inline int i0 = pid;\n";
  for (int i = 1; i < 4000; ++i) {
    const std::string line =
        "inline int i" + std::to_string(i) + " = i" + std::to_string(i - 1) + " + 1;\n";
    constants += line;
    variables += line;
  }

  EXPECT_EQ(error_of(constants + "BEGIN { trace(i3999); }"), "");
  EXPECT_TRUE(error_of(variables + "BEGIN { trace(i3999); }").starts_with("[D_UNKNOWN] line "));
}

/// The text of a message after its tag and line.
std::string said(std::string_view source) {
  const std::string message = error_of(source);
  const std::size_t begin = message.find(": ");
  return begin == message.npos ? message
                               : message.substr(begin + 2, message.find('\n') - begin - 2);
}

TEST(Refusal, NamesTheNearestOfWhatThereIs) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"BEGIN { @ = coutn(); }", "undefined function name: coutn; did you mean count?"},
      {"BEGIN { prinft(\"a\"); }", "undefined function name: prinft; did you mean printf?"},
      {"BEGIN { trace(strlne(execname)); }",
       "undefined function name: strlne; did you mean strlen?"},
      {"BEGIN { trace(exename); }",
       "failed to resolve exename: Unknown variable name; did you mean execname?"},
      {"BEGIN { total = 1; trace(totla); }",
       "failed to resolve totla: Unknown variable name; did you mean total?"},
      {"BEGIN { self->start = 1; trace(self->satrt); }",
       "self->satrt has not yet been declared or assigned; did you mean start?"},
      {"BEGIN { @reads = count(); printa(@raeds); }", ""},
      {"BEGIN { @reads = count(); clear(@raeds); }", ""},
      {"fbt:::entry { trace(args[1]->stat); }", ""},
      {"BEGIN { trace(whatever); }", "failed to resolve whatever: Unknown variable name"},
  };
  for (const auto& [source, text] : cases) {
    if (text.empty()) {
      EXPECT_NE(said(source).find("; did you mean "), std::string::npos) << said(source);
    } else {
      EXPECT_EQ(said(source), text);
    }
  }
}

TEST(Refusal, OfANameThatIsAssignedLaterSaysWhereAndHowToDeclareIt) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"BEGIN /s/ { } END { s = 1; }",
       "failed to resolve s: Unknown variable name; it is assigned later, at column 21: declare "
       "`int s;` before"},
      {"BEGIN { trace(who); }\nEND { who = execname; }",
       "failed to resolve who: Unknown variable name; it is assigned later, on the next line at "
       "column 7: declare `string who;` before"},
      {"BEGIN { trace(n); }\n\nEND { n++; }",
       "failed to resolve n: Unknown variable name; it is assigned later, 2 lines further down at "
       "column 7: declare `int64_t n;` before"},
      {"BEGIN { trace(t); t = timestamp; }",
       "failed to resolve t: Unknown variable name; it is assigned later, at column 19: declare "
       "`uint64_t t;` before"},
      {"BEGIN { trace(self->t); self->t = 1; }",
       "self->t has not yet been declared or assigned; it is assigned later, at column 25: declare "
       "`self int t;` before"},
      {"BEGIN { trace(p); p = curthread; }",
       "failed to resolve p: Unknown variable name; it is assigned later, at column 19: declare it "
       "before"},
  };
  for (const auto& [source, text] : cases) EXPECT_EQ(said(source), text);
  EXPECT_EQ(error_of("int s; self int t; BEGIN /s && self->t/ { } END { s = 1; self->t = 2; }"),
            "");
}

}  // namespace
}  // namespace ringside::d
