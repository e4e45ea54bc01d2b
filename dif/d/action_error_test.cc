// Errors of actions and aggregations, each under dtrace's tag.
#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

struct BadAction {
  std::string_view tag, body;
};

/// Every body, as BEGIN's, must be refused under its tag.
void expect_tags(std::initializer_list<BadAction> cases) {
  for (const BadAction& c : cases) {
    const std::string source =
        "long a[int]; self long b[int]; BEGIN { " + std::string(c.body) + " }";
    const std::string error = error_of(source);
    EXPECT_EQ(error.substr(0, error.find(']') + 1), "[" + std::string(c.tag) + "]")
        << c.body << "\n"
        << error;
  }
}

void expect_compiles(std::initializer_list<std::string_view> bodies) {
  for (const std::string_view body : bodies) {
    EXPECT_EQ(run("fbt:::entry { " + std::string(body) + " }").error, "") << body;
  }
}

TEST(ActionErrors, OfValuesThatAreRecorded) {
  expect_tags({{"D_PROTO_LEN", "trace();"},
               {"D_PROTO_LEN", "trace(1, 2);"},
               {"D_TRACE_VOID", "trace((void)1);"},
               {"D_TRACE_VOID", "trace(printf(\"x\"));"},
               {"D_TRACE_AGG", "@x = count(); trace(@x);"},
               {"D_TRACE_AGG", "@x[1] = count(); trace(@x[1]);"},
               {"D_IDENT_BADREF", "trace(a);"},
               {"D_PROTO_LEN", "print();"},
               {"D_PRINT_VOID", "print((void)1);"},
               {"D_PRINT_AGG", "@x = count(); print(@x);"},
               {"D_IDENT_BADREF", "print(self->b);"},
               {"D_PROTO_LEN", "tracemem(1);"},
               {"D_PROTO_LEN", "pcap(1);"},
               {"D_PROTO_LEN", "pcap(1, 2, 3);"},
               {"D_PCAP_ADDR", "pcap(execname, 1);"},
               {"D_PCAP_PROTO", "pcap(1, execname);"},
               {"D_TRACEMEM_ARGS", "tracemem(1, 2, 3, 4);"},
               {"D_TRACEMEM_ADDR", "tracemem(execname, 2);"},
               {"D_TRACEMEM_SIZE", "tracemem(1, 0);"},
               {"D_TRACEMEM_SIZE", "tracemem(1, pid);"},
               {"D_TRACEMEM_SIZE", "tracemem(1, -4);"},
               {"D_TRACEMEM_DYNSIZE", "tracemem(1, 4, execname);"}});
}

TEST(ActionErrors, OfPrototypes) {
  expect_tags({{"D_PROTO_LEN", "exit();"},
               {"D_PROTO_ARG", "exit(\"no\");"},
               {"D_PROTO_LEN", "raise();"},
               {"D_PROTO_ARG", "raise(execname);"},
               {"D_PROTO_LEN", "stop(1);"},
               {"D_PROTO_LEN", "panic(1);"},
               {"D_PROTO_LEN", "breakpoint(1);"},
               {"D_PROTO_LEN", "chill();"},
               {"D_PROTO_ARG", "chill(execname);"},
               {"D_PROTO_LEN", "speculate();"},
               {"D_PROTO_LEN", "commit();"},
               {"D_PROTO_LEN", "discard(1, 2);"},
               {"D_PROTO_ARG", "speculate(\"1\");"},
               {"D_PROTO_LEN", "ftruncate(1);"},
               {"D_PROTO_LEN", "setopt();"},
               {"D_PROTO_ARG", "setopt(1);"},
               {"D_PROTO_ARG", "setopt(\"quiet\", 1);"},
               {"D_PROTO_ARG", "setopt(\"\");"},
               {"D_PROTO_LEN", "system();"},
               {"D_PROTO_LEN", "freopen();"},
               {"D_FREOPEN_INVALID", "freopen(\".\");"},
               {"D_PROTO_LEN", "sym();"},
               {"D_PROTO_ARG", "usym(execname);"},
               {"D_STACK_PROTO", "stack(1, 2);"},
               {"D_STACK_SIZE", "stack(0);"},
               {"D_STACK_SIZE", "stack(pid);"},
               {"D_USTACK_PROTO", "ustack(1, 2, 3);"},
               {"D_USTACK_FRAMES", "ustack(-1);"},
               {"D_USTACK_STRSIZE", "ustack(1, -1);"},
               {"D_USTACK_FRAMES", "jstack(0);"}});
  EXPECT_NE(error_of("BEGIN { exit(1, 2); }")
                .find("exit( ) prototype mismatch: 2 args passed, 1 expected"),
            std::string::npos);
}

