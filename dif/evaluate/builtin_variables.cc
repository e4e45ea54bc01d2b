#include "dif/evaluate/builtin_variables.h"

namespace ringside::dif {

BuiltinVariables::BuiltinVariables(Memory& memory) {
  memory.set_arena(Arena::Context, execname_);
}

void BuiltinVariables::begin_firing(const ProbeIdentity& probe, const FireRecord& record,
                                    const GuestContext& guest) {
  probe_ = probe;
  record_ = &record;
  guest_ = &guest;
  error_arguments_ = nullptr;
  known_variables_ = known_arguments_ = 0;
  execname_known_ = false;
}

void BuiltinVariables::begin_error(const ProbeIdentity& probe,
                                   const ProbeArgumentValues& arguments) {
  probe_ = probe;
  error_arguments_ = &arguments;
}

void BuiltinVariables::end_error(const ProbeIdentity& interrupted) {
  probe_ = interrupted;
  error_arguments_ = nullptr;
}

Result<std::uint64_t, Fault> BuiltinVariables::context(ContextVariable which) {
  const auto index = static_cast<std::size_t>(which);
  if ((known_variables_ >> index & 1) == 0) {
    variables_[index] = TRY(guest_->variable(which));
    known_variables_ |= 1u << index;
  }
  return variables_[index];
}

/// For variables that D types as int: a register holds them sign-extended.
Result<std::uint64_t, Fault> BuiltinVariables::context_int(ContextVariable which) {
  const std::uint64_t value = TRY(context(which));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
}

Result<std::uint64_t, Fault> BuiltinVariables::execname() {
  if (!execname_known_) {
    // SAFETY: char may alias.
    const std::span text(reinterpret_cast<char*>(execname_.data()), execname_.size() - 1);
    const std::size_t length = std::min(TRY(guest_->execname(text)), text.size());
    execname_[length] = std::byte{0};
    execname_known_ = true;
  }
  return make_handle(Arena::Context, 0);
}

Result<std::uint64_t, Fault> BuiltinVariables::argument(std::uint64_t n) {
  if (n >= kMaxProbeArguments) return raise(FaultKind::IllegalOperation);
  if (error_arguments_ != nullptr) return (*error_arguments_)[n];
  if ((known_arguments_ >> n & 1) == 0) {
    arguments_[n] = TRY(guest_->argument(static_cast<unsigned>(n)));
    known_arguments_ |= 1u << n;
  }
  return arguments_[n];
}

Result<std::uint64_t, Fault> BuiltinVariables::machine_register(std::uint8_t array,
                                                                std::uint64_t n) {
  const RegisterSet set = array == kUregsArray ? RegisterSet::OfProcess : RegisterSet::AtProbe;
  return guest_->machine_register(set, n);
}

Result<Owner, Fault> BuiltinVariables::owner() {
  const auto tid = static_cast<std::uint32_t>(TRY(context(ContextVariable::Tid)));
  constexpr std::uint64_t kIdle = std::uint64_t{1} << 63;
  // Machines may share the table that it is a key of.
  const std::uint64_t machine = std::uint64_t{static_cast<std::uint32_t>(probe_.machine_number)}
                                << 32;
  // The idle tasks of all vCPUs share thread id 0.
  if (tid == 0) return Owner{machine | kIdle | record_->vcpu, 0};
  return Owner{machine | tid, TRY(context(ContextVariable::Born))};
}

Result<std::uint64_t, Fault> BuiltinVariables::load(std::uint16_t id) {
  switch (static_cast<Builtin>(id)) {  // no default: -Wswitch names the variable we forgot
    case Builtin::Curthread: return context(ContextVariable::Curthread);
    case Builtin::Timestamp: return record_->timestamp;
    case Builtin::Vtimestamp: return context(ContextVariable::Vtimestamp);
    case Builtin::Ipl: return static_cast<std::uint32_t>(TRY(context(ContextVariable::Ipl)));
    case Builtin::Epid: return ecb_.value;
    case Builtin::Id: return probe_.id.value;
    case Builtin::Arg0:
    case Builtin::Arg1:
    case Builtin::Arg2:
    case Builtin::Arg3:
    case Builtin::Arg4:
    case Builtin::Arg5:
    case Builtin::Arg6:
    case Builtin::Arg7:
    case Builtin::Arg8:
    case Builtin::Arg9: return argument(id - static_cast<std::uint64_t>(Builtin::Arg0));
    case Builtin::Stackdepth:
      return static_cast<std::uint32_t>(TRY(context(ContextVariable::Stackdepth)));
    case Builtin::Caller: return context(ContextVariable::Caller);
    case Builtin::Probeprov: return name(0);
    case Builtin::Probemod: return name(1);
    case Builtin::Probefunc: return name(2);
    case Builtin::Probename: return name(3);
    case Builtin::Pid: return context_int(ContextVariable::Pid);
    case Builtin::Tid: return context_int(ContextVariable::Tid);
    case Builtin::Execname:
    case Builtin::Threadname: return execname();  // Linux names threads: current->comm
    case Builtin::Walltimestamp: return static_cast<std::uint64_t>(record_->walltimestamp);
    case Builtin::Ustackdepth:
      return static_cast<std::uint32_t>(TRY(context(ContextVariable::Ustackdepth)));
    case Builtin::Ucaller: return context(ContextVariable::Ucaller);
    case Builtin::Ppid: return context_int(ContextVariable::Ppid);
    case Builtin::Uid: return static_cast<std::uint32_t>(TRY(context(ContextVariable::Uid)));
    case Builtin::Gid: return static_cast<std::uint32_t>(TRY(context(ContextVariable::Gid)));
    case Builtin::Errno: return context_int(ContextVariable::Errno);
    case Builtin::Cpu: return record_->vcpu;
    case Builtin::Vmname: return name(4);
    case Builtin::Vmid: return static_cast<std::uint64_t>(probe_.machine_number);
    case Builtin::Vmpid: return static_cast<std::uint64_t>(probe_.machine_process);
  }
  return raise(FaultKind::IllegalOperation);
}

}  // namespace ringside::dif
