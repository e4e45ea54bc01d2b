// Facts that we read out of a live guest's memory, against what the guest says of itself, on one
// boot of each kernel; and what the decoders make of the whole of its text.
// In this file, top to bottom: one guest a suite, symbols, types, tasks, processes, stacks,
// the decoders.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "disasm/cross_check.h"
#include "disasm/decoder.h"
#include "providers/trap_points/sites/function_sites.h"
#include "tests/live/live_guest.h"
#include "tests/live/process_maps.h"
#include "tests/live/task_stacks.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/processes/user_names.h"
#include "vmm/linux/stacks/stack_tables.h"

namespace ringside::live {
namespace {

using guest_linux::Symbol;

constexpr unsigned kVcpus = 2;

struct Debian61 {
  static constexpr const char* kImage = "debian-6.1";
};
struct Debian612 {
  static constexpr const char* kImage = "debian-6.12";
};

/// Made by tests/vm/suite_image. tests/vm/test_windows.py runs what is said of its text.
struct DebianSid {
  static constexpr const char* kImage = "debian-sid";
};

template <class Image>
class LiveKernel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto image = find_live_image(Image::kImage);
    if (!image) {
      missing = image.error().message;
      return;
    }
    auto booted = LiveGuest::boot(*image, kVcpus);
    ASSERT_TRUE(booted) << booted.error().message;
    guest = std::move(*booted);
  }
  static void TearDownTestSuite() { guest.reset(); }

  void SetUp() override {
    if (!missing.empty()) GTEST_SKIP() << missing;
    ASSERT_TRUE(guest) << "the guest did not come up";
  }

  guest_linux::Kernel& kernel() { return guest->kernel(); }
  vmm::PageTableReader reader() { return {guest->machine().memory(), kernel().table()}; }

  /// Runs a command in the guest; returns what it prints.
  std::string ask(const std::string& command) {
    auto said = guest->run(command);
    EXPECT_TRUE(said) << command << ": " << said.error().message;
    return said.value_or("");
  }

  std::vector<std::byte> read_bytes(GuestVirt at, std::size_t size) {
    std::vector<std::byte> bytes(size);
    const auto done = reader().read(at, bytes);
    EXPECT_TRUE(done) << fmt::format("{:#x} is not mapped", done.error().address);
    return bytes;
  }

  static inline std::unique_ptr<LiveGuest> guest;
  static inline std::string missing;
};

using Images = testing::Types<Debian61, Debian612, DebianSid>;

class ImageNames {
 public:
  template <class Image>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's name
    std::string name = Image::kImage;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
    return name;
  }
};
TYPED_TEST_SUITE(LiveKernel, Images, ImageNames);

/// One line of /proc/kallsyms: "ffffffff81000000 T _stext" and, for a module, "\t[loop]".
std::string kallsyms_line(const Symbol& symbol, std::string_view module) {
  return fmt::format("{:016x} {} {}{}", symbol.address.raw(), symbol.type, symbol.name,
                     symbol.module == 0 ? "" : fmt::format("\t[{}]", module));
}

/// CRC-32 as in Ethernet and in busybox's crc32.
std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb8'8320U : 0);
  }
  return ~crc;
}

TYPED_TEST(LiveKernel, HasTheSymbolsThatTheGuestLists) {
  std::multiset<std::string> ours;
  const auto& table = this->kernel().symbols();
  for (const Symbol& symbol : table.symbols()) {
    ours.insert(kallsyms_line(symbol, table.modules()[symbol.module].name));
  }
  std::cout << fmt::format("{} symbols of {} modules\n", ours.size(), table.modules().size() - 1);
  EXPECT_GT(ours.size(), 50'000u);
  EXPECT_GT(table.modules().size(), 1u) << "the image loads loop.ko";

  // Code that the guest made at run time (trampolines, BPF) is in no table that we read.
  const std::string listing =
      R"(grep -v -e ' __pfx_' -e '\[__builtin__' -e '\[bpf\]' /proc/kallsyms | sort)";
  std::string text;
  for (const std::string& line : ours) text += line + '\n';
  const auto sum = fmt::format("{:08x}\n", crc32(std::as_bytes(std::span(text))));
  if (this->ask(listing + " | crc32") == sum) return;

  // The whole list takes 15 s over the serial line, so only to say what differs.
  std::multiset<std::string> theirs;
  std::istringstream dump(this->ask(listing));
  for (std::string line; std::getline(dump, line);) theirs.insert(line);
  std::vector<std::string> missing, invented;
  std::set_difference(theirs.begin(), theirs.end(), ours.begin(), ours.end(),
                      std::back_inserter(missing));
  std::set_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      std::back_inserter(invented));
  ADD_FAILURE() << fmt::format("{} missing, the first: {}; {} invented, the first: {}",
                               missing.size(), missing.empty() ? "-" : missing.front(),
                               invented.size(), invented.empty() ? "-" : invented.front());
}

