// In this file, top to bottom: replies, who may ask, pages, lists, programs, what is left of them.
#include "cli/web/web_site.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/statistics/figures_file.h"
#include "cli/web/metrics.h"
#include "cli/web/page_files.h"
#include "vmm/base/numbers.h"
#include "vmm/base/own_folder.h"

namespace ringside::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kJsonType = "application/json; charset=utf-8";
constexpr const char* kTextType = "text/plain; charset=utf-8";
/// A browser keeps six connections to a host, and each page has one for its events.
constexpr std::size_t kMostPages = 5;
/// Of those that have ended, the oldest give way.
constexpr std::size_t kMostPrograms = 32, kMostArguments = 64;
/// Lists and pictures that are made at a time.
constexpr unsigned kMostCommands = 4;
constexpr std::size_t kMostAnswer = 64 << 20;
constexpr std::chrono::seconds kAnswerTime{60};
/// Nothing comes from elsewhere, and nothing runs that is not a file of ours.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A picture has its own script, and is kept from all else.
constexpr const char* kPicturePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; sandbox "
    "allow-scripts; frame-ancestors 'self'";

HttpReply with_policy(HttpReply reply, const char* policy) {
  reply.headers.insert(reply.headers.end(), {{"Content-Security-Policy", policy},
                                             {"X-Content-Type-Options", "nosniff"},
                                             {"Referrer-Policy", "no-referrer"},
                                             {"Cross-Origin-Resource-Policy", "same-origin"},
                                             {"Cache-Control", "no-store"}});
  return reply;
}

HttpReply error_reply(unsigned status, std::string text) {
  return {status, kTextType, std::move(text) + '\n'};
}

HttpReply error_reply(const Error& error) {
  switch (error.code) {
    case ErrorCode::NotFound: return error_reply(404, error.message);
    case ErrorCode::Limit: return error_reply(429, error.message);
    default: return error_reply(400, error.message);
  }
}

std::string json_text(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpReply json_reply(const Json& document) {
  return {200, kJsonType, json_text(document)};
}

}  // namespace

WebSite::WebSite(RequestRules rules, std::vector<std::string> targets)
    : rules_(std::move(rules)),
      watch_(std::move(targets), [this](const Json& event) { tell_pages(event); }) {}

WebSite::~WebSite() {
  close();
}

HttpReply WebSite::refuse(const HttpRequest& request) const {
  using Verdict = RequestRules::Verdict;
  switch (rules_.judge(request.head)) {
    case Verdict::Known: return {0};
    case Verdict::WrongHost:
      return error_reply(421,
                         "this server has another name: use the address that ringside web printed");
    case Verdict::ForeignOrigin: return error_reply(403, "a page of another site may not ask this");
    case Verdict::NewPage:
      if (request.path != "/" || request.head.may_change) break;
      return {303,
              kTextType,
              "",
              {{"Location", "/"}, {"Set-Cookie", rules_.cookie()}, {"Cache-Control", "no-store"}}};
    case Verdict::WrongToken: break;
  }
  return error_reply(401,
                     "the token is missing or wrong: open the address that ringside web printed");
}

struct WebSite::Route {
  const char *method, *path;
  HttpReply (WebSite::*answer)(const HttpRequest& request);
};

HttpReply WebSite::answer(const HttpRequest& request) {
  static constexpr Route kRoutes[] = {
      {"GET", "/api/events", &WebSite::open_page},   {"GET", "/api/look", &WebSite::look},
      {"GET", "/api/examples", &WebSite::examples},  {"POST", "/api/run", &WebSite::start_program},
      {"POST", "/api/stop", &WebSite::stop_program}, {"GET", "/api/records", &WebSite::records},
      {"GET", "/api/picture", &WebSite::picture},    {"GET", "/metrics", &WebSite::metrics},
  };
  for (const Route& route : kRoutes) {
    if (request.path != route.path) continue;
    if (request.method != route.method)
      return with_policy(error_reply(405, fmt::format("{} takes {}", route.path, route.method)),
                         kPagePolicy);
    HttpReply reply = (this->*route.answer)(request);
    return with_policy(std::move(reply),
                       request.path == "/api/picture" ? kPicturePolicy : kPagePolicy);
  }
  for (const PageFile& file : page_files()) {
    if (request.path != file.path || request.method != "GET") continue;
    return with_policy({200, std::string(file.type), std::string(file.text)}, kPagePolicy);
  }
  return with_policy(error_reply(404, "there is no such page"), kPagePolicy);
}

