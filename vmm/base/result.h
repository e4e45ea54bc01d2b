// Result and TRY: how every function of ours reports failure. No exceptions are thrown by our code.
// Error is for set-up and teardown (allocates; fire context: no), Fault (fault.h) for evaluation.
#pragma once

#include <string>
#include <tl/expected.hpp>
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
