#include "cli/web/request_rules.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "cli/options/option_rows.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kBearer = "Bearer ";

std::string host_text(std::string_view address, std::uint16_t port) {
  const bool is_ipv6 = address.find(':') != std::string_view::npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", address, is_ipv6 ? "]" : "", port);
}

/// A page of ours, the address bar, or a program that sends no such header.
bool is_own_site(std::string_view fetch_site) {
  return fetch_site.empty() || fetch_site == "same-origin" || fetch_site == "none";
}

}  // namespace

RequestRules::RequestRules(std::string token, const std::string& address, std::uint16_t port)
    : token_(std::move(token)), cookie_name_(fmt::format("ringside-{}", port)) {
  hosts_.push_back(lower_case(host_text(address, port)));
  if (is_loopback(address)) hosts_.push_back(host_text("localhost", port));
}

RequestRules::Verdict RequestRules::judge(const RequestHead& head) const {
  if (std::ranges::find(hosts_, lower_case(head.host)) == hosts_.end()) return Verdict::WrongHost;
  const bool from_here = head.origin.empty()
                             ? !head.may_change || !head.authorization.empty()
                             : lower_case(head.origin) == "http://" + lower_case(head.host);
  if (!from_here || !is_own_site(head.fetch_site)) return Verdict::ForeignOrigin;
  if (is_same_secret(cookie_value(head.cookies, cookie_name_), token_)) return Verdict::Known;
  if (head.authorization.starts_with(kBearer) &&
      is_same_secret(std::string_view(head.authorization).substr(kBearer.size()), token_)) {
    return Verdict::Known;
  }
  return is_same_secret(head.token, token_) ? Verdict::NewPage : Verdict::WrongToken;
}

std::string RequestRules::first_address() const {
  return fmt::format("http://{}/?token={}", hosts_.front(), token_);
}

std::string RequestRules::cookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie_name_, token_);
}

std::string make_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool is_same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size() || one.empty()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  }
  return difference == 0;
}

std::string_view cookie_value(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=') {
      return one.substr(name.size() + 1);
    }
  }
  return {};
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace ringside::cli
