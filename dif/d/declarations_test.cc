// Declarations: types, variables, constants, and what is refused.
#include <gtest/gtest.h>

#include <array>

#include "dif/d/testing/program_runner.h"
#include "dif/d/types/system_types.h"

namespace ringside::d {
namespace {

struct BadDeclaration {
  const char* source;
  const char* tag;
};

class DeclarationRefused : public testing::TestWithParam<BadDeclaration> {};

TEST_P(DeclarationRefused, WithItsTag) {
  const std::string message = error_of(std::string(GetParam().source) + "\nBEGIN { }");

  EXPECT_TRUE(message.starts_with("[" + std::string(GetParam().tag) + "] line 1: "))
      << GetParam().source << "\n"
      << message;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, DeclarationRefused,
    testing::Values(
        BadDeclaration{"int a[0x7fffffff];", "D_DECL_ARRBIG"},
        BadDeclaration{"int a[];", "D_DECL_ARRNULL"}, BadDeclaration{"int a[-1];", "D_DECL_ARRSUB"},
        BadDeclaration{"int a[0];", "D_DECL_ARRSUB"},
        BadDeclaration{"int a[\"x\"];", "D_DECL_ARRSUB"},
        BadDeclaration{"int a[pid];", "D_DECL_ARRSUB"},
        BadDeclaration{"auto int x;", "D_DECL_BADCLASS"},
        BadDeclaration{"static int x;", "D_DECL_BADCLASS"},
        BadDeclaration{"register int x;", "D_DECL_BADCLASS"},
        BadDeclaration{"struct s { int x : pid; };", "D_DECL_BFCONST"},
        BadDeclaration{"struct s { int x : -1; };", "D_DECL_BFCONST"},
        BadDeclaration{"struct s { int x : 0; };", "D_DECL_BFCONST"},
        BadDeclaration{"struct s { int x : 33; };", "D_DECL_BFSIZE"},
        BadDeclaration{"struct s { string x : 3; };", "D_DECL_BFTYPE"},
        BadDeclaration{"struct s { int *x : 3; };", "D_DECL_BFTYPE"},
        BadDeclaration{"short char c;", "D_DECL_CHARATTR"},
        BadDeclaration{"long char c;", "D_DECL_CHARATTR"},
        BadDeclaration{"extern typedef int x;", "D_DECL_CLASS"},
        BadDeclaration{"self this int x;", "D_DECL_CLASS"},
        BadDeclaration{"int char x;", "D_DECL_COMBO"},
        BadDeclaration{"signed unsigned x;", "D_DECL_COMBO"},
        BadDeclaration{"short long x;", "D_UNKNOWN"},
        BadDeclaration{"long long long x;", "D_UNKNOWN"},
        BadDeclaration{"struct s { int a[int]; };", "D_DECL_DYNOBJ"},
        BadDeclaration{"enum e { A = pid };", "D_DECL_ENCONST"},
        BadDeclaration{"enum e { A = \"x\" };", "D_DECL_ENCONST"},
        BadDeclaration{"enum e { A = 0x7fffffff, B };", "D_DECL_ENOFLOW"},
        BadDeclaration{"int f(a, b);", "D_DECL_IDENT"},
        BadDeclaration{"int x; char x;", "D_DECL_IDRED"},
        BadDeclaration{"int pid;", "D_DECL_IDRED"}, BadDeclaration{"enum e { A, A };", "D_UNKNOWN"},
        BadDeclaration{"enum e { A }; enum f { A };", "D_DECL_IDRED"},
        BadDeclaration{"int f(int x[int]);", "D_DECL_PROTO_TYPE"},
        BadDeclaration{"int a[int x[int]];", "D_DECL_PROTO_TYPE"},
        BadDeclaration{"provider p { probe a(int x[int]); };", "D_DECL_PROTO_TYPE"},
        BadDeclaration{"int f(void x);", "D_DECL_PROTO_NAME"},
        BadDeclaration{"struct s { int f(void); };", "D_DECL_VOIDOBJ"},
        BadDeclaration{"BEGIN { x = (signed signed)1; }", "D_DECL_COMBO"},
        BadDeclaration{"BEGIN { x = (unsigned int unsigned)1; }", "D_DECL_COMBO"},
        BadDeclaration{"BEGIN { x = (short short)1; }", "D_DECL_COMBO"},
        BadDeclaration{"translator struct nosuch < int *p > { x = 1; };", "D_XLATE_SOU"},
        BadDeclaration{"struct s { int x; }; translator struct s { int *p > { x = 1; };",
                       "D_DECL_TYPERED"},
        BadDeclaration{"struct s { struct s { int x; } y; };", "D_DECL_TYPERED"},
        BadDeclaration{"typedef int t; typedef char t;", "D_DECL_IDRED"},
        BadDeclaration{"inline int i = 1; int i;", "D_DECL_IDRED"},
        BadDeclaration{"struct nosuch x;", "D_DECL_INCOMPLETE"},
        BadDeclaration{"struct s { struct s x; };", "D_DECL_INCOMPLETE"},
        BadDeclaration{"this int a[int];", "D_DECL_LOCASSC"},
        BadDeclaration{"long string s;", "D_DECL_LONGINT"},
        BadDeclaration{"short float f;", "D_DECL_LONGINT"},
        BadDeclaration{"struct s { int x; char x; };", "D_UNKNOWN"},
        BadDeclaration{"struct s { int x; struct { int x; }; };", "D_UNKNOWN"},
        BadDeclaration{"int f(self int);", "D_DECL_PARMCLASS"},
        BadDeclaration{"int a[extern int];", "D_DECL_PARMCLASS"},
        BadDeclaration{"inline int i[int] = 1;", "D_DECL_PROTO_NAME"},
        BadDeclaration{"int f(int)[3];", "D_DECL_PROTO_FORM"},
        BadDeclaration{"int vmlinux`x;", "D_DECL_SCOPE"},
        BadDeclaration{"int a[struct nosuch];", "D_DECL_PROTO_TYPE"},
        BadDeclaration{"int a[void];", "D_DECL_PROTO_TYPE"},
        BadDeclaration{"int f(int, void);", "D_DECL_PROTO_VOID"},
        BadDeclaration{"unsigned string s;", "D_DECL_SIGNINT"},
        BadDeclaration{"signed double d;", "D_DECL_SIGNINT"},
        BadDeclaration{"struct s { int x; }; struct s { int x; };", "D_DECL_TYPERED"},
        BadDeclaration{"enum e { A }; enum e { B };", "D_DECL_TYPERED"},
        BadDeclaration{"int;", "D_DECL_USELESS"},
        BadDeclaration{"unsigned void *p;", "D_DECL_VOIDATTR"},
        BadDeclaration{"void v;", "D_DECL_VOIDOBJ"},
        BadDeclaration{"struct s { void v; };", "D_DECL_VOIDOBJ"},
        BadDeclaration{"void a[3];", "D_DECL_VOIDOBJ"},
        BadDeclaration{"inline int i = execname;", "D_OP_INCOMPAT"},
        BadDeclaration{"int a[4]; BEGIN { a = 1; }", "D_OP_ARRFUN"},
        BadDeclaration{"int a[4]; BEGIN { a++; }", "D_OP_SCALAR"},
        BadDeclaration{"int a[2][3]; BEGIN { a[1][3] = 1; }", "D_ARR_BOUNDS"},
        BadDeclaration{"struct s { int a[4]; int b; }; BEGIN { trace(((struct s *)8)->a[4]); }",
                       "D_ARR_BOUNDS"},
        BadDeclaration{"struct s { int a[1]; int b; }; BEGIN { trace(((struct s *)8)->a[4]); }",
                       "D_ARR_BOUNDS"},
        BadDeclaration{
            "struct s { int b; int a[2][2]; }; BEGIN { trace(((struct s *)8)->a[1][2]); }",
            "D_ARR_BOUNDS"},
        BadDeclaration{"BEGIN { this->p = (void *)8; this->p++; }", "D_OP_VFPTR"},
        BadDeclaration{"BEGIN { x = 1; x(2); }", "D_FUNC_UNDEF"},
        BadDeclaration{"inline int x = 1; BEGIN { x(2); }", "D_FUNC_IDENT"},
        BadDeclaration{"BEGIN { this->x = 1; this->x(2); }", "D_FUNC_IDENT"},
        BadDeclaration{"BEGIN { @x = count(); @x(); }", "D_FUNC_UNDEF"},
        BadDeclaration{"BEGIN { args(0); }", "D_FUNC_IDKIND"},
        BadDeclaration{"BEGIN { this->a[1]++; }", "D_ARR_LOCAL"},
        BadDeclaration{"BEGIN { x = 1; x %= execname; }", "D_OP_INT"},
        BadDeclaration{"BEGIN { x = sizeof(struct nosuch); }", "D_SIZEOF_TYPE"},
        BadDeclaration{"BEGIN { x = sizeof(void); }", "D_SIZEOF_TYPE"},
        BadDeclaration{"BEGIN { x = sizeof(unsigned size_t); }", "D_DECL_SIGNINT"},
        BadDeclaration{"BEGIN { x = offsetof(int, x); }", "D_OFFSETOF_TYPE"},
        BadDeclaration{"struct s { int x : 3; }; BEGIN { y = offsetof(struct s, x); }",
                       "D_OFFSETOF_BITFIELD"},
        BadDeclaration{"struct s { int x; }; BEGIN { y = offsetof(struct s, z); }", "D_UNKNOWN"},
        BadDeclaration{"int a[int]; BEGIN { a[1, 2] = 1; }", "D_PROTO_LEN"},
        BadDeclaration{"int a[string]; BEGIN { a[1] = 1; }", "D_PROTO_ARG"}));

struct Value {
  const char* declarations;
  const char* expression;
  std::int64_t value;
};

class Declared : public testing::TestWithParam<Value> {};

TEST_P(Declared, HasTheValueThatDGives) {
  const Outcome out = run(std::string(GetParam().declarations) + "\nBEGIN { trace(" +
                          GetParam().expression + "); }");

  ASSERT_EQ(out.error, "") << GetParam().expression;
  EXPECT_EQ(out.values, std::vector<Recorded>{GetParam().value})
      << GetParam().declarations << " " << GetParam().expression;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Declared,
    testing::Values(
        Value{"struct s { char c; int i; long l; short h; };", "sizeof(struct s)", 24},
        Value{"struct s { char c; int i; long l; short h; };", "offsetof(struct s, l)", 8},
        Value{"struct s { int a : 3; int b : 7; int c : 30; };", "sizeof(struct s)", 8},
        Value{"struct s { char c; string name; int n; };", "sizeof(struct s)", 264},
        Value{"struct s { char c; string name; int n; };", "offsetof(struct s, n)", 260},
        Value{"struct s; struct s { struct s *next; int v; };", "sizeof(struct s)", 16},
        Value{"union u { char c[5]; int i; };", "sizeof(union u)", 8},
        Value{"struct s { int n; union { int a; long b; }; };", "offsetof(struct s, b)", 8},
        Value{"enum e { A = -2, B, C = 7, D };", "B * 100 + D", -92},
        Value{"enum e { A = -2 }; typedef enum e e_t;", "(e_t)-2 == A", 1},
        Value{"typedef int four_t[4]; typedef four_t grid_t[3];", "sizeof(grid_t)", 48},
        Value{"typedef int (*fn_t)(int, char *, ...);", "sizeof(fn_t)", 8},
        Value{"string names[3];", "sizeof(names)", 768}, Value{"", "sizeof(\"abc\")", 4},
        Value{"", "sizeof(long long)", 8}, Value{"", "sizeof(long double)", 16},
        Value{"", "sizeof(string)", 256}, Value{"", "sizeof('a')", 4}, Value{"", "sizeof(1L)", 8},
        Value{"", "sizeof(1u)", 4}, Value{"", "sizeof(0x100000000)", 8},
        Value{"", "0x7fffffff + 1 < 0", 0}, Value{"", "0xffffffff + 1", 0},
        Value{"", "0xffffffff + 1 == 0", 0}, Value{"", "(long)-1U", 4294967295},
        Value{"", "(long)~0U", -1}, Value{"", "(uint64_t)(1 << 40)", 1LL << 40},
        Value{"", "10 * 1000000000", 1410065408}, Value{"", "10 * 1000000000 > 9000000000", 1},
        Value{"", "sizeof(NULL)", 4}, Value{"", "sizeof((char)1 + (short)1)", 2},
        Value{"", "sizeof(-(char)1 << 3L)", 1}, Value{"", "-1L < 1U", 1},
        Value{"enum e { A = -2 };", "sizeof((char)1 + A)", 4},
        Value{"", "(unsigned char)200 + (char)100", 44},
        Value{"struct s { int x, a[0]; };", "(uint64_t)&((struct s *)0)->a[2]", 12},
        Value{"", "'ab'", 0x6162}, Value{"", "'\\x41'", 65}, Value{"", "'\\101'", 65},
        Value{"", "'\\n'", 10}, Value{"", "'\\377'", 255}, Value{"", "010", 8},
        Value{"", "18446744073709551615 > 0", 1}, Value{"", "-1 < 0u", 0},
        Value{"", "\"abc\" < \"abd\"", 1}, Value{"", "\"b\" >= \"abd\"", 1}, Value{"", "1 ^^ 2", 0},
        Value{"", "(1, 2)", 2}, Value{"", "(char)300", 44}, Value{"", "(uint8_t)-1", 255},
        Value{"", "-7 / 2", -3}, Value{"", "-7 % 3", -1},
        Value{"", "(int *)16 + 2 == (int *)24", 1}, Value{"", "(long *)32 - (long *)16", 2},
        Value{"", "NULL == 0", 1}, Value{"", "1 ? -1 : 0u", -1},
        Value{"", "sizeof(1 ? (char)1 : 1L)", 1}, Value{"int x;", "0 ? nothing : 7", 7},
        Value{"extern int far[];", "sizeof(int)", 4},
        Value{"struct s { int n; char c[1]; };", "(long)&((struct s *)0)->c[7]", 11},
        Value{"struct s { int n; char c[2]; };", "(long)&((struct s *)0)->c[7]", 11},
        Value{"union u { char c[2]; int n; };", "(long)&((union u *)0)->c[7]", 7},
        Value{"short short x; unsigned unsigned y;", "sizeof(x) + sizeof(y)", 6}));

TEST(Variables, OfFloatingPointTypesCanBeDeclaredCopiedAndPrinted) {
  for (const std::string body :
       {"trace(sizeof(d));", "e = d;", "d = *p;", "this->x = *p; printf(\"%f\", this->x);",
        "self->g = f; trace(self->g);", "a[1] = *p; printf(\"%e\", a[1]);", "s.d = *p; t = s;",
        "*p = s.d;", "printf(\"%g %Lf\", 1 ? d : s.d, ld);", "print(s); print(d);"}) {
    EXPECT_EQ(error_of("float f; double d; double e; long double ld; self float g; double *p;"
                       "struct s { int i; double d; }; struct s s; struct s t; BEGIN { " +
                       body + " }"),
              "")
        << body;
  }
}

TEST(Variables, OfFloatingPointTypesAreNotComputedWith) {
  const std::pair<std::string, std::string> cases[] = {
      {"d + 1", "D_OP_INCOMPAT"},
      {"1 - d", "D_OP_INCOMPAT"},
      {"d + d", "D_OP_INCOMPAT"},
      {"d * d", "D_OP_ARITH"},
      {"d / 2", "D_OP_ARITH"},
      {"d % 2", "D_OP_INT"},
      {"-d", "D_OP_ARITH"},
      {"+d", "D_OP_ARITH"},
      {"~d", "D_OP_INT"},
      {"!d", "D_OP_SCALAR"},
      {"d++", "D_OP_SCALAR"},
      {"--d", "D_OP_SCALAR"},
      {"d == 1", "D_OP_INCOMPAT"},
      {"d < d", "D_OP_INCOMPAT"},
      {"d && 1", "D_OP_SCALAR"},
      {"d << 1", "D_OP_INT"},
      {"d & 1", "D_OP_INT"},
      {"d ? 1 : 2", "D_OP_SCALAR"},
      {"(int)d", "D_CAST_INVAL"},
      {"(double)1", "D_CAST_INVAL"},
      {"(float)d", "D_CAST_INVAL"},
      {"d = 1", "D_OP_INCOMPAT"},
      {"d = f", "D_OP_INCOMPAT"},
      {"i = d", "D_OP_INCOMPAT"},
      {"d *= 2", "D_OP_ARITH"},
      {"a[d] = 1", "D_PROTO_ARG"},
      {"@[d] = count()", "D_PROTO_ARG"},
      {"@ = sum(d)", "D_AGG_SCALAR"},
      {"exit(d)", "D_PROTO_ARG"},
      {"printf(\"%d\", d)", "D_PRINTF_ARG_TYPE"},
      {"printf(\"%f\", 1)", "D_PRINTF_ARG_TYPE"},
      {"stringof(d)", "D_STRINGOF_TYPE"},
      {"strjoin(d, \"x\")", "D_PROTO_ARG"},
  };
  for (const auto& [expression, tag] : cases) {
    const std::string error = error_of("float f; double d; int i; BEGIN { " + expression + "; }");
    EXPECT_NE(error.find("[" + tag + "]"), std::string::npos) << expression << ": " << error;
  }
}

TEST(Variables, OfStructTypeHaveMembers) {
  const Outcome out =
      run("struct point { int x, y; string name; struct { char c; long l; } in; };\n"
          "struct point p; struct point q; int a[4]; string s[2];\n"
          "BEGIN { p.x = 3; p.y = -4; p.name = \"here\"; p.in.l = 1 << 20; q = p; q.x++;"
          " trace(q.x); trace(q.y); trace(q.name); trace(q.in.l); trace(p.x);"
          " a[1] = 5; a[3] = a[1] * 2; trace(a[3] + a[0]); s[1] = \"two\"; trace(s[1]); }");

  ASSERT_EQ(out.error, "");
  const std::vector<Recorded> expected{std::int64_t{4},       std::int64_t{-4}, std::string("here"),
                                       std::int64_t{1 << 20}, std::int64_t{3},  std::int64_t{10},
                                       std::string("two")};
  EXPECT_EQ(out.values, expected);
}

TEST(Variables, BitFieldsAreReadAndWritten) {
  const Outcome out =
      run("struct bits { int a : 3; unsigned int b : 5; int c : 20; unsigned int d : 31; long e : "
          "40; };\n"
          "struct bits v; this struct bits w;\n"
          "BEGIN { v.a = -2; v.b = 31; v.c = -500000; v.d = 0x7fffffff; v.e = -5; v.b += 2; v.a++;"
          " trace(v.a); trace(v.b); trace(v.c); trace(v.d); trace(v.e);"
          " this->w = v; trace(this->w.e - 1); }");

  ASSERT_EQ(out.error, "");
  const std::vector<Recorded> expected{std::int64_t{-1},      std::int64_t{1},
                                       std::int64_t{-500000}, std::int64_t{0x7fffffff},
                                       std::int64_t{-5},      std::int64_t{-6}};
  EXPECT_EQ(out.values, expected);
}

TEST(Variables, KeysWithEffectsAreEvaluatedOnce) {
  const Outcome out =
      run("int a[int]; BEGIN { i = 0; a[i++] += 5; a[i++]++; ++a[i - 2]; trace(i); trace(a[0]); "
          "trace(a[1]);"
          " a[strlen(\"abc\"), i++]++; trace(a2 = 1); }");
  const Outcome calls = run("BEGIN { a[strlen(\"abc\")]++; a[3] += 2; trace(a[3]); }");

  EXPECT_TRUE(out.error.find("prototype mismatch") != std::string::npos);
  ASSERT_EQ(calls.error, "");
  EXPECT_EQ(calls.values, std::vector<Recorded>{std::int64_t{3}});
}

TEST(Variables, StepsOfElementsCount) {
  const Outcome out =
      run("int a[int]; BEGIN { i = 0; a[i++] += 5; a[i++]++; ++a[i - 2]; trace(i); trace(a[0]); "
          "trace(a[1]); }");

  ASSERT_EQ(out.error, "");
  const std::vector<Recorded> expected{std::int64_t{2}, std::int64_t{6}, std::int64_t{1}};
  EXPECT_EQ(out.values, expected);
}

TEST(SystemTypes, AreKnownWhereTheGuestHasNone) {
  const Outcome out =
      run("BEGIN { trace(sizeof(boolean_t)); trace(B_TRUE); trace(sizeof(in6_addr_t)); "
          "trace(sizeof(struct sockaddr)); trace(offsetof(struct sockaddr_in, sin_addr)); "
          "trace(offsetof(struct sockaddr_in6, sin6_scope_id)); trace(sizeof(timestruc_t)); "
          "trace(sizeof(hrtime_t) + sizeof(caddr_t) + sizeof(mode_t) + sizeof(in_port_t)); "
          "this->a = (struct in6_addr *)alloca(16); this->a->s6_addr[15] = 9; "
          "trace(this->a->_S6_un._S6_u8[15] + this->a->in6_u.u6_addr8[15]); }");

  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.values,
            (std::vector<Recorded>{std::int64_t{4}, std::int64_t{1}, std::int64_t{16},
                                   std::int64_t{16}, std::int64_t{4}, std::int64_t{24},
                                   std::int64_t{16}, std::int64_t{22}, std::int64_t{18}}));
}

TEST(SystemTypes, GiveWayToTheGuestsAndTheProgramsOwn) {
  TypeGraph graph;
  graph.index(
      graph.add({.kind = TypeKind::Typedef, .name = "dev_t", .target = *graph.find("long")}));
  const std::array<Member, 1> members = {{{.name = "own", .type = *graph.find("int")}}};
  graph.index(graph.add_struct(TypeKind::Struct, "sockaddr_in", 8, members));

  add_system_types(graph);
  const std::size_t size = graph.size();
  add_system_types(graph);

  EXPECT_EQ(graph.size(), size);
  EXPECT_EQ(graph.size_of(*graph.find("dev_t")), 8U);
  EXPECT_EQ(graph.size_of(*graph.find(TypeKind::Struct, "sockaddr_in")), 8U);
  EXPECT_EQ(run("typedef char boolean_t; struct sockaddr { char c; };"
                "BEGIN { trace(sizeof(boolean_t) + sizeof(struct sockaddr)); }")
                .values,
            std::vector<Recorded>{std::int64_t{2}});
}

}  // namespace
}  // namespace ringside::d
