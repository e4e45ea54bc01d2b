// Any bytes as DOF: refused with a reason, or a program that is the same after another trip, and
// that the verifier has an opinion of. Fire context: no.
#include <cstdint>
#include <span>

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
  (void)verify_program(std::move(*program));
  return 0;
}