void WebSite::close() {
  std::map<unsigned, std::shared_ptr<WebProgram>> programs;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [name, page] : pages_) page->close();
    programs.swap(programs_);
  }
  for (const auto& [number, each] : programs) each->stop();
  for (const auto& [number, each] : programs) each->join();
}

void WebSite::tell_pages(const Json& event) {
  const std::string text = json_text(event);
  const std::lock_guard lock(mutex_);
  for (const auto& [name, page] : pages_) page->set_latest("machines", text);
}

/// Ends what the page has started once its connection has gone.
HttpReply WebSite::open_page(const HttpRequest& request) {
  const std::string name = make_token();
  auto stream = std::make_shared<EventStream>();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return error_reply(503, "ringside web is ending");
    if (pages_.size() >= kMostPages)
      return error_reply(503,
                         fmt::format("{} pages are open already: close one of them", kMostPages));
    pages_[name] = stream;
  }
  stream->add(Json{{"kind", "page"}, {"page", name}}.dump());
  stream->set_latest("machines", json_text(watch_.machines()));
  watch_.set_wanted(true);
  HttpReply reply{200, "text/event-stream; charset=utf-8"};
  reply.stream = [stream, connection = request.connection](char* buffer, std::size_t size) {
    return stream->read(buffer, size, connection);
  };
  reply.kept = std::shared_ptr<void>(nullptr, [this, name](void*) { close_page(name); });
  return reply;
}

void WebSite::close_page(const std::string& name) {
  std::vector<std::shared_ptr<WebProgram>> programs;
  {
    const std::lock_guard lock(mutex_);
    const auto page = pages_.find(name);
    if (page == pages_.end()) return;
    page->second->close();
    for (auto each = programs_.begin(); each != programs_.end();) {
      const bool is_its = each->second->page() == page->second;
      if (is_its) programs.push_back(std::move(each->second));
      each = is_its ? programs_.erase(each) : std::next(each);
    }
    pages_.erase(page);
    if (pages_.empty()) watch_.set_wanted(false);
  }
  for (const auto& each : programs) each->stop();
  for (const auto& each : programs) each->join();
}

/// Counts a command that runs beside others, for as long as it lives.
class CommandRoom {
 public:
  CommandRoom(std::mutex& mutex, std::condition_variable& ended, unsigned& count)
      : mutex_(mutex), ended_(ended), count_(count) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return count_ < kMostCommands; });
    ++count_;
  }
  CommandRoom(const CommandRoom&) = delete;
  CommandRoom& operator=(const CommandRoom&) = delete;
  ~CommandRoom() {
    const std::lock_guard lock(mutex_);
    --count_;
    ended_.notify_one();
  }

 private:
  std::mutex& mutex_;
  std::condition_variable& ended_;
  unsigned& count_;
};

HttpReply WebSite::look(const HttpRequest& request) {
  constexpr const char* kCommands[] = {"ps",      "dmesg", "modules", "mounts",
                                       "netstat", "lsof",  "why"};
  const std::string command = request.parameter("command"), target = request.parameter("target");
  if (std::ranges::find(kCommands, command) == std::end(kCommands))
    return error_reply(400, "there is no such list");
  if (!watch_.allows(target))
    return error_reply(404, fmt::format("{} is no machine of this page", target));
  const CommandRoom room(mutex_, command_ended_, commands_);
  const auto done =
      run_own_command({command, "-O", "json", "--", target}, -1, kMostAnswer, kAnswerTime);
  if (!done) return error_reply(done.error());
  if (done->status != 0) return error_reply(502, done->errors);
  return {200, kJsonType, done->output};
}

HttpReply WebSite::examples(const HttpRequest& request) {
  const std::string name = request.parameter("name");
  if (!std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0; }))
    return error_reply(404, "there is no such example");
  std::vector<std::string> words{"examples"};
  if (!name.empty()) words.push_back(name);
  const CommandRoom room(mutex_, command_ended_, commands_);
  const auto done = run_own_command(std::move(words), -1, kMostAnswer, kAnswerTime);
  if (!done) return error_reply(done.error());
  if (done->status != 0) return error_reply(404, done->errors);
  return {200, kTextType, done->output};
}

