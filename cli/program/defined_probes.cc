#include "cli/program/defined_probes.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "cli/program/environment.h"
#include "cli/program/probe_families.h"
#include "dif/bind/bind.h"
#include "dif/d/probe_definitions.h"

namespace ringside::cli {
namespace {

/// A world with one probe: the place of a definition.
class PlaceEnvironment final : public KernelEnvironment {
 public:
  explicit PlaceEnvironment(const guest_linux::Kernel& kernel)
      : KernelEnvironment(&kernel, nullptr) {}
  PlaceEnvironment(const guest_linux::Kernel& kernel,
                   const std::optional<std::vector<TypeId>>& arguments)
      : PlaceEnvironment(kernel) {
    place_.matched = 1;
    place_.has_types = true;
    if (arguments) place_.arguments = *arguments;
    // An unknown argument is taken for what the definition says.
    const TypeId anything = types_.pointer_to(TypeId{});
    if (!arguments) place_.arguments.assign(dif::kMaxProbeArguments, anything);
  }

  /// Providers depend on libraries here, not the other way round.
  bool has_provider(std::string_view) override { return true; }
  d::ProbeSignature signature(const dif::ProbeDescription&) override { return place_; }

 private:
  d::ProbeSignature place_;
};

std::string place_of(const d::Diagnostic& diagnostic) {
  const std::size_t slash = diagnostic.library.find_last_of('/');
  return fmt::format("{}, line {}", diagnostic.library.substr(slash + 1), diagnostic.at.line);
}

using Libraries = std::shared_ptr<const std::vector<d::LibrarySource>>;

/// All that the code of a part depends on, in one kernel.
std::string key_of(const dif::DefinitionPart& part, std::size_t library,
                   const std::optional<std::vector<TypeId>>& arguments) {
  std::string key = fmt::format("{}/{}", library, part.condition.text);
  for (const dif::DefinitionText& value : part.values) key += "\n" + value.text;
  if (!arguments) return key;
  for (const TypeId type : *arguments) key += fmt::format("\n{}", type.value);
  return key;
}

Result<dif::VerifiedProgram> compile_part(const Libraries& libraries,
                                          const guest_linux::Kernel& kernel,
                                          const dif::DefinitionPart& part, std::size_t library,
                                          const std::optional<std::vector<TypeId>>& arguments) {
  PlaceEnvironment environment(kernel, arguments);
  const auto compiled = d::compile_definition_part(part, *libraries, library, environment);
  if (!compiled) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} ({})", compiled.error().text, place_of(compiled.error())));
  }
  return dif::verify_program(TRY(dif::bind(*compiled, environment)));
}

}  // namespace

Result<std::shared_ptr<const providers::DefinedProbes>> read_defined_probes(
    Libraries libraries, const guest_linux::Kernel& kernel, bool error_tags) {
  PlaceEnvironment environment(kernel);
  auto probes = d::read_probe_definitions(*libraries, environment);
  if (!probes) {
    return fail(ErrorCode::Compile,
                "failed to read probes of D's libraries: " + d::render(probes.error(), error_tags));
  }
  auto defined = std::make_shared<providers::DefinedProbes>();
  defined->probes = expand_families(std::move(*probes), kernel);
  // Many probes, as those of counters, have the same expressions.
  auto known = std::make_shared<std::map<std::string, dif::VerifiedProgram>>();
  defined->compile = [libraries, known](const auto& of, const auto& part, std::size_t library,
                                        const auto& arguments) -> Result<dif::VerifiedProgram> {
    const std::string key = key_of(part, library, arguments);
    if (const auto found = known->find(key); found != known->end()) return found->second;
    auto program = TRY(compile_part(libraries, of, part, library, arguments));
    known->emplace(key, program);
    return program;
  };
  return std::shared_ptr<const providers::DefinedProbes>(std::move(defined));
}

}  // namespace ringside::cli
