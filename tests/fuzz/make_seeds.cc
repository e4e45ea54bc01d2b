// Writes first inputs for the fuzz targets: make_seeds FOLDER GOLDEN. D programs (ours and those of
// the folder GOLDEN) go to FOLDER/d, what they compile to into FOLDER/dof; kernels into FOLDER/elf
// and FOLDER/bz; what guests do to devices into FOLDER/ports, FOLDER/uart and FOLDER/virtio; what
// guests and QEMU say into a folder for each target that reads it.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/boot_input.h"
#include "tests/fuzz/device_input.h"
#include "tests/fuzz/host_input.h"
#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/seeds.h"

namespace {

void write(const std::filesystem::path& path, const char* bytes, std::size_t size) {
  std::ofstream(path, std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
}

void write_all(const std::filesystem::path& folder,
               const std::vector<std::vector<std::byte>>& inputs) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& bytes : inputs) {
    // SAFETY: char may alias.
    write(folder / std::to_string(number++), reinterpret_cast<const char*>(bytes.data()),
          bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ringside;
  if (argc != 3) return 2;
  const std::filesystem::path folder(argv[1]);
  std::filesystem::create_directories(folder / "d");
  std::filesystem::create_directories(folder / "dof");
  write_all(folder / "elf", fuzz::elf_kernels());
  write_all(folder / "bz", fuzz::bz_images());
  write_all(folder / "ports", fuzz::port_scripts());
  write_all(folder / "uart", fuzz::uart_scripts());
  write_all(folder / "virtio", fuzz::virtio_scripts());
  write_all(folder / "vmcoreinfo", fuzz::vmcoreinfo_inputs());
  write_all(folder / "kernel", fuzz::kernel_inputs());
  write_all(folder / "kallsyms", fuzz::kallsyms_inputs());
  write_all(folder / "btf", fuzz::btf_inputs());
  write_all(folder / "modules", fuzz::module_inputs());
  write_all(folder / "stack", fuzz::stack_inputs());
  write_all(folder / "text", fuzz::text_inputs());
  write_all(folder / "health", fuzz::health_inputs());
  write_all(folder / "processes", fuzz::process_inputs());
  write_all(folder / "user_elf", fuzz::user_elf_inputs());
  write_all(folder / "user_file", fuzz::user_file_inputs());
  write_all(folder / "dwarf", fuzz::dwarf_inputs());
  write_all(folder / "user_stack", fuzz::user_stack_inputs());
  write_all(folder / "mailbox", fuzz::mailbox_inputs());
  write_all(folder / "gdbstub", fuzz::gdbstub_inputs());
  write_all(folder / "monitor", fuzz::monitor_inputs());
  write_all(folder / "memory_map", fuzz::memory_map_inputs());
  write_all(folder / "saved", fuzz::saved_inputs());
  int number = 0;
  for (const std::string& source : fuzz::programs(argv[2])) {
    const std::string name = std::to_string(number++);
    write(folder / "d" / name, source.data(), source.size());
    const auto bytes = fuzz::compiled(source);
    if (bytes.empty()) continue;
    // SAFETY: char may alias.
    write(folder / "dof" / name, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}
