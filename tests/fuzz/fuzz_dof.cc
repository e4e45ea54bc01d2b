// Any bytes as DOF: refused with a reason, or a program that is the same after another trip, and
// that binding to a kernel, and then the verifier, have an opinion of.
#include <cstdint>
#include <span>

#include "dif/bind/bind.h"
#include "dif/d/testing/program_runner.h"
#include "dif/dof/dof.h"
#include "dif/program/listing.h"
#include "dif/verify/verify.h"
#include "vmm/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringside::dif;
  auto program = read_dof(std::as_bytes(std::span(data, size)));
  if (!program) {
    CHECK(!program.error().message.empty());
    return 0;
  }
  const auto bytes = write_dof(*program);
  if (!bytes.empty()) {
    const auto again = read_dof(bytes);
    CHECK(again && *again == *program);
  }
  CHECK(list_program(*program).size() < std::size_t{1} << 30);
  static ringside::d::FakeKernel kernel;
  auto bound = bind(*program, kernel);
  if (!bound) {
    CHECK(!bound.error().message.empty());
    return 0;
  }
  CHECK(bound->kernel_names.empty());
  (void)verify_program(std::move(*bound));
  return 0;
}
