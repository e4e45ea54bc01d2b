// The machines that pages show: who is there, and how each one is, by `ringside vms` and `why`,
// which put nothing into a guest. Each machine is looked at in its turn, and the looking takes a
// fifth of a CPU at most. Nobody looks while no page is open.
// Threads: one of its own looks; all others may ask.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace ringside::cli {

class MachineWatch {
 public:
  /// `only`: the targets that pages may use; empty: all of this host. `tell` gets each new state, a
  /// list for a page, from the watch's thread.
  MachineWatch(std::vector<std::string> only, std::function<void(const nlohmann::json&)> tell);
  ~MachineWatch();
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;

  /// Whether a page is open.
  void set_wanted(bool wanted);
  /// Whether a page may trace or look at this target.
  bool allows(const std::string& target);
  nlohmann::json machines() const;

 private:
  void run();
  void list();
  void look_at_next();
  void pause(std::chrono::steady_clock::duration spent);
  void keep_target(nlohmann::json& machine);
  bool may_show(const nlohmann::json& machine) const;
  void publish();

  const std::vector<std::string> only_;
  const std::function<void(const nlohmann::json&)> tell_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool wanted_ = false, stopped_ = false;
  nlohmann::json machines_ = nlohmann::json::array();
  std::map<std::string, nlohmann::json> health_;  // by target
  std::string trouble_;
  std::size_t next_ = 0;                        // the thread's
  std::map<std::string, std::string> targets_;  // the thread's: by process and name
  std::thread thread_;
};

}  // namespace ringside::cli
