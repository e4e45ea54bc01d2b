#include "cli/web/machine_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/web/own_command.h"

namespace ringside::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostText = 16 << 20;
constexpr std::chrono::seconds kMostTime{60}, kShortestPause{2};
/// Pauses are so much longer than what was done before.
constexpr int kPauseShare = 4;

/// The document that a command prints; null with its complaint in `trouble`.
Json document_of(std::vector<std::string> words, std::string& trouble) {
  const auto done = run_own_command(std::move(words), -1, kMostText, kMostTime);
  if (!done) {
    trouble = done.error().message;
    return nullptr;
  }
  Json document = Json::parse(done->output, nullptr, false);
  if (done->status == 0 && !document.is_discarded()) return document;
  trouble = done->errors.substr(0, done->errors.find('\n'));
  return nullptr;
}

/// The part of a report of `why` that a row shows.
Json summary_of(const Json& document) {
  const Json& report = document.value("why", Json::object());
  Json summary = Json::object();
  const Json causes = report.value("causes", Json::array());
  if (!causes.empty()) summary["why"] = causes.front().value("text", "");
  for (const char* name : {"load", "release", "tasks", "uptime_ns"}) {
    if (report.contains(name)) summary[name] = report[name];
  }
  return summary;
}

}  // namespace

MachineWatch::MachineWatch(std::vector<std::string> only, std::function<void(const Json&)> tell)
    : only_(std::move(only)), tell_(std::move(tell)), thread_([this] { run(); }) {}

MachineWatch::~MachineWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void MachineWatch::set_wanted(bool wanted) {
  const std::lock_guard lock(mutex_);
  wanted_ = wanted;
  changed_.notify_all();
}

bool MachineWatch::allows(const std::string& target) {
  if (!only_.empty()) return std::ranges::find(only_, target) != only_.end();
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(machines_, [&](const Json& each) {
    return each.contains("attach") && each["attach"] == target;
  });
}

Json MachineWatch::machines() const {
  const std::lock_guard lock(mutex_);
  Json list = machines_;
  for (Json& each : list) {
    const auto known = each["attach"].is_string() ? health_.find(each["attach"].get<std::string>())
                                                  : health_.end();
    if (known != health_.end()) each.update(known->second);
  }
  return {{"kind", "machines"}, {"machines", std::move(list)}, {"trouble", trouble_}};
}

bool MachineWatch::may_show(const Json& machine) const {
  return only_.empty() || std::ranges::any_of(only_, [&](const std::string& target) {
           return machine["attach"] == target;
         });
}

/// One that is traced, by a page of ours or by others, has no target for a while. It can be looked
/// at all the same.
void MachineWatch::keep_target(Json& machine) {
  const std::string key = machine["pid"].dump() + ' ' + machine["name"].dump();
  if (machine["attach"].is_string()) {
    targets_[key] = machine["attach"].get<std::string>();
  } else if (const auto known = targets_.find(key); known != targets_.end()) {
    machine["attach"] = known->second;
  }
}

void MachineWatch::list() {
  std::string trouble;
  Json found = document_of({"vms", "-O", "json"}, trouble);
  Json shown = Json::array();
  if (found.is_array()) {
    for (Json& each : found) {
      keep_target(each);
      if (may_show(each)) shown.push_back(std::move(each));
    }
  }
  // One that is named may be known by another target, or not be seen from here.
  for (const std::string& target : only_) {
    const bool is_there =
        std::ranges::any_of(shown, [&](const Json& each) { return each["attach"] == target; });
    if (!is_there) shown.push_back({{"name", target}, {"attach", target}});
  }
  const std::lock_guard lock(mutex_);
  machines_ = std::move(shown);
  trouble_ = std::move(trouble);
  std::erase_if(health_, [&](const auto& known) {
    return std::ranges::none_of(machines_,
                                [&](const Json& each) { return each["attach"] == known.first; });
  });
}

/// One machine, by turns, so that a host with many is looked at as gently as one with few.
void MachineWatch::look_at_next() {
  std::string target;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < machines_.size() && target.empty(); ++i) {
      const Json& machine = machines_[next_++ % machines_.size()];
      if (machine["attach"].is_string()) target = machine["attach"].get<std::string>();
    }
  }
  if (target.empty()) return;
  std::string trouble;
  const Json document = document_of({"why", "-O", "json", "--", target}, trouble);
  Json summary = document.is_object() ? summary_of(document) : Json{{"why", trouble}};
  const std::lock_guard lock(mutex_);
  health_[target] = std::move(summary);
}

void MachineWatch::publish() {
  tell_(machines());
}

void MachineWatch::pause(std::chrono::steady_clock::duration spent) {
  std::unique_lock lock(mutex_);
  const auto length =
      std::max<std::chrono::steady_clock::duration>(spent * kPauseShare, kShortestPause);
  changed_.wait_for(lock, length, [this] { return stopped_; });
}

void MachineWatch::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || wanted_; });
      if (stopped_) return;
    }
    const auto begun = std::chrono::steady_clock::now();
    list();
    publish();
    look_at_next();
    publish();
    pause(std::chrono::steady_clock::now() - begun);
  }
}

}  // namespace ringside::cli
