#include "dif/d/actions/action_tools.h"

#include <fmt/format.h>

namespace ringside::d {

tl::unexpected<Diagnostic> argument_count(std::string_view tag, const Expr& call,
                                          std::string_view expected) {
  return complain(tag, call.at,
                  fmt::format("{}( ) prototype mismatch: {} arg{} passed, {} expected", *call.text,
                              call.list.size(), call.list.size() == 1 ? "" : "s", expected));
}

tl::unexpected<Diagnostic> argument_type(std::string_view tag, const Expr& call,
                                         std::size_t position, std::string_view prototype,
                                         std::string_view passed) {
  return complain(tag, call.list[position]->at,
                  fmt::format("{}( ) argument #{} is incompatible with prototype: prototype: {}, "
                              "argument: {}",
                              *call.text, position + 1, prototype, passed));
}

}  // namespace ringside::d
