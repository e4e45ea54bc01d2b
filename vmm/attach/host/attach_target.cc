#include "vmm/attach/host/attach_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"
#include "vmm/base/similar_name.h"

namespace ringside::vmm {

namespace {

constexpr std::string_view kForms =
    "a libvirt domain (its name, its UUID, or qemu:///system?name=NAME), qmp:PATH or pid:N";

tl::unexpected<Error> no_target(std::string_view text, std::string_view why) {
  return fail(ErrorCode::Invalid, fmt::format("--attach '{}': {}; it takes {}", text, why, kForms));
}

std::optional<pid_t> parse_pid(std::string_view digits) {
  const auto pid = parse_number<pid_t>(digits);
  return pid && *pid > 0 ? pid : std::nullopt;
}

/// The value of a URI's part: %41 is A (RFC 3986, section 2.1). Empty when it is malformed.
std::optional<std::string> decode_percent(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    if (text.front() != '%') {
      decoded += text.front();
      text.remove_prefix(1);
      continue;
    }
    if (text.size() < 3) return std::nullopt;
    const auto byte = parse_number<unsigned>(text.substr(1, 2), 16);
    if (!byte || *byte == 0) return std::nullopt;
    decoded += static_cast<char>(*byte);
    text.remove_prefix(3);
  }
  return decoded;
}

/// SCHEME://...?name=NAME. Other parameters are the connection's own and stay in its URI.
Result<DomainTarget> parse_uri(std::string_view text) {
  const std::size_t question = text.find('?');
  DomainTarget target{.uri = std::string(text.substr(0, question)), .domain = {}};
  std::string_view query = question == text.npos ? std::string_view() : text.substr(question + 1);
  char separator = '?';
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    const std::string_view key = part.substr(0, part.find('='));
    if (key != "name" && key != "uuid") {
      target.uri += std::exchange(separator, '&');
      target.uri += part;
      continue;
    }
    const auto value = decode_percent(part.substr(std::min(key.size() + 1, part.size())));
    if (!value) return no_target(text, fmt::format("{} has a malformed %", part));
    if (!target.domain.empty()) return no_target(text, "it names two domains");
    target.domain = *value;
  }
  if (target.domain.empty()) return no_target(text, "it names no domain");
  return target;
}

}  // namespace

Result<AttachTarget> parse_attach_target(std::string_view text) {
  constexpr std::string_view kPid = "pid:", kQmp = "qmp:";
  AttachTarget target{.text = std::string(text), .where = {}};
  if (text.empty()) return no_target(text, "it names nothing");
  if (text.find('\0') != text.npos) return no_target("", "it holds a NUL");
  if (text.starts_with(kPid)) {
    const auto pid = parse_pid(text.substr(kPid.size()));
    if (!pid) return no_target(text, "that is no process number");
    target.where = ProcessTarget{*pid};
  } else if (text.starts_with(kQmp)) {
    const std::string_view path = text.substr(kQmp.size());
    if (path.empty()) return no_target(text, "the path of the socket is missing");
    target.where = QmpTarget{std::string(path)};
  } else if (text.find("://") != text.npos) {
    target.where = TRY(parse_uri(text));
  } else {
    target.where = DomainTarget{.uri = {}, .domain = std::string(text)};
  }
  return target;
}

std::string no_such_domain(std::string_view uri, const DomainTarget& target,
                           std::vector<std::string> names) {
  constexpr std::size_t kMost = 12;
  std::string text = fmt::format("{} has no domain '{}'", uri, printable(target.domain));
  if (target.domain.find('/') != std::string::npos) {
    return text + ": a monitor's socket is named as qmp:PATH";
  }
  for (std::string& name : names) name = printable(name);
  std::ranges::sort(names);
  const std::string nearest = similar_name(target.domain, names, std::identity());
  const std::span<const std::string> shown =
      std::span<const std::string>(names).first(std::min(names.size(), kMost));
  text += names.empty() ? "; it has none" : "; it has ";
  text += fmt::format("{}", fmt::join(shown, ", "));
  if (shown.size() < names.size()) {
    text += fmt::format(" and {} more", names.size() - shown.size());
  }
  if (target.uri.empty()) text += "; another connection is named as qemu:///system?name=NAME";
  return text + did_you_mean(nearest);
}

}  // namespace ringside::vmm
