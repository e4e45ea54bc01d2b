#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/attach/host/host_process.h"

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

TEST(ProcessAccess, WhatNoRuleRefusesHasAnotherReason) {
  const Error error = explain_unreadable(HostProcess(getpid()), {ErrorCode::Io, "a hole"});

  EXPECT_EQ(error.message, "a hole");
}

TEST(ProcessAccess, TheRuleThatRefusesMemoryIsNamed) {
  constexpr uid_t kNobody = 65534;
  const HostProcess parent(getpid());
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);  // only for who may trace all
  const pid_t child = fork();
  if (child == 0) {
    const bool may_not = geteuid() != 0 || setuid(kNobody) == 0;
    const Error error = explain_unreadable(parent, {ErrorCode::Io, "a hole"});
    const bool named = error.message.find("is not for us: ") != std::string::npos;
    _exit(may_not && named ? 0 : 1);
  }

  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
}

}  // namespace
}  // namespace ringside::vmm