TYPED_TEST(LiveKernel, ReadsTheTypesThatTheGuestShows) {
  const auto& symbols = this->kernel().symbols();
  const Symbol* start = symbols.find("__start_BTF");
  const Symbol* stop = symbols.find("__stop_BTF");
  ASSERT_TRUE(start != nullptr && stop != nullptr);

  const auto bytes = this->read_bytes(start->address, stop->address.raw() - start->address.raw());

  const std::string said =
      this->ask("crc32 </sys/kernel/btf/vmlinux; wc -c </sys/kernel/btf/vmlinux");
  EXPECT_EQ(said, fmt::format("{:08x}\n{}\n", crc32(bytes), bytes.size()));
}

/// The guest's allocator knows the sizes of structures from its compiler, not from BTF. These
/// caches have constructors, so that no other cache is merged into them.
TYPED_TEST(LiveKernel, SizesOfStructuresAreThoseOfTheAllocator) {
  const TypeGraph& types = this->kernel().types();
  for (const auto& [cache, structure] :
       {std::pair("inode_cache", "inode"), std::pair("sighand_cache", "sighand_struct"),
        std::pair("sock_inode_cache", "socket_alloc"), std::pair("bdev_cache", "bdev_inode")}) {
    const std::string said = this->ask(fmt::format("cat /sys/kernel/slab/{}/object_size", cache));
    const auto type = types.find(TypeKind::Struct, structure);

    ASSERT_TRUE(type) << structure;
    EXPECT_EQ(fmt::format("{}\n", types.size_of(*type)), said) << structure;
  }
}

TYPED_TEST(LiveKernel, KnowsThePrototypeOfVfsRead) {
  const Symbol* function = this->kernel().symbols().find("vfs_read");
  ASSERT_NE(function, nullptr);
  const auto prototype = this->kernel().prototype(*function);
  ASSERT_TRUE(prototype);
  const TypeGraph& types = this->kernel().types();

  std::vector<std::string> parameters;
  for (const Parameter& parameter : types.parameters(*prototype)) {
    parameters.push_back(fmt::format("{}: {}", parameter.name, types.to_string(parameter.type)));
  }

  const std::vector<std::string> expected{"file: struct file *", "buf: char *", "count: size_t",
                                          "pos: loff_t *"};
  EXPECT_EQ(parameters, expected);
  EXPECT_EQ(types.to_string(types[*prototype].target), "ssize_t");
}

TYPED_TEST(LiveKernel, KnowsTheTypesOfModules) {
  const Symbol* function = this->kernel().symbols().find("loop_queue_rq", "loop");
  ASSERT_NE(function, nullptr);
  const auto prototype = this->kernel().prototype(*function);
  ASSERT_TRUE(prototype);
  const TypeGraph& types = this->kernel().types();

  EXPECT_EQ(types.parameters(*prototype).size(), 2u);
  EXPECT_EQ(types.to_string(types[*prototype].target), "blk_status_t");
  EXPECT_TRUE(types.find(TypeKind::Struct, "loop_device")) << "a type of the module alone";
}

