// The values of the built-in variables in the firing that runs. Each that needs the guest is
// asked for at most once per firing. Fire context: yes.
#pragma once

#include <array>
#include <cstdint>

#include "dif/evaluate/guest_context.h"
#include "dif/evaluate/memory.h"
#include "dif/evaluate/variables.h"
#include "dif/program/builtin.h"
#include "dif/program/probe_description.h"

namespace ringside::dif {

/// A probe as its clauses see it: where its names lie in the Names arena.
struct ProbeIdentity {
  ProbeId id;
  std::array<std::uint32_t, 5> names{};  // provider, module, function, name; the machine's
  std::int32_t machine_number = 0, machine_process = 0;
};

using ProbeArgumentValues = std::array<std::uint64_t, kMaxProbeArguments>;

class BuiltinVariables {
 public:
  explicit BuiltinVariables(Memory& memory);

  void begin_firing(const ProbeIdentity& probe, const FireRecord& record,
                    const GuestContext& guest);
  void begin_clause(EcbId ecb) { ecb_ = ecb; }
  /// dtrace:::ERROR fires within another firing: same guest, but its own name and arguments.
  void begin_error(const ProbeIdentity& probe, const ProbeArgumentValues& arguments);
  void end_error(const ProbeIdentity& interrupted);

  Result<std::uint64_t, Fault> load(std::uint16_t id);
  /// args[n]
  Result<std::uint64_t, Fault> argument(std::uint64_t n);
  /// regs[n] and uregs[n]; an illegal operation where the firing has no such register.
  Result<std::uint64_t, Fault> machine_register(std::uint8_t array, std::uint64_t n);
  Result<std::uint64_t, Fault> lock(LockFact which, std::uint64_t at) const {
    return guest_->lock(which, GuestVirt(at));
  }
  Result<std::size_t, Fault> path(std::uint64_t dentry, std::uint64_t mount,
                                  std::span<char> out) const {
    return guest_->path(GuestVirt(dentry), GuestVirt(mount), out);
  }
  Result<CopiedPacket, Fault> packet(std::uint64_t skb, PacketPart part,
                                     std::span<std::byte> out) const {
    return guest_->packet(GuestVirt(skb), part, out);
  }
  Result<bool, Fault> progeny_of(std::int64_t pid) const { return guest_->progeny_of(pid); }
  Result<void, Fault> write_user(std::uint64_t at, std::span<const std::byte> bytes) const {
    return guest_->write_user(GuestVirt{at}, bytes);
  }
  /// The owner of self-> variables: the thread, or the vCPU while it is idle.
  Result<Owner, Fault> owner();

 private:
  static constexpr std::size_t kLongestExecname = 64;

  Result<std::uint64_t, Fault> context(ContextVariable which);
  Result<std::uint64_t, Fault> context_int(ContextVariable which);
  Result<std::uint64_t, Fault> execname();
  std::uint64_t name(std::size_t part) const {
    return make_handle(Arena::Names, probe_.names[part]);
  }

  ProbeIdentity probe_;
  const FireRecord* record_ = nullptr;
  const GuestContext* guest_ = nullptr;
  const ProbeArgumentValues* error_arguments_ = nullptr;
  EcbId ecb_;
  std::uint32_t known_variables_ = 0, known_arguments_ = 0;  // bit sets
  bool execname_known_ = false;
  std::array<std::uint64_t, kContextVariables> variables_{};
  ProbeArgumentValues arguments_{};
  std::array<std::byte, kLongestExecname> execname_{};
};

}  // namespace ringside::dif
