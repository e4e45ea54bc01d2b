// The answers of `ringside web`: the page's files, the events of each open page, programs, lists,
// pictures and metrics. Knows nothing of sockets, so tests ask it directly.
// Threads: many answer at a time.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/web/event_stream.h"
#include "cli/web/http_server.h"
#include "cli/web/machine_watch.h"
#include "cli/web/request_rules.h"
#include "cli/web/web_program.h"

namespace ringside::cli {

class WebSite {
 public:
  WebSite(RequestRules rules, std::vector<std::string> targets);
  ~WebSite();
  WebSite(const WebSite&) = delete;
  WebSite& operator=(const WebSite&) = delete;

  /// A refusal, or a reply of status 0 for a request that may be answered.
  HttpReply refuse(const HttpRequest& request) const;
  HttpReply answer(const HttpRequest& request);
  /// Ends all programs and streams.
  void close();

 private:
  struct Route;
  struct OpenPage;

  HttpReply open_page(const HttpRequest& request);
  void close_page(const std::string& name);
  HttpReply look(const HttpRequest& request);
  HttpReply examples(const HttpRequest& request);
  HttpReply start_program(const HttpRequest& request);
  HttpReply stop_program(const HttpRequest& request);
  HttpReply records(const HttpRequest& request);
  HttpReply picture(const HttpRequest& request);
  HttpReply metrics(const HttpRequest& request);
  Result<WebProgram::Order> order_of(const nlohmann::json& request);
  Result<std::shared_ptr<WebProgram>> program(const HttpRequest& request) const;
  void tell_pages(const nlohmann::json& event);

  const RequestRules rules_;
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, std::shared_ptr<EventStream>> pages_;
  std::map<unsigned, std::shared_ptr<WebProgram>> programs_;
  unsigned last_program_ = 0;
  bool closed_ = false;
  std::condition_variable command_ended_;
  unsigned commands_ = 0;  // that run now
  MachineWatch watch_;     // tells the pages: last, so that it ends first
};

}  // namespace ringside::cli