TEST(ActionErrors, OfFormats) {
  expect_tags({{"D_PROTO_LEN", "printf();"},
               {"D_PRINTF_ARG_FMT", "printf(execname);"},
               {"D_PRINTF_FMT_EMPTY", "printf(\"\");"},
               {"D_PRINTF_ARG_PROTO", "printf(\"%d\");"},
               {"D_PRINTF_ARG_EXTRA", "printf(\"%d\", 1, 2);"},
               {"D_PRINTF_ARG_TYPE", "printf(\"%d\", execname);"},
               {"D_PRINTF_ARG_TYPE", "printf(\"%s\", 1);"},
               {"D_PRINTF_ARG_TYPE", "printf(\"%d\", curthread);"},
               {"D_PRINTF_ARG_TYPE", "printf(\"%s\", curthread->file->f_name);"},
               {"D_PRINTF_ARG_TYPE", "printf(\"%k\", 1);"},
               {"D_PRINTF_ARG_TYPE", "printf(\"%d\", stack());"},
               {"D_PRINTF_ARG_TYPE", "printf(\"%f\", 1);"},
               {"D_PRINTF_AGG_CONV", "@x = count(); printf(\"%@d\", 1);"},
               {"D_PRINTF_DYN_PROTO", "printf(\"%*d\");"},
               {"D_PRINTF_DYN_TYPE", "printf(\"%*d\", execname, 1);"},
               {"D_SYNTAX", "printf(\"%y\", 1);"},
               {"D_PRINTF_ARG_TYPE", "system(\"%s\", 1);"},
               {"D_PRINTF_ARG_PROTO", "freopen(\"/tmp/%d\");"}});
  expect_compiles({"printf(\"%a %A %p %k %k\", arg0, sym(arg0), curthread, stack(3), ustack());",
                   "printf(\"%hd %lld %5.2s|%c%%\", pid, timestamp, execname, 'c');",
                   "printf(\"%s %Y\", curthread->comm, walltimestamp);", "printf(\"plain\");"});
}

TEST(ActionErrors, OfWhatStandsWithSpeculateAndCommit) {
  expect_tags({{"D_SPEC_SPEC", "speculate(1); speculate(2);"},
               {"D_SPEC_COMM", "commit(1); speculate(2);"},
               {"D_SPEC_DREC", "trace(1); speculate(1);"},
               {"D_COMM_COMM", "commit(1); commit(2);"},
               {"D_COMM_DREC", "printf(\"x\"); commit(1);"},
               {"D_COMM_DREC", "@x = count(); commit(1);"},
               {"D_DREC_COMM", "commit(1); trace(1);"},
               {"D_DREC_COMM", "commit(1); exit(0);"},
               {"D_AGG_SPEC", "speculate(1); @x = count();"},
               {"D_AGG_COMM", "commit(1); @x = count();"},
               {"D_EXIT_SPEC", "speculate(1); exit(0);"},
               {"D_ACT_SPEC", "speculate(1); stop();"},
               {"D_ACT_SPEC", "speculate(1); chill(5);"}});
  expect_compiles({"self->s = speculation(); speculate(self->s); trace(1);",
                   "discard(1); trace(1);", "commit(1); discard(2);",
                   "speculate(1); printf(\"%d\", pid); stack();"});
}

