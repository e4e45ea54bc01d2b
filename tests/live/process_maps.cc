#include "tests/live/process_maps.h"

#include <fmt/format.h>

#include <sstream>

#include "vmm/linux/processes/processes.h"

namespace ringside::live {

std::vector<std::string> files_that_we_find(const vmm::PageTableReader& reader,
                                            guest_linux::Kernel& kernel, std::uint64_t pid) {
  const auto layout = guest_linux::ProcessLayout::from(kernel.types());
  const guest_linux::Symbol* init_task = kernel.symbols().find("init_task");
  if (!layout || init_task == nullptr) return {};
  const auto process = guest_linux::find_process(reader, *layout, init_task->address, pid);
  if (!process) return {};
  std::vector<std::string> found;
  for (const auto& mapping : guest_linux::list_file_mappings(reader, *layout, process->mm)) {
    // The guest shows no offset of what is no file.
    const std::uint64_t offset = mapping.file.raw() != 0 ? mapping.offset : 0;
    found.push_back(fmt::format("{:08x}-{:08x} {:08x} {}", mapping.begin.raw(), mapping.end.raw(),
                                offset, guest_linux::file_name(reader, *layout, mapping.file)));
  }
  return found;
}

std::vector<std::string> files_that_the_guest_lists(const std::string& maps) {
  std::vector<std::string> found;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, path;
    words >> range >> rights >> offset >> device >> inode >> path;
    if (!path.starts_with('/') && path != "[vdso]") continue;
    found.push_back(range + ' ' + offset + ' ' + path.substr(path.rfind('/') + 1));
  }
  return found;
}

}  // namespace ringside::live
