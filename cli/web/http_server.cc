#include "cli/web/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "vmm/base/unique_fd.h"

namespace ringside::cli {
namespace {

constexpr unsigned kMostConnections = 64;
constexpr unsigned kIdleSeconds = 60;
constexpr std::size_t kHeadBytes = 32 << 10, kStreamBytes = 64 << 10, kThreadStack = 512 << 10;
constexpr std::size_t kMostBody = 2 << 20;

struct AddressFree {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::string value_or_empty(MHD_Connection* connection, MHD_ValueKind kind, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, kind, name);
  return value == nullptr ? std::string() : value;
}

/// A request whose body is still coming.
struct Pending {
  HttpRequest request;
  bool too_long = false;
};

struct Streamed {
  std::function<std::size_t(char*, std::size_t)> stream;
  std::shared_ptr<void> kept;
};

ssize_t read_stream(void* streamed, std::uint64_t, char* buffer, std::size_t size) {
  const std::size_t got = static_cast<Streamed*>(streamed)->stream(buffer, size);
  return got == 0 ? MHD_CONTENT_READER_END_OF_STREAM : static_cast<ssize_t>(got);
}

void free_stream(void* streamed) {
  delete static_cast<Streamed*>(streamed);
}

MHD_Result send(MHD_Connection* connection, HttpReply reply) {
  MHD_Response* response = nullptr;
  if (reply.stream) {
    auto* const streamed = new Streamed{std::move(reply.stream), std::move(reply.kept)};
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBytes, read_stream,
                                                 streamed, free_stream);
    if (response == nullptr) delete streamed;
  } else {
    response = MHD_create_response_from_buffer(reply.body.size(), reply.body.data(),
                                               MHD_RESPMEM_MUST_COPY);
  }
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", reply.type.c_str());
  for (const auto& [name, value] : reply.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  const MHD_Result queued = MHD_queue_response(connection, reply.status, response);
  MHD_destroy_response(response);
  return queued;
}

HttpRequest head_of(MHD_Connection* connection, const char* path, const char* method) {
  const auto header = [&](const char* name) {
    return value_or_empty(connection, MHD_HEADER_KIND, name);
  };
  HttpRequest request{method, path, {}, {}, {}, -1};
  request.head = {header("Host"),
                  header("Origin"),
                  header("Sec-Fetch-Site"),
                  header("Cookie"),
                  header("Authorization"),
                  value_or_empty(connection, MHD_GET_ARGUMENT_KIND, "token"),
                  request.method != "GET" && request.method != "HEAD"};
  request.parameter = [connection](const char* name) {
    return value_or_empty(connection, MHD_GET_ARGUMENT_KIND, name);
  };
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info != nullptr) request.connection = info->connect_fd;
  return request;
}

class MicroServer final : public HttpServer {
 public:
  MicroServer(UniqueFd socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  ~MicroServer() override { stop(); }

  std::uint16_t port() const override { return port_; }

  Result<void> start(Gate gate, Handler handler) override {
    gate_ = std::move(gate);
    handler_ = std::move(handler);
    daemon_ = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, nullptr,
        nullptr, take, this, MHD_OPTION_LISTEN_SOCKET, fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0),
        MHD_OPTION_CONNECTION_LIMIT, kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHeadBytes + kStreamBytes, MHD_OPTION_THREAD_STACK_SIZE,
        kThreadStack, MHD_OPTION_NOTIFY_COMPLETED, complete, nullptr, MHD_OPTION_END);
    if (daemon_ == nullptr) return fail(ErrorCode::Io, "web: the HTTP server does not start");
    socket_.reset();  // the daemon has a copy, and closes it
    return {};
  }

  void stop() override {
    if (daemon_ != nullptr) MHD_stop_daemon(std::exchange(daemon_, nullptr));
  }

 private:
  static MHD_Result take(void* server, MHD_Connection* connection, const char* path,
                         const char* method, const char*, const char* data, std::size_t* size,
                         void** state) {
    auto& self = *static_cast<MicroServer*>(server);
    if (*state == nullptr) {
      auto pending = std::make_unique<Pending>();
      pending->request = head_of(connection, path, method);
      HttpReply refusal = self.gate_(pending->request);
      *state = pending.release();
      return refusal.status == 0 ? MHD_YES : send(connection, std::move(refusal));
    }
    Pending& pending = *static_cast<Pending*>(*state);
    if (*size != 0) {
      pending.too_long |= *size > kMostBody - pending.request.body.size();
      if (!pending.too_long) pending.request.body.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    if (pending.too_long) {
      return send(connection, {413, "text/plain; charset=utf-8",
                               "a request may have 2 MiB: shorten the program"});
    }
    return send(connection, self.handler_(pending.request));
  }

  static void complete(void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    delete static_cast<Pending*>(std::exchange(*state, nullptr));
  }

  UniqueFd socket_;
  std::uint16_t port_;
  Gate gate_;
  Handler handler_;
  MHD_Daemon* daemon_ = nullptr;
};

Result<std::uint16_t> port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  // SAFETY: the system calls take any address by this type; each family has its own layout.
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail(ErrorCode::Io, fmt::format("web: {}", std::strerror(errno)));
  }
  char digits[NI_MAXSERV];
  // SAFETY: as above.
  if (getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, digits, sizeof digits,
                  NI_NUMERICSERV) != 0) {
    return fail(ErrorCode::Io, "web: the system does not tell the port");
  }
  return static_cast<std::uint16_t>(std::strtoul(digits, nullptr, 10));
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& address,
                                                       std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string digits = std::to_string(port);
  if (getaddrinfo(address.c_str(), digits.c_str(), &hints, &list) != 0) {
    return fail(
        ErrorCode::Invalid,
        fmt::format("web: {} is no address; --listen takes numbers: 10.0.0.1:8080", address));
  }
  const std::unique_ptr<addrinfo, AddressFree> found(list);
  UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!socket || bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return fail(
        ErrorCode::Io,
        fmt::format("web: cannot listen at {}, port {}: {}; --listen PORT names another one",
                    address, port, std::strerror(errno)));
  }
  const std::uint16_t bound = TRY(port_of(socket.get()));
  return std::make_unique<MicroServer>(std::move(socket), bound);
}

}  // namespace ringside::cli
