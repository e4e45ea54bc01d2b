// Who may ask `ringside web` for anything: the rules for a request's head, which hold before its
// path is looked at. Browsers send requests for pages of other sites, too, and any name may lead to
// this host. So a request has to name this server as its host, must not come from another site, and
// has to have the token. Used by web.cc. Does not: know HTTP's wire form (http_server.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringside::cli {

/// The headers that the rules look at, empty where there are none.
struct RequestHead {
  std::string host, origin, fetch_site, cookies, authorization;
  std::string token;        // of the first address
  bool may_change = false;  // neither GET nor HEAD
};

class RequestRules {
 public:
  enum class Verdict : std::uint8_t {
    Known,          // by its cookie, or as a program by "Authorization: Bearer TOKEN"
    NewPage,        // by the token of the first address: it gets the cookie
    WrongHost,      // another name leads here
    ForeignOrigin,  // a page of another site asks
    WrongToken,
  };

  /// `address` is the one that is listened at.
  RequestRules(std::string token, const std::string& address, std::uint16_t port);

  Verdict judge(const RequestHead& head) const;

  /// The address with the token, for the user.
  std::string first_address() const;
  /// The value of Set-Cookie. Cookies of a host are those of all its ports, hence the name.
  std::string cookie() const;

 private:
  std::string token_, cookie_name_;
  std::vector<std::string> hosts_;  // as Host may have them, in lower case
};

/// 128 random bits in hexadecimal digits; empty if the system has none.
std::string make_token();
/// In a time that only depends on the lengths.
bool is_same_secret(std::string_view one, std::string_view other);
/// The value of a cookie in the header Cookie; empty without it.
std::string_view cookie_value(std::string_view cookies, std::string_view name);
/// Whether only programs of this host can reach the address.
bool is_loopback(std::string_view address);

}  // namespace ringside::cli
