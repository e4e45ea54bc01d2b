// An HTTP server with a bounded number of connections, each with a thread of its own, over
// libmicrohttpd. Used by web.cc, which answers the requests. Does not: know who may ask
// (request_rules.h).
// Threads: the handler is called by many at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/web/request_rules.h"
#include "vmm/base/result.h"

namespace ringside::cli {

struct HttpRequest {
  std::string method, path, body;
  RequestHead head;
  std::function<std::string(const char* name)> parameter;  // of the query; empty without it
  int connection = -1;  // its socket, on which poll() sees that the client has gone
};

struct HttpReply {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  /// In place of the body: waits for more and fills the buffer; the number of bytes, 0 at the end.
  std::function<std::size_t(char* buffer, std::size_t size)> stream{};
  std::shared_ptr<void> kept{};  // lives as long as the stream is read
};

class HttpServer {
 public:
  using Handler = std::function<HttpReply(const HttpRequest& request)>;
  /// Decides on a request's head, before its body is read; a status of 0 lets it in.
  using Gate = std::function<HttpReply(const HttpRequest& request)>;

  /// Listens; port 0 is any free one. Invalid: no such address of this host. Io: the port is in
  /// use.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address, std::uint16_t port);
  virtual ~HttpServer() = default;

  virtual std::uint16_t port() const = 0;
  virtual Result<void> start(Gate gate, Handler handler) = 0;
  /// Streams must have ended, or end soon: it waits for all requests.
  virtual void stop() = 0;
};

}  // namespace ringside::cli
