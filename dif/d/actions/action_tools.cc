#include "dif/d/actions/action_tools.h"

#include <fmt/format.h>

#include <algorithm>

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

namespace {

using dif::ValueKind;

struct CodeRow {
  std::string_view name;
  ValueKind kind;
  std::uint32_t size;  // 0: as many frames as asked for
};

constexpr CodeRow kCode[] = {
#define DIF_CODE_ACTION(number, text, least, most, value, bytes) {text, ValueKind::value, bytes},
#include "dif/program/actions.def"
};

constexpr std::int64_t kMostFrames = 64 << 10;  // a record has its limits

}  // namespace

bool is_code_call(const Expr& e) {
  return e.kind == ExprKind::Call &&
         std::ranges::find(kCode, std::string_view(*e.text), &CodeRow::name) != std::end(kCode);
}

/// The number of frames that a stack action asks for.
Checked<std::uint32_t> CodeValues::frames(const Expr& call, std::uint32_t otherwise) {
  const bool kernel = *call.text == "stack";
  const std::size_t most = kernel ? 1 : 2;
  if (call.list.size() > most) {
    return argument_count(kernel ? "D_STACK_PROTO" : "D_USTACK_PROTO", call,
                          kernel ? "0 or 1" : "0, 1 or 2");
  }
  const auto positive = [&](std::size_t i, std::string_view tag,
                            std::int64_t least) -> Checked<std::int64_t> {
    TRY(tools_.resolver.resolve(call.list[i]));
    const Expr& e = *call.list[i];
    const auto value = static_cast<std::int64_t>(tools_.resolver.known_value(e).value_or(0));
    if (e.constant && tools_.types.is_integer(e.type) && value >= least && value <= kMostFrames)
      return value;
    return complain(
        tag, e.at,
        fmt::format("{}( ) argument #{} must be a {} integer constant, at most {}", *call.text,
                    i + 1, least > 0 ? "non-zero positive" : "positive", kMostFrames));
  };
  std::uint32_t result = otherwise;
  if (!call.list.empty()) {
    result = static_cast<std::uint32_t>(
        TRY(positive(0, kernel ? "D_STACK_SIZE" : "D_USTACK_FRAMES", 1)));
  }
  // Names of user code are looked up when they are printed, so the room for strings that other
  // systems record with the frames is checked and not needed.
  if (call.list.size() == 2) TRY(positive(1, "D_USTACK_STRSIZE", 0));
  return result;
}

Checked<dif::Difo> CodeValues::value(Expr& call) {
  const CodeRow& row = *std::ranges::find(kCode, std::string_view(*call.text), &CodeRow::name);
  if (row.kind == ValueKind::KernelStack || row.kind == ValueKind::UserStack) {
    const bool kernel = row.kind == ValueKind::KernelStack;
    const CompileOptions& options = tools_.resolver.options();
    const std::uint32_t usual = kernel                   ? options.stack_frames
                                : *call.text == "jstack" ? options.java_stack_frames
                                                         : options.user_stack_frames;
    const std::uint32_t entries = TRY(frames(call, usual)) + (kernel ? 0 : 1);
    return CodeGenerator::generate_nothing(tools_.resolver, {row.kind, false, entries * 8},
                                           call.at);
  }
  Expr& address = *call.list[0];
  TRY(tools_.resolver.resolve(&address));
  if (!tools_.types.is_scalar(tools_.types.decay(address.type))) {
    return argument_type("D_PROTO_ARG", call, 0, "uintptr_t", tools_.types.name(address.type));
  }
  dif::Difo made =
      TRY(CodeGenerator::generate_integer(tools_.resolver, address, tools_.types.uint64));
  made.result = {row.kind, false, row.size};
  return made;
}

Checked<dif::Action> CodeValues::trace(Expr& call) {
  dif::Action action;
  action.kind = dif::ActionKind::Trace;
  action.arguments.push_back(TRY(value(call)));
  return action;
}

}  // namespace ringside::d