TYPED_TEST(LiveKernel, EveryCpusCurrentTaskIsTheOneThatRuns) {
  guest_linux::Kernel& kernel = this->kernel();
  const auto bases = kernel.percpu_bases();
  ASSERT_GE(bases.size(), kVcpus);
  const auto& layout = kernel.layout();
  ASSERT_TRUE(layout.task_comm && layout.task_tgid);
  for (std::uint32_t cpu = 0; cpu < kVcpus; ++cpu) {
    EXPECT_EQ(kernel.cpu_of(GuestVirt(bases[cpu])), cpu);
  }

  const auto pid = this->guest->start("workload --threads 4 --getppid 1000 --seconds 4");
  ASSERT_TRUE(pid) << pid.error().message;
  std::set<std::uint32_t> seen;  // CPUs found in the workload
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (seen.size() < kVcpus && std::chrono::steady_clock::now() < deadline) {
    const auto reader = this->reader();
    for (std::uint32_t cpu = 0; cpu < kVcpus; ++cpu) {
      const auto task = kernel.current_task(reader, GuestVirt(bases[cpu]));
      ASSERT_TRUE(task);
      const auto tgid = load<std::int32_t>(reader, GuestVirt(task->raw() + *layout.task_tgid));
      const auto comm =
          load<std::array<char, 16>>(reader, GuestVirt(task->raw() + *layout.task_comm));
      ASSERT_TRUE(tgid && comm) << fmt::format("cpu {}: no task at {:#x}", cpu, task->raw());
      const std::string name(comm->data(), strnlen(comm->data(), comm->size()));
      EXPECT_FALSE(name.empty());
      if (*tgid == *pid && name == "workload") seen.insert(cpu);
    }
    ::poll(nullptr, 0, 1);
  }
  EXPECT_EQ(seen.size(), kVcpus) << "4 threads on 2 CPUs run on both";
  const auto report = this->guest->finish();
  EXPECT_TRUE(report) << report.error().message;
}

TYPED_TEST(LiveKernel, ProcessesHaveMappedWhatTheGuestLists) {
  const std::string said = this->ask(
      "cat /proc/sys/kernel/randomize_va_space; dynamic 1 1000 >/tmp/said 2>&1 & p=$!; "
      "until grep -qs read /tmp/said; do usleep 10000; done; echo $p; cat /proc/$p/maps /tmp/said");
  ASSERT_TRUE(said.starts_with("2\n")) << "addresses are not random: " << said;
  const auto pid = static_cast<std::uint64_t>(std::stoi(said.substr(2)));

  const auto ours = files_that_we_find(this->reader(), this->kernel(), pid);

  EXPECT_EQ(ours, files_that_the_guest_lists(said));
  EXPECT_GT(ours.size(), 12u) << "program, interpreter, library: each in several pieces";
}

TYPED_TEST(LiveKernel, DynamicSymbolsLieWhereTheProgramHasThem) {
  using Clock = std::chrono::steady_clock;
  using Micro = std::chrono::duration<double, std::micro>;
  const std::string said = this->ask(
      "dynamic 1 1000 >/tmp/place 2>&1 & until grep -qs read /tmp/place; do usleep 10000; done; "
      "echo $!; cat /tmp/place");
  const auto pid = static_cast<std::uint64_t>(std::stoi(said));
  auto names = guest_linux::UserNames::create(this->guest->machine().memory(), this->kernel(),
                                              guest_linux::UserNames::Form::AsInFile);
  ASSERT_TRUE(names);

  const auto began = Clock::now();
  names->look_at(pid);
  const auto first = Clock::now();
  names->look_at(pid);
  const auto again = Clock::now();

  std::uint64_t place = 0;
  for (const char* name : {"dynamic`dyn_inner", "dynamic`dyn_outer", "libc.so.6`read"}) {
    const std::string line = fmt::format("\n{} 0x", strchr(name, '`') + 1);
    place = std::stoull(said.substr(said.find(line) + line.size()), nullptr, 16);
    EXPECT_EQ(names->describe(pid, GuestVirt(place)), name);
    EXPECT_EQ(names->describe(pid, GuestVirt(place + 5)), fmt::format("{}+0x5", name));
  }
  constexpr int kTimes = 100'000;
  const auto from = Clock::now();
  for (int n = 0; n < kTimes; ++n) names->describe(pid, GuestVirt(place + 5));
  const auto end = Clock::now();
  std::cout << fmt::format("a process looked at in {:.0f} us, again in {:.0f}; a name in {:.2f}\n",
                           Micro(first - began).count(), Micro(again - first).count(),
                           Micro(end - from).count() / kTimes);
}

/// The text of vmlinux and of every module, one function (or what lies between two symbols) at a
/// time: each starts at an instruction. A module's last one is left out: 6.1 gives a module's text
/// whole pages, and the rest of the last page holds whatever was in that memory before.
std::vector<std::pair<GuestVirt, std::uint64_t>> text_pieces(
    const guest_linux::SymbolTable& symbols) {
  std::vector<std::pair<GuestVirt, std::uint64_t>> pieces;
  for (const auto& module : symbols.modules()) {
    const std::uint64_t end = module.text_base.raw() + module.text_size;
    std::set<std::uint64_t> starts{module.text_base.raw()};
    for (const Symbol& symbol : symbols.symbols()) {
      const bool inside = symbol.address >= module.text_base && symbol.address.raw() < end;
      if (inside && symbol.is_text()) starts.insert(symbol.address.raw());
    }
    const bool whole = symbols.describe(module.text_base).starts_with("vmlinux`");
    const auto last = whole ? starts.end() : std::prev(starts.end());
    for (auto at = starts.begin(); at != last; ++at) {
      const std::uint64_t next = std::next(at) != starts.end() ? *std::next(at) : end;
      pieces.emplace_back(GuestVirt(*at), next - *at);
    }
  }
  return pieces;
}