TEST(ActionErrors, OfAggregations) {
  expect_tags({{"D_IDENT_UNDEF", "@x;"},
               {"D_AGG_NULL", "@x = count(); @x;"},
               {"D_AGG_FUNC", "@x = 1;"},
               {"D_AGG_FUNC", "@x = strlen(execname);"},
               {"D_AGG_FUNC", "@x = trace(1);"},
               {"D_OP_INCOMPAT", "@x = count() + 1;"},
               {"D_TRACE_DYN", "trace(count());"},
               {"D_PRINT_DYN", "print(sum(1));"},
               {"D_PRINTF_ARG_TYPE", "@x = count(); printa(\"%@s\", @x);"},
               {"D_FUNC_UNDEF", "@x = nothing();"},
               {"D_AGG_REDEF", "@x = count(); @x = sum(1);"},
               {"D_AGG_MDIM", "@x[1][2] = count();"},
               {"D_AGG_SCALAR", "@x = sum(execname);"},
               {"D_PROTO_LEN", "@x = count(1);"},
               {"D_PROTO_LEN", "@x = avg();"},
               {"D_PROTO_LEN", "@x = max(1, 2);"},
               {"D_PROTO_LEN", "@x = quantize();"},
               {"D_PROTO_LEN", "@x = quantize(1, 2, 3);"},
               {"D_PROTO_LEN", "@x[1] = count(); @x[1, 2] = count();"},
               {"D_PROTO_ARG", "@x[1] = count(); @x[execname] = count();"},
               {"D_KEY_TYPE", "@x[(void)1] = count();"},
               {"D_IDENT_BADREF", "@x[a] = count();"},
               {"D_KEY_TYPE", "@y = count(); @x[@y] = count();"}});
  expect_compiles({"@[stack(5), ustack(2), sym(arg0), umod(arg0), *curthread] = count();",
                   "@ = llquantize(arg0, 10, 0, 6, 20, 3); @l = lquantize(arg0, 0, 10);"});
}

