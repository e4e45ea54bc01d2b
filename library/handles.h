// The objects behind the handles of ringside.h, and the scope of a call. The command is made of the
// same parts (cli/session/tracing.h); here they hand over trees and never print.
// Used by this folder alone.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/look/looked_at.h"
#include "cli/messages/messages.h"
#include "cli/messages/signals.h"
#include "cli/options/options.h"
#include "cli/output/structured_writer.h"
#include "cli/session/tracing.h"
#include "library/ringside.h"
#include "vmm/attach/host/attach_target.h"
#include "vmm/base/end_order.h"
#include "vmm/base/process.h"
#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

struct ringside_error {
  ringside_error_code code = RINGSIDE_ERROR_INVALID;
  std::string message, tag;
  int line = 0, column = 0;
};

namespace ringside::library {

using cli::Tree;

/// A handle's own order to end. give() may be called on any thread and in a signal handler.
class HandleOrder final : public cli::EndEvents {
 public:
  HandleOrder();
  void give();
  bool is_given() const { return state_.load(std::memory_order_relaxed) != EndOrder::None; }
  const EndOrderState& state() const { return state_; }

  int fd() const override { return event_.get(); }
  // The process is its user's: nothing ends it, hence nothing is owed that a word could be about.
  void owe_guest(std::string) override {}
  void settle_with_guest() override {}

 private:
  EndOrderState state_{EndOrder::None};
  UniqueFd event_;
};

/// While it lives, no signal is handled on this thread, and threads that start handle none.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  bool had_sigpipe_ = false;
  // These are about what the thread itself does, and do not wait.
  AllSignalsBlocked blocked_{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
};

/// One call on a handle: signals wait, lines for the user go to `messages`, and `order` is who
/// gives up what takes long.
class Call {
 public:
  Call(const HandleOrder& order, const cli::MessageReceiver& messages)
      : to_(messages), order_(order.state()) {}

 private:
  BlockedSignals signals_;
  cli::MessagesTo to_;
  EndOrderScope order_;
};

/// The process that made a handle. A process that it forks has a copy of the handle, but neither its
/// threads nor its guard, so it must not end what the handle is for.
class MadeBy {
 public:
  bool is_here() const { return process_ == ::getpid(); }

 private:
  pid_t process_ = ::getpid();
};

/// Fills in the caller's error; returns what the function returns then.
void tell_error(ringside_error** where, ringside_error_code code, std::string message);
void tell_error(ringside_error** where, const Error& error);

/// A value of ours that the caller frees, and a part of one that he does not.
ringside_value* give_value(Tree tree);
const ringside_value* lend_value(const Tree& tree);

/// The machine as it is looked at: its kernel's memory, types and lists.
struct Look {
  explicit Look(std::unique_ptr<cli::LookedAt> looked);
  const guest_linux::Kernel& kernel() const { return machine->view().kernel(); }

  std::unique_ptr<cli::LookedAt> machine;
  TypeGraph types;  // over the kernel's: pointers and arrays that we make
};
/// Finds the machine and its kernel the first time. MachineGone once it has ended.
Result<std::shared_ptr<Look>> look_of(ringside_vm& vm);
Result<void> check_there(const Look& look);

}  // namespace ringside::library

struct ringside_vm {
  std::string name;
  ringside::cli::CommandLine line;  // for traces: its machine is this one
  ringside::vmm::AttachTarget target;
  std::shared_ptr<ringside::library::Look> look;  // made when it is first needed
  ringside::library::MadeBy made_by;
};

struct ringside_trace {
  explicit ringside_trace(const ringside_vm& vm);
  ~ringside_trace();

  enum class Stage : std::uint8_t { New, Compiled, Running, Ended, Failed };

  ringside::cli::CommandLine line;
  ringside::library::HandleOrder order;
  std::deque<ringside::library::Tree> records;    // that were not handed over yet
  ringside::library::Tree current;                // the one that was handed over last
  std::optional<ringside::library::Tree> wanted;  // takes aggregations in the queue's stead
  ringside::cli::MessageReceiver messages;
  ringside::cli::Sink nowhere{-1};
  std::optional<ringside::cli::Tracing> tracing;
  Stage stage = Stage::New;
  int status = 0;
  ringside_end end = RINGSIDE_NOT_ENDED;
  ringside::library::MadeBy made_by;
};
