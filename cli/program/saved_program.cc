#include "cli/program/saved_program.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "dif/dof/dof.h"

namespace ringside::cli {
Result<void> save_program(const dif::Program& program, const std::string& path) {
  const std::vector<std::byte> bytes = dif::write_dof(program);
  if (bytes.empty()) {
    return fail(ErrorCode::Limit, fmt::format("the program is larger than the {} MiB of a DOF file",
                                              dif::kMostDofBytes >> 20));
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  // SAFETY: bytes as the characters that a stream writes.
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    return fail(ErrorCode::Io, fmt::format("cannot write to {}: {}", path, std::strerror(errno)));
  }
  return {};
}

Result<dif::Program> load_program(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(ErrorCode::NotFound, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  // One byte more than may be there, to see that there is more.
  std::vector<std::byte> bytes(dif::kMostDofBytes + 1);
  // SAFETY: bytes as the characters that a stream reads.
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  auto program = dif::read_dof(bytes);
  if (!program) return fail(program.error().code, path + ": " + program.error().message);
  return program;
}

}  // namespace ringside::cli