Result<WebProgram::Order> WebSite::order_of(const Json& request) {
  const auto refuse = [](std::string why) { return fail(ErrorCode::Invalid, std::move(why)); };
  const auto is_list = [&](const char* name) {
    return request[name].is_array() && std::ranges::all_of(request[name], [](const Json& each) {
             return each.is_string() &&
                    each.get_ref<const std::string&>().find('\0') == std::string::npos;
           });
  };
  for (const char* name : {"page", "d"}) {
    if (!request.is_object() || !request.contains(name) || !request[name].is_string())
      return refuse(fmt::format("the request lacks \"{}\"", name));
  }
  for (const char* name : {"targets", "arguments"}) {
    if (!request.contains(name) || !is_list(name))
      return refuse(fmt::format("\"{}\" has to be a list of texts without NULs", name));
  }
  WebProgram::Order order{request["targets"], request["arguments"], request["d"]};
  if (order.arguments.size() > kMostArguments)
    return refuse(fmt::format("a program takes {} arguments at most", kMostArguments));
  for (const std::string& target : order.targets) {
    if (!watch_.allows(target)) return refuse(fmt::format("{} is no machine of this page", target));
  }
  return order;
}

HttpReply WebSite::start_program(const HttpRequest& request) {
  const Json asked = Json::parse(request.body, nullptr, false);
  const auto order = order_of(asked);
  if (!order) return error_reply(order.error());
  const std::lock_guard lock(mutex_);
  const auto page = pages_.find(asked["page"].get<std::string>());
  if (page == pages_.end() || page->second->is_closed())
    return error_reply(404, "the page's events have ended: load it again");
  if (programs_.size() >= kMostPrograms) {
    const auto ended =
        std::ranges::find_if(programs_, [](const auto& each) { return !each.second->runs(); });
    if (ended == programs_.end()) {
      return error_reply(429,
                         fmt::format("{} programs run already: stop one of them", kMostPrograms));
    }
    programs_.erase(ended);
  }
  auto program = WebProgram::start(++last_program_, *order, page->second);
  if (!program) return error_reply(500, program.error().message);
  programs_[last_program_] = std::move(*program);
  return json_reply({{"program", last_program_}});
}

Result<std::shared_ptr<WebProgram>> WebSite::program(const HttpRequest& request) const {
  const auto number = ringside::parse_number<unsigned>(request.parameter("program"));
  const std::lock_guard lock(mutex_);
  const auto found = number ? programs_.find(*number) : programs_.end();
  if (found != programs_.end()) return found->second;
  return fail(ErrorCode::NotFound,
              fmt::format("this program's records are no longer kept: its page has gone, or {} "
                          "later programs have come",
                          kMostPrograms));
}

HttpReply WebSite::stop_program(const HttpRequest& request) {
  const auto found = program(request);
  if (!found) return error_reply(found.error());
  (*found)->stop();
  return json_reply(Json::object());
}

/// All records as they were made, those that the page was not sent among them.
HttpReply WebSite::records(const HttpRequest& request) {
  const auto found = program(request);
  if (!found) return error_reply(found.error());
  auto saved = (*found)->saved();
  if (!saved) return error_reply(500, saved.error().message);
  HttpReply reply{200, "application/jsonl; charset=utf-8"};
  reply.headers = {{"Content-Disposition",
                    fmt::format("attachment; filename=\"ringside-{}.jsonl\"", (*found)->number())}};
  const auto file = std::make_shared<UniqueFd>(std::move(*saved));
  reply.stream = [file](char* buffer, std::size_t size) {
    const ssize_t got = ::read(file->get(), buffer, size);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  };
  return reply;
}

HttpReply WebSite::picture(const HttpRequest& request) {
  const std::string form = request.parameter("form");
  if (form != "flame" && form != "heatmap")
    return error_reply(400, "a picture is flame or heatmap");
  const auto found = program(request);
  if (!found) return error_reply(found.error());
  const auto saved = (*found)->saved();
  if (!saved) return error_reply(500, saved.error().message);
  const CommandRoom room(mutex_, command_ended_, commands_);
  const auto done = run_own_command({"draw", form}, saved->get(), kMostAnswer, kAnswerTime);
  if (!done) return error_reply(done.error());
  if (done->status != 0) return error_reply(422, done->errors);
  return {200, "image/svg+xml; charset=utf-8", done->output};
}

HttpReply WebSite::metrics(const HttpRequest&) {
  std::vector<ProgramMetrics> programs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, each] : programs_) {
      if (each->runs())
        programs.push_back(
            {number, each->pid(), each->records(), each->left_out(), each->latest()});
    }
  }
  std::vector<MachineMetrics> machines;
  const auto figures = read_figures(runtime_folder());
  for (const ProcessFigures& process : figures.value_or(std::vector<ProcessFigures>())) {
    const auto program = std::ranges::find(programs, process.pid, &ProgramMetrics::pid);
    if (program == programs.end()) continue;
    for (const Figures& each : process.machines)
      machines.push_back({program->number, each.machine, each.trace.firings,
                          each.trace.kernel.misses, each.drops});
  }
  return {200, kOpenMetricsType, open_metrics(programs, machines)};
}

}  // namespace ringside::cli
