// The subroutines that DIF calls. Arguments are on the tuple stack. Strings are used where they
// lie, and results are made in scratch. There is one class for each kind of subroutine, with the
// state that the kind needs; Subroutines only dispatches.
// Fire context: yes, but for the constructors.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "dif/evaluate/builtin_variables.h"
#include "dif/evaluate/lazy_memory.h"
#include "dif/evaluate/memory.h"
#include "dif/evaluate/speculation_ids.h"
#include "dif/evaluate/variables.h"
#include "dif/program/builtin.h"

namespace ringside::dif {

using CallArguments = std::span<const TupleValue>;
using CallResult = Result<std::uint64_t, Fault>;

/// Valid until the next subroutine is called.
inline Result<std::string_view, Fault> string_argument(Memory& memory, const TupleValue& argument) {
  return memory.another_string(argument.value, memory.string_size());
}

/// A fresh string, cut to what a D string holds.
inline CallResult string_result(Memory& memory, std::string_view text) {
  return memory.new_string(text.substr(0, memory.string_size()));
}

/// Numbers: random ones, their byte order, from and to text. builtin.def names its functions as
/// numbers.NAME, and so on for the others.
class NumberSubroutines {
 public:
  explicit NumberSubroutines(Memory& memory);

  CallResult rand(CallArguments a);
  CallResult swap16(CallArguments a) {
    return __builtin_bswap16(static_cast<std::uint16_t>(a[0].value));
  }
  CallResult swap32(CallArguments a) {
    return __builtin_bswap32(static_cast<std::uint32_t>(a[0].value));
  }
  CallResult swap64(CallArguments a) { return __builtin_bswap64(a[0].value); }
  CallResult lltostr(CallArguments a);
  CallResult strtoll(CallArguments a);

 private:
  Memory& memory_;
  std::uint64_t random_;
};

/// Plain memory: scratch, and copies between it and the guest's processes.
class MemorySubroutines {
 public:
  MemorySubroutines(Memory& memory, const BuiltinVariables& builtins)
      : memory_(memory), builtins_(builtins) {}

  CallResult allocate(CallArguments a);
  CallResult bcopy(CallArguments a);
  CallResult copyin(CallArguments a);
  CallResult copyinstr(CallArguments a);
  CallResult copyinto(CallArguments a);
  CallResult copyout(CallArguments a);
  CallResult copyoutstr(CallArguments a);
  CallResult sum32(CallArguments a);

 private:
  Memory& memory_;
  const BuiltinVariables& builtins_;  // it knows the firing's guest
};

/// The guest's kernel: progenyof(), and those about locks, paths and device numbers.
class GuestSubroutines {
 public:
  GuestSubroutines(Memory& memory, BuiltinVariables& builtins)
      : memory_(memory), builtins_(builtins) {}

  CallResult progenyof(CallArguments a);
  CallResult mutex_owned(CallArguments a);
  CallResult mutex_owner(CallArguments a) { return lock(LockFact::Owner, a); }
  CallResult mutex_type_adaptive(CallArguments a) { return lock(LockFact::Adaptive, a); }
  CallResult mutex_type_spin(CallArguments a) { return lock(LockFact::Spins, a); }
  CallResult rw_read_held(CallArguments a) { return lock(LockFact::ReadHeld, a); }
  CallResult rw_write_held(CallArguments a) { return lock(LockFact::WriteHeld, a); }
  CallResult rw_iswriter(CallArguments a) { return lock(LockFact::HasWriter, a); }
  CallResult d_path(CallArguments a);
  CallResult copyoutmbuf(CallArguments a);
  CallResult getmajor(CallArguments a);
  CallResult getminor(CallArguments a);

 private:
  CallResult lock(LockFact which, CallArguments a) const {
    return builtins_.lock(which, a[0].value);
  }

  Memory& memory_;
  BuiltinVariables& builtins_;
};

/// Strings. strchr, strrchr and strstr return a position in the original string, wherever that
/// string lies.
class StringSubroutines {
 public:
  explicit StringSubroutines(Memory& memory);

  /// strtok() has nothing to go on with.
  void begin_firing() { token_rest_ = {}; }

