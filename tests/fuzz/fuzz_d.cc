// Any bytes as a script: compiled or refused, never a crash. What compiles is verified, and is the
// same program after a trip through DOF. Fire context: no.
#include <cstdint>
#include <string_view>

#include "dif/d/testing/program_runner.h"
#include "dif/dof/dof.h"
#include "vmm/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringside;
  // SAFETY: char may alias.
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  d::FakeKernel kernel;
  d::CompileOptions options;
  options.source_name = "fuzz";
  options.macro_arguments = {"fuzz", "1", "two"};
  options.macros = {{"pid", 7}, {"target", 8}};
  options.default_arguments = options.destructive = true;
  auto program = d::compile(source, options, kernel);
  if (!program) return 0;

  const auto verified = dif::verify_program(std::move(program->program));
  CHECK(verified);
  const auto bytes = dif::write_dof(verified->program());
  if (bytes.empty()) return 0;
  const auto read = dif::read_dof(bytes);
  CHECK(read && *read == verified->program());
  return 0;
}
