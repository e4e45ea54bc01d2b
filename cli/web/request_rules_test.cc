#include "cli/web/request_rules.h"

#include <gtest/gtest.h>

#include <set>

namespace ringside::cli {
namespace {

using Verdict = RequestRules::Verdict;

const std::string kToken = "0123456789abcdef0123456789abcdef";

class WebRules : public testing::Test {
 protected:
  /// Of a page that has its cookie.
  static RequestHead known() {
    RequestHead head;
    head.host = "127.0.0.1:8080";
    head.cookies = "ringside-8080=" + kToken;
    return head;
  }
  RequestRules rules_{kToken, "127.0.0.1", 8080};
};

TEST_F(WebRules, TheFirstAddressLetsInAndTheCookieThen) {
  RequestHead first;
  first.host = "127.0.0.1:8080";
  first.token = kToken;

  EXPECT_EQ(rules_.first_address(), "http://127.0.0.1:8080/?token=" + kToken);
  EXPECT_EQ(rules_.judge(first), Verdict::NewPage);
  EXPECT_EQ(rules_.cookie(), "ringside-8080=" + kToken + "; Path=/; HttpOnly; SameSite=Strict");
  EXPECT_EQ(rules_.judge(known()), Verdict::Known);
}

TEST_F(WebRules, AWrongTokenIsRefusedWhereverItStands) {
  for (const std::string& wrong : {std::string(), kToken.substr(1), kToken + "0",
                                   "1" + kToken.substr(1), std::string(32, '\0')}) {
    RequestHead head = known();
    head.cookies = "ringside-8080=" + wrong;
    head.token = wrong;
    head.authorization = "Bearer " + wrong;
    EXPECT_EQ(rules_.judge(head), Verdict::WrongToken) << wrong;
  }
  RequestHead of_another_port = known();
  of_another_port.cookies = "ringside-8081=" + kToken;
  EXPECT_EQ(rules_.judge(of_another_port), Verdict::WrongToken);
}

TEST_F(WebRules, AnotherNameOfThisHostIsRefusedWithAnyToken) {
  for (const char* host : {"", "evil.example", "evil.example:8080", "127.0.0.1", "127.0.0.1:80",
                           "127.0.0.1:8080.evil.example", "0.0.0.0:8080", "[::1]:8080"}) {
    RequestHead head = known();
    head.host = host;
    EXPECT_EQ(rules_.judge(head), Verdict::WrongHost) << host;
  }
  for (const char* host : {"localhost:8080", "LOCALHOST:8080"}) {
    RequestHead head = known();
    head.host = host;
    EXPECT_EQ(rules_.judge(head), Verdict::Known) << host;
  }
  const RequestRules of_ipv6(kToken, "::1", 8080);
  RequestHead head = known();
  head.host = "[::1]:8080";
  EXPECT_EQ(of_ipv6.judge(head), Verdict::Known);
}

TEST_F(WebRules, APageOfAnotherSiteIsRefused) {
  for (const char* origin : {"null", "http://evil.example", "https://127.0.0.1:8080",
                             "http://127.0.0.1:8081", "http://localhost:8080"}) {
    RequestHead head = known();
    head.origin = origin;
    EXPECT_EQ(rules_.judge(head), Verdict::ForeignOrigin) << origin;
  }
  for (const char* site : {"cross-site", "same-site", "sideways"}) {
    RequestHead head = known();
    head.fetch_site = site;
    EXPECT_EQ(rules_.judge(head), Verdict::ForeignOrigin) << site;
  }
  RequestHead own = known();
  own.origin = "http://127.0.0.1:8080";
  own.fetch_site = "same-origin";
  EXPECT_EQ(rules_.judge(own), Verdict::Known);
}

TEST_F(WebRules, AChangeNeedsItsOrigin) {
  RequestHead change = known();
  change.may_change = true;
  EXPECT_EQ(rules_.judge(change), Verdict::ForeignOrigin);

  change.origin = "http://127.0.0.1:8080";
  EXPECT_EQ(rules_.judge(change), Verdict::Known);

  RequestHead program;
  program.host = "127.0.0.1:8080";
  program.authorization = "Bearer " + kToken;
  program.may_change = true;
  EXPECT_EQ(rules_.judge(program), Verdict::Known) << "no browser sends this header by itself";
}

TEST(WebTokens, AreOf128BitsAndDiffer) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(make_token());

  EXPECT_EQ(tokens.size(), 100u);
  for (const std::string& token : tokens) EXPECT_EQ(token.size(), 32u);
}

TEST(WebTokens, AreComparedWhole) {
  EXPECT_TRUE(is_same_secret("abc", "abc"));
  EXPECT_FALSE(is_same_secret("abc", "abd"));
  EXPECT_FALSE(is_same_secret("abc", "ab"));
  EXPECT_FALSE(is_same_secret("", "")) << "a server without a token lets nobody in";
}

TEST(WebCookies, AreFoundByTheirWholeName) {
  EXPECT_EQ(cookie_value("a=1; b=2;c=3", "b"), "2");
  EXPECT_EQ(cookie_value("a=1; b=2;c=3", "c"), "3");
  EXPECT_EQ(cookie_value("ab=1; b=", "b"), "");
  EXPECT_EQ(cookie_value(";;; =; b", "b"), "");
}

}  // namespace
}  // namespace ringside::cli
