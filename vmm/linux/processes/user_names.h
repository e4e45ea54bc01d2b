// Names of code and data in the guest's processes, "module`symbol+0x10": the file that a process
// has mapped at an address (processes.h), and a function of that file by the kernel's page cache
// or a copy of it on the host (file_functions.h), or a dynamic symbol by the process's own memory
// (user_elf.h). Code of no file has its name by /tmp/perf-PID.map (perf_map.h). The guest runs
// meanwhile and processes end, so the last look at each process is kept. The number of processes
// and the bytes of symbols are bounded; tables of the same file are shared. Used by the consumer
// when it prints. Threads: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/processes/file_functions.h"
#include "vmm/linux/processes/host_files.h"
#include "vmm/linux/processes/page_cache.h"
#include "vmm/linux/processes/perf_map.h"
#include "vmm/linux/processes/processes.h"
#include "vmm/linux/processes/user_elf.h"

namespace ringside::guest_linux {

class UserNames {
 public:
  /// The names of the code that a process makes, and the file that they are read from.
  struct MapOfCode {
    std::int32_t process = 0;             // its number in its own namespace
    std::uint64_t inode = 0, number = 0;  // of the file; 0: none was seen
    PerfMap map{};
  };
  /// Makes readers of the kernel's memory, and of the process whose page table is at a kernel
  /// address (null when it cannot be read).
  struct Access {
    std::function<std::unique_ptr<GuestReader>()> kernel;
    std::function<std::unique_ptr<GuestReader>(GuestVirt page_table)> process;
    /// Of an open file, at its struct file: which content it is, and, while it is that one, its
    /// functions. Null: files cannot be read.
    std::function<std::optional<FileIdentity>(GuestVirt file)> identity{};
    std::function<FileFunctions(GuestVirt file, const FileIdentity& content)> functions{};
    /// Of a process: reads what is new in its map. Null: there are none.
    std::function<void(const ProcessAddressSpace& process, MapOfCode& map)> map_of_code{};
    /// The same by servers, which may take a minute: asked once of a file in which an address has
    /// no name. `name`: of the file. Null: there are none.
    std::function<FileFunctions(const FileIdentity& content, std::string_view name)> fetch{};
  };
  enum class Form : std::uint8_t { AsInFile, Demangled };
  using Clock = std::chrono::steady_clock;

  /// Null where the kernel's types or symbols do not describe its processes. `host`: where else
  /// functions of their files are looked for; null: nowhere. All must outlive the result.
  static std::unique_ptr<UserNames> create(const vmm::GuestMemory& memory, Kernel& kernel,
                                           Form form, HostFiles* host = nullptr);
  /// A look at a process is valid for `fresh`; for an address in no known file, for a hundredth of
  /// that. `most_bytes` limits the bytes of all symbols. One look reads at most a fourth of it. If
  /// all looks exceed it, the next one forgets all processes.
  UserNames(Access access, const ProcessLayout& layout, GuestVirt init_task, Clock::duration fresh,
            std::size_t most_bytes, Form form = Form::AsInFile)
      : form_(form),
        access_(std::move(access)),
        layout_(layout),
        init_task_(init_task),
        fresh_(fresh),
        most_bytes_(most_bytes) {}

  /// "module`symbol+0x10" or "module`symbol"; "module`0x4a5b3c" (the address) without a symbol;
  /// "0x4a5b3c" where no file is mapped or the process is unknown. Code of no file:
  /// "perf-7.map`name+0x10", with the process's number in its own namespace.
  std::string describe(std::uint64_t pid, GuestVirt address);
  /// Looks at the process now, if it lives.
  void look_at(std::uint64_t pid);

 private:
  struct Module {
    std::string name;
    GuestVirt begin, end;
    const DynamicSymbols* symbols = nullptr;   // in tables_
    const FileFunctions* functions = nullptr;  // in files_
    GuestVirt file{};                          // its struct file
    std::optional<FileIdentity> content{};     // of the file
    struct Part {
      GuestVirt begin;
      std::uint64_t offset = 0;  // in the file
    };
    std::vector<Part> parts{};  // as it is mapped, by address
  };
  /// One program that a process ran: an exec() begins another.
  struct Program {
    GuestVirt mm;
    std::vector<Module> modules;  // by address
  };
  struct Process {
    Clock::time_point looked;
    std::vector<Program> programs;  // the latest last
    MapOfCode code{};
    bool wants_code = true;  // once; then where an address of no file was asked for
  };

  std::vector<Module> modules_of(const GuestReader& kernel, const ProcessAddressSpace& memory);
  /// Takes the bytes that it reads from `budget`.
  const DynamicSymbols* symbols_of(const GuestReader& process, const UserElf& elf,
                                   std::size_t& budget);
  const FileFunctions* functions_of(const Module& module, std::size_t& budget);
  bool fetch(const Module& module);
  static std::optional<DynamicSymbols::Found> symbol_at(const Module& module, GuestVirt address);
  Process& process(std::uint64_t pid);
  std::string describe_made_code(std::uint64_t pid, GuestVirt address) const;
  const Module* find(std::uint64_t pid, GuestVirt address) const;

  const Form form_;
  const Access access_;
  const ProcessLayout layout_;
  const GuestVirt init_task_;
  const Clock::duration fresh_;
  const std::size_t most_bytes_;
  std::unordered_map<std::uint64_t, Process> processes_;
  std::map<std::string, DynamicSymbols> tables_;  // by an image's first page
  std::map<FileIdentity, FileFunctions> files_;
  std::set<FileIdentity> fetched_;
  std::size_t table_bytes_ = 0;  // of both
};

}  // namespace ringside::guest_linux
