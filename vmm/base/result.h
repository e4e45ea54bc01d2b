// Result and TRY: how every function of ours reports failure. No exceptions are thrown by our code.
// Error is for set-up and teardown (allocates; fire context: no), Fault for evaluation (fire
// context: yes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace ringside {

enum class ErrorCode {
  Usage,        // the user asked for something that does not exist; exit status 2
  Unsupported,  // valid, but not something this version can do
  NotFound,     // a file, symbol, probe or type is not there
  Invalid,      // input does not have the shape it must have (often: hostile)
  Io,           // a system call or a peer failed
  MachineGone,  // the virtual machine ended, crashed or stopped answering
  Limit,        // a resource or table is full
  Compile,      // the D program is wrong; the message carries its location
};

/// One line for the user: what was tried, on what, why it failed, and what to do instead.
struct Error {
  ErrorCode code = ErrorCode::Invalid;
  std::string message;
};

template <class T, class E = Error>
using Result = tl::expected<T, E>;

template <class E>
using Unexpected = tl::unexpected<E>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

/// Why an evaluation stopped. Numbers and texts are dtrace's (DTRACEFLT_*), because ERROR's arg4
/// shows them.
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

/// An evaluation that stopped. It becomes the ERROR probe; the guest and the other clauses go on.
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

/// The value of `expr`, or return its error from the enclosing function. Not nested, one per
/// statement.
#define TRY(expr)                                                  \
  __extension__({                                                  \
    auto try_result = (expr);                                      \
    if (!try_result) {                                             \
      return ::tl::make_unexpected(std::move(try_result).error()); \
    }                                                              \
    ::ringside::detail::take_value(std::move(try_result));         \
  })

namespace ringside::detail {
template <class T, class E>
T take_value(tl::expected<T, E>&& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace ringside::detail
