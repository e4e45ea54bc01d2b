#include "cli/web/web.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstdio>

#include "cli/messages/messages.h"
#include "cli/messages/signals.h"
#include "cli/web/http_server.h"
#include "cli/web/web_site.h"

namespace ringside::cli {
namespace {

Result<void> serve(const CommandLine& line) {
  const Signals signals = TRY(Signals::block());
  const std::string token = make_token();
  if (token.empty()) return fail(ErrorCode::Io, "web: the system has no random numbers");
  const auto server = TRY(HttpServer::listen(line.web.address, line.web.port));
  const RequestRules rules(token, line.web.address, server->port());
  WebSite site(rules, line.arguments);
  TRY(server->start([&](const HttpRequest& request) { return site.refuse(request); },
                    [&](const HttpRequest& request) { return site.answer(request); }));
  if (!is_loopback(line.web.address)) {
    say(
        fmt::format("web: other hosts can reach {}, and nothing is encrypted: who reads the token "
                    "can trace these machines",
                    line.web.address));
  }
  std::fputs((rules.first_address() + '\n').c_str(), stdout);
  if (std::fflush(stdout) != 0) return fail(ErrorCode::Io, "web: the address cannot be printed");
  pollfd order{signals.fd(), POLLIN, 0};
  while (::poll(&order, 1, -1) <= 0) {
  }
  site.close();
  server->stop();
  return {};
}

}  // namespace

int run_web(const CommandLine& line) {
  const auto done = serve(line);
  if (done) return kExitOk;
  say(done.error().message);
  return kExitFailure;
}

}  // namespace ringside::cli