TEST(ActionErrors, OfQuantizeParameters) {
  expect_tags(
      {{"D_LQUANT_BASETYPE", "@ = lquantize(1, pid, 10, 1);"},
       {"D_LQUANT_LIMTYPE", "@ = lquantize(1, 0, pid, 1);"},
       {"D_PROTO_ARG", "@ = lquantize(1, 0, execname, 1);"},
       {"D_PROTO_ARG", "@ = quantize(1, execname);"},
       {"D_LQUANT_STEPTYPE", "@ = lquantize(1, 0, 10, pid);"},
       {"D_LQUANT_BASEVAL", "@ = lquantize(1, 1LL << 40, 10, 1);"},
       {"D_LQUANT_LIMVAL", "@ = lquantize(1, 0, 1LL << 40, 1);"},
       {"D_LQUANT_MISMATCH", "@ = lquantize(1, 10, 0, 1);"},
       {"D_LQUANT_MISMATCH", "@ = lquantize(1, 10, 10, 1);"},
       {"D_LQUANT_STEPTYPE", "@ = lquantize(1, 0, 10, 0);"},
       {"D_LQUANT_STEPVAL", "@ = lquantize(1, 0, 10, 70000);"},
       {"D_LQUANT_STEPLARGE", "@ = lquantize(1, 0, 10, 100);"},
       {"D_LQUANT_STEPSMALL", "@ = lquantize(1, 0, 1000000, 1);"},
       {"D_LQUANT_MATCHBASE", "@ = lquantize(1, 0, 10, 1); @ = lquantize(1, 1, 11, 1);"},
       {"D_LQUANT_MATCHLIM", "@ = lquantize(1, 0, 10, 1); @ = lquantize(1, 0, 20, 1);"},
       {"D_LQUANT_MATCHLIM", "@ = lquantize(1, 0, 5, 1); @ = lquantize(1, 0, 5, 2);"},
       {"D_LQUANT_MATCHSTEP", "@ = lquantize(1, 0, 10, 1); @ = lquantize(1, 0, 10, 2);"},
       {"D_LLQUANT_FACTORTYPE", "@ = llquantize(1, pid, 0, 6, 10);"},
       {"D_LLQUANT_FACTORSMALL", "@ = llquantize(1, 1, 0, 6, 10);"},
       {"D_LLQUANT_MAGRANGE", "@ = llquantize(1, 10, 6, 0, 10);"},
       {"D_LLQUANT_MAGTOOBIG", "@ = llquantize(1, 10, 0, 100, 10);"},
       {"D_LLQUANT_FACTORNSTEPS", "@ = llquantize(1, 10, 0, 6, 5);"},
       {"D_LLQUANT_FACTOREVEN", "@ = llquantize(1, 10, 0, 6, 15);"},
       {"D_LLQUANT_FACTORMATCH", "@ = llquantize(1, 10, 0, 6, 10); @ = llquantize(1, 2, 0, 6, 2);"},
       {"D_LLQUANT_LOWMATCH", "@ = llquantize(1, 10, 0, 6, 10); @ = llquantize(1, 10, 1, 6, 10);"},
       {"D_LLQUANT_HIGHMATCH", "@ = llquantize(1, 10, 0, 6, 10); @ = llquantize(1, 10, 0, 7, 10);"},
       {"D_LLQUANT_NSTEPMATCH",
        "@ = llquantize(1, 10, 0, 6, 10); @ = llquantize(1, 10, 0, 6, 20);"}});
}

TEST(ActionErrors, OfWhatIsDoneWithAggregations) {
  expect_tags({{"D_CLEAR_PROTO", "clear();"},
               {"D_CLEAR_AGGARG", "clear(1);"},
               {"D_CLEAR_AGGBAD", "clear(@x);"},
               {"D_TRUNC_PROTO", "trunc();"},
               {"D_TRUNC_AGGARG", "trunc(1);"},
               {"D_TRUNC_AGGBAD", "trunc(@x);"},
               {"D_TRUNC_SCALAR", "@x = count(); trunc(@x, execname);"},
               {"D_NORMALIZE_PROTO", "@x = count(); normalize(@x);"},
               {"D_NORMALIZE_AGGARG", "normalize(1, 2);"},
               {"D_NORMALIZE_AGGBAD", "normalize(@x, 2);"},
               {"D_NORMALIZE_SCALAR", "@x = count(); normalize(@x, execname);"},
               {"D_NORMALIZE_AGGBAD", "denormalize(@x);"},
               {"D_PROTO_LEN", "printa();"},
               {"D_PRINTA_PROTO", "printa(\"x\");"},
               {"D_PRINTA_AGGARG", "printa(1);"},
               {"D_PRINTA_AGGBAD", "printa(@x);"},
               {"D_PRINTA_AGGKEY", "@x = count(); @y[1] = count(); printa(@x, @y);"},
               {"D_PRINTA_AGGPROTO", "@x[\"s\"] = count(); @y[1] = count(); printa(@x, @y);"},
               {"D_PRINTF_ARG_PROTO", "@x = count(); printa(\"%d\", @x);"},
               {"D_PRINTF_ARG_TYPE", "@x[1] = count(); printa(\"%s\", @x);"}});
  expect_compiles({"@x[stack(), sym(arg0)] = count(); printa(\"%k %a %@d\", @x);",
                   "@x[pid] = count(); @y[pid] = sum(1); printa(\"%d %@d %@d\", @x, @y);"});
}

}  // namespace
}  // namespace ringside::d