TYPED_TEST(LiveKernel, StacksOfSleepersAreThoseThatTheKernelUnwinds) {
  const auto reader = this->reader();
  const auto begun = std::chrono::steady_clock::now();
  const auto tables = guest_linux::load_stack_tables(reader, this->kernel());
  const auto spent = std::chrono::steady_clock::now() - begun;
  std::cout << fmt::format("{} ORC entries in {} ms\n", tables.entry_count(),
                           std::chrono::duration_cast<std::chrono::milliseconds>(spent).count());
  EXPECT_GT(tables.entry_count(), 100'000u);

  this->ask("sleep 1000 >/dev/null 2>&1 &");
  // The guest goes on meanwhile: a task may run while its stack is read and be back where it was.
  // So one that differs is looked at again.
  std::map<std::int32_t, std::size_t> alike;  // frames by pid
  std::map<std::int32_t, std::string> different;
  for (int round = 0; round < 10 && (round == 0 || !different.empty()); ++round) {
    different.clear();
    const auto ask = [this](const std::string& command) { return this->ask(command); };
    for (const auto& [pid, stacks] : stacks_at_rest(reader, this->kernel(), tables, ask)) {
      if (alike.contains(pid)) continue;
      // Theirs leaves out the scheduler's own functions, which are the first.
      if (stacks.ours.size() >= stacks.theirs.size() &&
          std::ranges::equal(std::span(stacks.ours).last(stacks.theirs.size()), stacks.theirs)) {
        alike[pid] = stacks.theirs.size();
      } else {
        different[pid] = fmt::format("{} and not {}", fmt::join(stacks.ours, " "),
                                     fmt::join(stacks.theirs, " "));
      }
    }
  }

  for (const auto& [pid, stacks] : different) ADD_FAILURE() << "pid " << pid << ": " << stacks;
  const std::size_t compared = alike.size();
  const std::size_t deepest =
      std::ranges::max_element(alike, {}, [](const auto& each) { return each.second; })->second;
  std::cout << fmt::format("{} stacks alike, up to {} frames\n", compared, deepest);
  EXPECT_GT(compared, 20u) << "kernel threads alone are more";
  EXPECT_GT(deepest, 4u);
}

TYPED_TEST(LiveKernel, DecodersAgreeOnTheWholeText) {
  disasm::CrossCheck all;
  std::uint64_t text = 0, unknown = 0;
  const auto reader = this->reader();
  const auto& symbols = this->kernel().symbols();
  for (const auto& [start, size] : text_pieces(symbols)) {
    std::vector<std::byte> bytes(size);
    ASSERT_TRUE(reader.read(start, bytes)) << symbols.describe(start);
    const auto piece = disasm::cross_check(bytes, start);
    unknown += piece.neither;
    all.add(piece);
    text += size;
  }

  std::cout << fmt::format(
      "{} bytes: {} instructions, {} UD1; only Zydis knows {}, only Capstone {}, nobody {}\n", text,
      all.instructions, all.ud1, all.zydis_only, all.capstone_only, unknown);
  EXPECT_GT(all.instructions, 2'000'000u);
  for (const auto& difference : all.unexplained) {
    ADD_FAILURE() << fmt::format("{}: Zydis {}, Capstone {}", symbols.describe(difference.address),
                                 difference.zydis, difference.capstone);
  }
  EXPECT_EQ(all.capstone_only, 0u) << "instructions that we would have to refuse";
  // srso_untrain_ret, retbleed_untrain_ret, native_lkgs...: bytes made by hand.
  EXPECT_LT(unknown, 50u);
}

/// Why `moved`, the code at `slot`, does not do what the instruction `bytes` at `from` does; empty
/// when it does, as far as decoding tells.
std::string complaint(std::span<const std::byte> bytes, GuestVirt from,
                      std::span<const std::byte> moved, GuestVirt slot) {
  using disasm::Flow;
  const auto original = disasm::decode(bytes, from);
  const GuestVirt next(from.raw() + original->length);
  std::vector<disasm::Instruction> parts;
  for (std::size_t at = 0; at < moved.size(); at += parts.back().length) {
    const GuestVirt here(slot.raw() + at);
    const auto part = disasm::decode(moved.subspan(at), here);
    if (!part) return fmt::format("the slot's byte {} does not decode", at);
    if (disasm::capstone_length(moved.subspan(at), here) != part->length) {
      return fmt::format("Capstone does not agree at the slot's byte {}", at);
    }
    parts.push_back(*part);
  }
  const disasm::Instruction& first = parts.front();
  const disasm::Instruction& last = parts.back();
  const bool comes_back = last.flow == Flow::Jump && last.target == next;
  switch (original->flow) {
    case Flow::Next: {
      if (parts.size() != 2 || !comes_back || first.length != original->length) {
        return "the slot is not the instruction and a jump back";
      }
      // Moved home again it must be the very same bytes, a rip-relative operand included.
      const auto home = disasm::relocate(moved.first(first.length), slot, from);
      const bool same = home && std::equal(bytes.begin(), bytes.end(), home->begin());
      return same ? "" : "moving it back gives other bytes";
    }
    case Flow::Call: {
      std::int32_t pushed = 0;
      if (parts.size() != 2 || first.length != 5 || moved[0] != std::byte{0x68}) return "no push";
      std::memcpy(&pushed, moved.data() + 1, sizeof pushed);
      if (GuestVirt(static_cast<std::uint64_t>(std::int64_t{pushed})) != next) {
        return "it pushes another return address";
      }
      return last.flow == Flow::Jump && last.target == original->target ? "" : "another callee";
    }
    case Flow::Jump:
      return parts.size() == 1 && first.flow == Flow::Jump && first.target == original->target
                 ? ""
                 : "another target";
    case Flow::ConditionalJump: {
      const bool same = first.condition == original->condition && first.target == original->target;
      return same && comes_back ? "" : "another condition or target";
    }
    case Flow::Return:
      return std::equal(bytes.begin(), bytes.end(), moved.begin(), moved.end()) ? "" : "no ret";
    case Flow::IndirectJump:
    case Flow::TableJump:
    case Flow::IndirectCall:
    case Flow::Stop:
    case Flow::Other: return "";
  }
  return "";
}

/// Where any jump or call of the whole text leads, decoded in steps of its own; and where jump
/// labels lead when they are on, and the fixups of faults.
template <class Reader>
std::map<std::uint64_t, std::vector<std::uint64_t>> all_branches(
    const Reader& reader, const guest_linux::SymbolTable& symbols) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> from;  // by target
  for (const auto& [start, size] : text_pieces(symbols)) {
    std::vector<std::byte> bytes(size);
    if (!reader.read(start, bytes)) continue;
    for (std::size_t at = 0; at < bytes.size();) {
      const GuestVirt here(start.raw() + at);
      const auto rest = std::span<const std::byte>(bytes).subspan(at);
      // ud2 and "xen": a prefix by which Xen knows what to emulate (asm/xen/prefix.h).
      constexpr std::array<std::uint8_t, 5> kXen{0x0f, 0x0b, 'x', 'e', 'n'};
      if (rest.size() >= kXen.size() &&
          std::ranges::equal(rest.first(kXen.size()), std::as_bytes(std::span(kXen)))) {
        at += kXen.size();
        continue;
      }
      const auto in = disasm::decode(rest, here);
      at += in ? in->length : 1;
      if (in && in->target.raw() != 0) from[in->target.raw()].push_back(here.raw());
    }
  }
  const auto table = [&](const char* first, const char* last, std::size_t entry, auto target) {
    const Symbol* begin = symbols.find(first);
    const Symbol* end = symbols.find(last);
    if (begin == nullptr || end == nullptr) return;
    for (std::uint64_t at = begin->address.raw(); at < end->address.raw(); at += entry) {
      const auto distance = load<std::int32_t>(reader, GuestVirt(at + target));
      if (distance) from[at + target + static_cast<std::uint64_t>(*distance)].push_back(at);
    }
  };
  table("__start___jump_table", "__stop___jump_table", 16, 4u);
  table("__start___ex_table", "__stop___ex_table", 12, 4u);
  return from;
}

