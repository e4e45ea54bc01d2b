#include "vmm/attach/host/attach_target.h"

#include <gtest/gtest.h>

namespace ringside::vmm {
namespace {

TEST(AttachTarget, AProcessIsNamedByItsNumber) {
  const auto target = parse_attach_target("pid:4321");

  ASSERT_TRUE(target.has_value());
  ASSERT_TRUE(std::holds_alternative<ProcessTarget>(target->where));
  EXPECT_EQ(std::get<ProcessTarget>(target->where).pid, 4321);
  EXPECT_EQ(target->text, "pid:4321");
}

TEST(AttachTarget, AMonitorIsNamedByItsSocket) {
  const auto target = parse_attach_target("qmp:/run/vm/web1.sock");

  ASSERT_TRUE(target.has_value());
  ASSERT_TRUE(std::holds_alternative<QmpTarget>(target->where));
  EXPECT_EQ(std::get<QmpTarget>(target->where).path, "/run/vm/web1.sock");
}

TEST(AttachTarget, ADomainIsNamedAloneOrWithItsConnection) {
  struct Case {
    std::string text, uri, domain;
  };
  const Case cases[] = {
      {"web1", "", "web1"},
      {"6fa459ea-ee8a-3ca4-894e-db77e160355e", "", "6fa459ea-ee8a-3ca4-894e-db77e160355e"},
      {"qemu:///system?name=web1", "qemu:///system", "web1"},
      {"qemu+ssh://root@host/system?keyfile=k&name=web%201&no_verify=1",
       "qemu+ssh://root@host/system?keyfile=k&no_verify=1", "web 1"},
      {"test:///default?uuid=u", "test:///default", "u"},
  };
  for (const Case& each : cases) {
    const auto target = parse_attach_target(each.text);

    ASSERT_TRUE(target.has_value()) << each.text;
    ASSERT_TRUE(std::holds_alternative<DomainTarget>(target->where)) << each.text;
    EXPECT_EQ(std::get<DomainTarget>(target->where).uri, each.uri) << each.text;
    EXPECT_EQ(std::get<DomainTarget>(target->where).domain, each.domain) << each.text;
  }
}

TEST(AttachTarget, WhatNamesNothingIsRefusedWithTheFormsThatThereAre) {
  for (const char* text :
       {"", "pid:", "pid:0", "pid:-3", "pid:12x", "pid:99999999999", "qmp:", "qemu:///system",
        "qemu:///system?name=", "qemu:///system?name=%4", "qemu:///system?name=a&uuid=b"}) {
    const auto target = parse_attach_target(text);

    ASSERT_FALSE(target.has_value()) << text;
    EXPECT_EQ(target.error().code, ErrorCode::Invalid) << text;
    EXPECT_NE(target.error().message.find("qmp:PATH or pid:N"), std::string::npos) << text;
  }
}

TEST(AttachTarget, ADomainThatIsNotThereIsAnsweredWithThoseThatAre) {
  EXPECT_EQ(no_such_domain("qemu:///system", {"", "web"}, {"web2", "mail", "web1"}),
            "qemu:///system has no domain 'web'; it has mail, web1, web2; another connection is "
            "named as qemu:///system?name=NAME; did you mean web1?");
  EXPECT_EQ(no_such_domain("qemu:///session", {"qemu:///session", "x\x1b"}, {"evil\n"}),
            "qemu:///session has no domain 'x?'; it has evil?");
  EXPECT_EQ(no_such_domain("qemu:///session", {"qemu:///session", "web"}, {}),
            "qemu:///session has no domain 'web'; it has none");
  EXPECT_EQ(no_such_domain("qemu:///system", {"", "/run/vm.sock"}, {"web"}),
            "qemu:///system has no domain '/run/vm.sock': a monitor's socket is named as qmp:PATH");
  std::vector<std::string> many(99, "name");
  EXPECT_TRUE(no_such_domain("u", {"u", "x"}, many).ends_with(", name and 87 more"));
}

}  // namespace
}  // namespace ringside::vmm
