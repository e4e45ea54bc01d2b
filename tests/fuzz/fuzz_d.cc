// Any bytes as a script: compiled or refused, never a crash. A script that compiles can be
// bound to the kernel that it was compiled with, passes the verifier, and is the same program
// after a trip through DOF.
#include <cstdint>
#include <string_view>

#include "dif/bind/bind.h"
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

  auto bound = dif::bind(program->program, kernel);
  CHECK(bound);
  CHECK(dif::verify_program(std::move(*bound)));
  const auto bytes = dif::write_dof(program->program);
  if (bytes.empty()) return 0;
  const auto read = dif::read_dof(bytes);
  CHECK(read && *read == program->program);
  return 0;
}