  CallResult strlen(CallArguments a);
  CallResult strjoin(CallArguments a);
  CallResult strchr(CallArguments a);
  CallResult strrchr(CallArguments a);
  CallResult strstr(CallArguments a);
  CallResult strtok(CallArguments a);
  CallResult substr(CallArguments a);
  CallResult index(CallArguments a);
  CallResult rindex(CallArguments a);
  CallResult toupper(CallArguments a) { return change_case(a, 'a', 'z'); }
  CallResult tolower(CallArguments a) { return change_case(a, 'A', 'Z'); }
  CallResult memstr(CallArguments a);

 private:
  CallResult change_case(CallArguments a, char first, char last);

  Memory& memory_;
  LazyMemory token_memory_;
  std::span<char> token_text_;   // strtok()'s own copy
  std::string_view token_rest_;  // its part that strtok(NULL, ...) goes on with; null: nothing
};

/// Path names. They work on the text alone and look at no file system.
class PathSubroutines {
 public:
  explicit PathSubroutines(Memory& memory) : memory_(memory) {}

  CallResult basename(CallArguments a);
  CallResult dirname(CallArguments a);
  CallResult cleanpath(CallArguments a);

 private:
  Memory& memory_;
};

/// Network and link addresses as text.
class AddressSubroutines {
 public:
  explicit AddressSubroutines(Memory& memory) : memory_(memory) {}

  CallResult inet_ntoa(CallArguments a);
  CallResult inet_ntoa6(CallArguments a);
  CallResult inet_ntop(CallArguments a);
  CallResult link_ntop(CallArguments a);

 private:
  Memory& memory_;
};

/// json(document, path): one element of a JSON text. The path has JavaScript's form: names with
/// dots between them and indices in brackets, "a.b[2].c" or "[0]". An index may also stand after a
/// dot: "a.b.2.c" or "0". A string's result is the text between its quotes, with its escapes.
/// Numbers, true, false, null, objects and arrays are returned as they are written. The result is
/// NULL if the element does not exist, or if the text that must be read is not JSON. The text is
/// read once, up to the element, and only the result is allocated.
class JsonSubroutine {
 public:
  explicit JsonSubroutine(Memory& memory) : memory_(memory) {}

  CallResult element(CallArguments a);

 private:
  Memory& memory_;
};

/// speculation(): the id of a free speculation.
class SpeculationSubroutine {
 public:
  SpeculationSubroutine(SpeculationIds& speculations, SharedAccess& access)
      : speculations_(speculations), access_(access) {}

  CallResult allocate(CallArguments) {
    access_.take_program();
    return speculations_.allocate();
  }

 private:
  SpeculationIds& speculations_;  // under the program lock
  SharedAccess& access_;
};

class Subroutines {
 public:
  /// All must outlive this. The guest is the one of `builtins`' firing.
  Subroutines(Memory& memory, BuiltinVariables& builtins, SharedAccess& access,
              SpeculationIds& speculations)
      : memory_(memory), groups_(memory, builtins, access, speculations) {}

  void begin_firing() { groups_.strings.begin_firing(); }

  /// A call of the wrong number of arguments, or of a subroutine that is missing, is an illegal
  /// operation; the verifier refuses the latter by name.
  CallResult call(Subroutine which, CallArguments arguments);

 private:
  /// Those that cannot work on a Linux guest: the verifier refuses programs that call them.
  struct MissingSubroutines {
    static CallResult refuse(CallArguments) { return raise(FaultKind::IllegalOperation); }
  };
  /// The column `call` of builtin.def names members of these.
  struct SubroutineGroups {
    SubroutineGroups(Memory& memory, BuiltinVariables& builtins, SharedAccess& access,
                     SpeculationIds& speculations)
        : numbers(memory),
          memory(memory, builtins),
          guest(memory, builtins),
          strings(memory),
          paths(memory),
          addresses(memory),
          json(memory),
          speculation(speculations, access) {}
    NumberSubroutines numbers;
    MemorySubroutines memory;
    GuestSubroutines guest;
    StringSubroutines strings;
    PathSubroutines paths;
    AddressSubroutines addresses;
    JsonSubroutine json;
    SpeculationSubroutine speculation;
    [[no_unique_address]] MissingSubroutines missing;
  };

  Memory& memory_;
  SubroutineGroups groups_;
};

}  // namespace ringside::dif
