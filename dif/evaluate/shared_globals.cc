#include "dif/evaluate/shared_globals.h"

#include <fmt/format.h>

#include <map>

namespace ringside::dif {

Result<std::shared_ptr<SharedGlobals>> share_globals(std::span<const Program* const> bound,
                                                     const EngineOptions& options, unsigned vcpus) {
  std::map<std::uint16_t, const Variable*> known;
  const Variable* differs = nullptr;
  for (const Program* const program : bound) {
    for_each_difo(*program, [&](const Difo& difo) {
      for (const Variable& variable : difo.variables) {
        if (variable.scope != VariableScope::Global) continue;
        const Variable& first = *known.emplace(variable.id, &variable).first->second;
        if (first.type != variable.type || first.kind != variable.kind) differs = &variable;
      }
    });
  }
  if (differs == nullptr) {
    EngineOptions used = options;
    used.string_size = usable_string_size(options.string_size);
    return std::make_shared<SharedGlobals>(bound, used, vcpus);
  }
  return fail(ErrorCode::Unsupported,
              fmt::format("the machines share the global variable {}, and it is of a type that is "
                          "not as large in each one's kernel: use self->{} or a pointer",
                          differs->name, differs->name));
}

}  // namespace ringside::dif