/// Restarts the machine by an int3 without an IDT, the one int3 that the kernel's C has.
constexpr std::string_view kHasInt3 = "native_machine_emergency_restart";

/// An entry probe that also fires at every turn of a loop counts too much, and its arguments are
/// none.
TYPED_TEST(LiveKernel, NoJumpLeadsToAnEntrySite) {
  const auto reader = this->reader();
  const auto& symbols = this->kernel().symbols();
  const auto branches = all_branches(reader, symbols);
  std::size_t entries = 0;
  std::set<std::string> refused;
  for (const Symbol& function : symbols.symbols()) {
    const auto ftrace = providers::ftrace_site(reader, function, &symbols);
    if (!function.is_text() || !ftrace) continue;
    const GuestVirt site = ftrace->end;
    // 7.2 lists data as text.
    if (!symbols.modules()[function.module].has_text_at(site)) continue;
    const auto once = providers::check_entered_once(reader, symbols, function, site);
    if (!once) {
      if (function.name == kHasInt3) continue;
      refused.insert(std::string(function.name));
      EXPECT_NE(once.error().message.find("begins with a loop"), std::string::npos)
          << once.error().message;
      continue;
    }
    ++entries;
    const auto found = branches.find(site.raw());
    if (found == branches.end()) continue;
    for (const std::uint64_t from : found->second) {
      ADD_FAILURE() << symbols.describe(GuestVirt(from)) << " leads to " << symbols.describe(site);
    }
  }

  std::cout << fmt::format("{} entry sites, {} branch targets; {} loops refused: {}\n", entries,
                           branches.size(), refused.size(), fmt::join(refused, " "));
  EXPECT_GT(entries, 30'000u);
  EXPECT_GT(refused.size(), 5u) << "6.1 has 20, 6.12 has 13, 7.2 has 32";
  EXPECT_LT(refused.size(), 100u);
  EXPECT_TRUE(refused.contains("workingset_age_nonresident"));
}

/// Functions that ftrace knows and that decode after its site, with what happened to each.
struct EntryCount {
  std::size_t functions = 0, moved = 0;
  std::map<std::string, std::size_t> refused;  // by reason
  std::map<std::string, std::size_t> printed;  // mnemonic: how often
};

TYPED_TEST(LiveKernel, EveryFunctionDecodesAndItsFirstInstructionMoves) {
  const auto reader = this->reader();
  const auto& symbols = this->kernel().symbols();
  const Symbol* end = symbols.find("_end");
  ASSERT_NE(end, nullptr);
  const GuestVirt slot(end->address.raw() + 0x12345);
  EntryCount count;
  std::uint64_t previous = 0;
  for (const Symbol& function : symbols.symbols()) {
    if (!function.is_text() || function.address.raw() == previous) continue;  // an alias
    const auto ftrace = providers::ftrace_site(reader, function, &symbols);
    if (!ftrace) continue;
    previous = function.address.raw();
    ++count.functions;
    const GuestVirt site = ftrace->end;
    const auto exits = providers::return_sites(reader, symbols, function);
    EXPECT_TRUE(exits || function.name == kHasInt3)
        << function.name << ": " << exits.error().message;
    std::array<std::byte, 15> window;
    ASSERT_TRUE(reader.read(site, window));
    const auto in = disasm::decode(window, site);
    ASSERT_TRUE(in) << function.name;
    const auto bytes = std::span<const std::byte>(window).first(in->length);
    const std::string text = disasm::to_text(bytes, site);
    EXPECT_FALSE(text.empty()) << function.name << ": Capstone cannot print it";
    ++count.printed[text.substr(0, text.find(' '))];
    const auto moved = disasm::relocate(bytes, site, slot);
    if (!moved) {
      ++count.refused[moved.error().message];
      continue;
    }
    ++count.moved;
    const std::string trouble = complaint(bytes, site, *moved, slot);
    EXPECT_TRUE(trouble.empty()) << function.name << ": " << text << ": " << trouble;
  }

  std::cout << fmt::format("{} functions, {} first instructions of {} kinds moved\n",
                           count.functions, count.moved, count.printed.size());
  for (const auto& [reason, times] : count.refused) {
    std::cout << fmt::format("refused {}: {}\n", times, reason);
  }
  EXPECT_GT(count.functions, 30'000u);
  EXPECT_GT(count.moved, count.functions - count.functions / 100) << "a percent may be refused";
}

}  // namespace
}  // namespace ringside::live
