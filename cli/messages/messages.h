// Messages for the user, and exit statuses. The command has them on stderr, where they begin with
// our prefix where dtrace's begin with its own. A program that uses libringside takes them itself
// (MessagesTo). Drops and faults have dtrace's wording.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "dif/engine/engine.h"

namespace ringside::cli {

// dtrace's exit statuses; exit(n) in D sets any other.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

/// Sets the name in front of every line: the name by which the command was called, as in dtrace. So
/// a link with the name dtrace prints messages as dtrace does. `path` is argv[0]; before any thread
/// is started.
void set_program_name(std::string_view path);
std::string program_name();
/// The name that the command was called by, with its folders: $$0 without a script.
const std::string& program_path();

/// Writes one line with the program's name in front to stderr, or gives it to this thread's
/// receiver.
void say(std::string_view text);

/// Says on the user's terminal what takes so long (progress.h); nothing where this thread has a
/// receiver. Empty: it is done.
void show_progress(std::string what);

using MessageReceiver = std::function<void(std::string_view line)>;
/// While it lives, say() on this thread goes to `receiver`, which must outlive it.
class MessagesTo {
 public:
  explicit MessagesTo(const MessageReceiver& receiver);
  ~MessagesTo();
  MessagesTo(const MessagesTo&) = delete;
  MessagesTo& operator=(const MessagesTo&) = delete;

 private:
  const MessageReceiver* before_;
};

/// "3 drops on CPU 0", "1 dynamic variable drop"...; with the tag in front when asked for.
/// `cpu` matters for kinds that are counted per CPU only.
std::string drop_text(dif::DropKind kind, std::uint64_t count, unsigned cpu, bool tagged);
/// Whether dtrace names the CPU in drops of this kind.
bool is_per_cpu(dif::DropKind kind);

/// "error on enabled probe ID E (ID N: p:m:f:n): invalid address (0x0) in action #1 at DIF offset
/// 4"
std::string fault_message(const dif::FaultReport& report, dif::ProbeId probe,
                          const dif::ProbeDescription& name);

/// The rest of that line: ": a.d:13: json() found no \"a.b\" (text is cut at strsize=256):
/// strlen(...)", with what is known of it. `place` names a line of the source, or is empty for it;
/// `string_size` is strsize.
std::string fault_cause(const dif::FaultReport& report, const dif::Program& program,
                        const dif::Clause& clause,
                        const std::function<std::string(int line)>& place,
                        std::uint32_t string_size);

}  // namespace ringside::cli
