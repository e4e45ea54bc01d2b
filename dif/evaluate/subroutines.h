// The subroutines that DIF calls. Arguments are on the tuple stack. Strings are used where they
// lie, and results are made in scratch. This class only dispatches: there is one class for each
// kind of subroutine, with the state that the kind needs.
// Fire context: yes, but for the constructor.
#pragma once

#include "dif/evaluate/address_subroutines.h"
#include "dif/evaluate/guest_subroutines.h"
#include "dif/evaluate/json_subroutine.h"
#include "dif/evaluate/memory_subroutines.h"
#include "dif/evaluate/number_subroutines.h"
#include "dif/evaluate/path_subroutines.h"
#include "dif/evaluate/speculation_subroutine.h"
#include "dif/evaluate/string_subroutines.h"
#include "dif/program/builtin.h"

namespace ringside::dif {

class Subroutines {
 public:
  /// All must outlive this. The guest is the one of `builtins`' firing.
  Subroutines(Memory& memory, BuiltinVariables& builtins, SharedAccess& access,
              Speculations& speculations)
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
                     Speculations& speculations)
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
