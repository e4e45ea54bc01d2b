#include "vmm/attach/process/process_access.h"

#include <gtest/gtest.h>

namespace ringside::vmm {
namespace {

struct Case {
  AccessFacts facts;
  ErrorCode code;
  std::string words;
};

TEST(ProcessAccess, TheRuleThatRefusesIsNamed) {
  const AccessFacts theirs{
      .pid = 7, .our_user = 1000, .their_user = 64055, .yama_scope = 1, .may_trace_all = false};
  AccessFacts gone = theirs, same = theirs, nobody = theirs, plain = theirs, root = theirs;
  gone.their_user.reset();
  same.their_user = 1000;
  nobody.yama_scope = 3;
  nobody.may_trace_all = true;
  plain.their_user = 1000;
  plain.yama_scope = 0;
  root.may_trace_all = true;
  const Case cases[] = {
      {gone, ErrorCode::NotFound, "there is no process 7"},
      {theirs, ErrorCode::Io, "it is user 64055's; be that user or root"},
      {same, ErrorCode::Io, "kernel.yama.ptrace_scope is 1; set it to 0"},
      {nobody, ErrorCode::Io, "ptrace_scope is 3"},
      {plain, ErrorCode::Io, "is not dumpable"},
      {root, ErrorCode::Io, "in spite of CAP_SYS_PTRACE"},
  };
  for (const Case& each : cases) {
    const Error error = access_refused(each.facts);

    EXPECT_EQ(error.code, each.code) << error.message;
    EXPECT_NE(error.message.find(each.words), std::string::npos) << error.message;
  }
}

}  // namespace
}  // namespace ringside::vmm
