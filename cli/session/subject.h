// The subjects of a session: its targets, in the order of their numbers (vmid), and what the
// session has to do with each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/guest/guest_command.h"
#include "cli/output/target_view.h"
#include "cli/program/environment.h"
#include "providers/target.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"

namespace ringside::cli {

struct Subject {
  std::unique_ptr<providers::Target> target;
  std::unique_ptr<vmm::PausedMachine> paused_at_arrival;  // until its probes stand
  std::optional<GuestCommand> command;                    // -c in the guest
  std::int64_t process = 0;                               // $target; 0 for none
  std::int32_t number = 0;                                // vmid
  std::optional<TracerEnvironment> environment;           // while programs are bound and enabled
  std::optional<TargetView> view;                         // once a program is bound to it
};

class Subjects {
 public:
  /// A new one, the last; the reference holds until the next is added.
  Subject& add();

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  Subject& front() { return all_.front(); }
  const Subject& front() const { return all_.front(); }
  Subject& operator[](std::size_t number) { return all_[number]; }
  bool several() const { return all_.size() > 1; }

  /// The status of the first exit() that a program has run, on whichever target.
  std::optional<int> exit_status() const;

  /// The beginning of a line about this one: "NAME: " where there are several.
  std::string line_start(const Subject& subject) const;
  /// Says a line about this one on stderr.
  void say_of(const Subject& subject, const std::string& text) const;
  /// The result; where it is an error, its message begins with whom it is about.
  template <class T>
  Result<T> named(const Subject& subject, Result<T> result) const {
    if (!result) result.error().message = line_start(subject) + result.error().message;
    return result;
  }

 private:
  std::vector<Subject> all_;
};

}  // namespace ringside::cli
