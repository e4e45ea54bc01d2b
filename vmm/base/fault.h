// Fault: why an evaluation stopped. It becomes the ERROR probe; the guest and the other clauses
// go on. Numbers and texts are dtrace's (DTRACEFLT_*), because ERROR's arg4 shows them.
// Fire context: yes.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ringside {

enum class FaultKind : std::uint32_t {
  Unknown = 0,
  BadAddress = 1,
  BadAlignment = 2,
  IllegalOperation = 3,
  DivideByZero = 4,
  NoScratch = 5,
  KernelPrivilege = 6,
  UserPrivilege = 7,
  TupleOverflow = 8,
  BadStack = 9,
  Library = 1000,
};

struct Fault {
  FaultKind kind = FaultKind::Unknown;
  std::uint32_t pc = 0;       // offset in the DIF text, in bytes
  std::uint64_t address = 0;  // of the first byte that could not be read, for faults of memory
};
static_assert(sizeof(Fault) == 16 && std::is_trivially_copyable_v<Fault>);

/// dtrace's words for a fault: "invalid address", "divide-by-zero"...
constexpr std::string_view fault_text(FaultKind kind) {
  switch (kind) {
    case FaultKind::Unknown: return "unknown fault";
    case FaultKind::BadAddress: return "invalid address";
    case FaultKind::BadAlignment: return "invalid alignment";
    case FaultKind::IllegalOperation: return "illegal operation";
    case FaultKind::DivideByZero: return "divide-by-zero";
    case FaultKind::NoScratch: return "out of scratch space";
    case FaultKind::KernelPrivilege: return "invalid kernel access";
    case FaultKind::UserPrivilege: return "invalid user access";
    case FaultKind::TupleOverflow: return "tuple stack overflow";
    case FaultKind::BadStack: return "bad stack";
    case FaultKind::Library: return "library-level fault";
  }
  return "unknown fault";
}

}  // namespace ringside
