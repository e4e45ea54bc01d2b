#include "vmm/linux/types/type_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/types/types_without_btf.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kPercpu = 0;

std::string info_with_page(std::string_view page_size) {
  std::string text =
      "OSRELEASE=6.1.0\nSYMBOL(init_uts_ns)=ffffffff82000000\nSYMBOL(_stext)=ffffffff81000000\n"
      "SYMBOL(swapper_pg_dir)=ffffffff82100000\nNUMBER(phys_base)=0\nSIZE(page)=";
  text += page_size;
  for (int n = 0; n < 8; ++n) {
    text += "\nOFFSET(zone.m" + std::to_string(n) + ")=" + std::to_string(8 * n);
  }
  return text + "\nOFFSET(zone.gone)=1\n";
}

/// BTF of a kernel with one structure of eight members, two functions and two per-CPU variables.
std::vector<std::byte> kernel_btf() {
  fakes::BtfWriter btf;
  const auto word = btf.integer("long unsigned int", 8, false);
  btf.structure("task_struct", 64, {{"state", word, 0}});
  btf.structure("page", 64, {{"flags", word, 0}});
  std::vector<fakes::BtfWriter::Field> members;
  static const std::string names[] = {"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"};
  for (std::uint32_t n = 0; n < 8; ++n) members.push_back({names[n], word, 64 * n});
  btf.structure("zone", 64, members);
  const auto prototype = btf.type(13, "", word);
  btf.type(12, "vfs_read", prototype);
  btf.type(12, "vfs_write", prototype);
  const auto first = btf.type(14, "runqueues", word);
  btf.word(1);
  const auto second = btf.type(14, "cpu_number", word);
  btf.word(1);
  btf.type(15, ".data..percpu", 0x100, 2);
  btf.word(first).word(0x40).word(8).word(second).word(0x80).word(4);
  return btf.blob();
}

class TypesOfFile : public ::testing::Test {
 protected:
  ~TypesOfFile() override { ::unlink(path_.c_str()); }

  void put(std::span<const std::byte> bytes) {
    const int fd = ::mkstemp(path_.data());
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  }
  SymbolTable symbols(std::string_view second, std::uint64_t runqueues) {
    const auto symbol = [](std::string_view name, std::uint64_t at, char type) {
      return Symbol{.address = GuestVirt(at), .name = name, .type = type};
    };
    SymbolTable table;
    table.add_module(
        {.name = "vmlinux", .text_base = GuestVirt(fakes::kText)},
        {symbol("__per_cpu_start", kPercpu, 'A'), symbol("runqueues", kPercpu + runqueues, 'A'),
         symbol("cpu_number", kPercpu + 0x80, 'A'), symbol("vfs_read", fakes::kText + 0x100, 'T'),
         symbol(second, fakes::kText + 0x200, 'T')});
    table.seal();
    return table;
  }
  std::string refusal(const std::string& info_of_guest, std::string_view second = "vfs_write",
                      std::uint64_t runqueues = 0x40) {
    const auto file = TypeFile::open(path_);
    if (!file) return file.error().message;
    const auto info = VmcoreInfo::parse(info_of_guest);
    const SymbolTable table = symbols(second, runqueues);
    TypeGraph types;
    const auto btf = file->read_for({table, guest_, "6.1.0", &*info}, types);
    if (!btf) return btf.error().message;
    EXPECT_TRUE(has_kernel_types(types));
    EXPECT_TRUE(btf->prototype("vfs_read"));
    return {};
  }

  std::string path_ = ::testing::TempDir() + "typesXXXXXX";
  fakes::SparseGuest guest_;
};

TEST_F(TypesOfFile, AreTakenWhereAllThatTheKernelTellsAgrees) {
  put(kernel_btf());

  EXPECT_EQ(refusal(info_with_page("64")), "");
}

TEST_F(TypesOfFile, OfAnotherBuildAreRefusedWithTheDifference) {
  put(kernel_btf());

  EXPECT_NE(refusal(info_with_page("56")).find("the size of page is 64 in the file, and 56"),
            std::string::npos)
      << refusal(info_with_page("56"));
  EXPECT_NE(refusal(info_with_page("64"), "vfs_writev").find("only 1 of its 2 functions"),
            std::string::npos);
  EXPECT_NE(refusal(info_with_page("64"), "vfs_write", 0x48).find("1 of its 2 per-CPU variables"),
            std::string::npos);
}

TEST_F(TypesOfFile, ThatCannotBeComparedAreRefused) {
  put(kernel_btf());
  const std::string text = info_with_page("64");

  EXPECT_NE(refusal(text.substr(0, text.find("OFFSET"))).find("too little"), std::string::npos);
}

TEST_F(TypesOfFile, ThatAreDamagedAreRefused) {
  auto bytes = kernel_btf();
  bytes.resize(bytes.size() / 2);
  put(bytes);

  const std::string why = refusal(info_with_page("64"));
  EXPECT_TRUE(why.starts_with("--types ")) << why;
  EXPECT_NE(why.find("BTF"), std::string::npos) << why;
}

TEST_F(TypesOfFile, OfSomethingElseAreRefused) {
  const std::string text = "no kernel";
  put(std::as_bytes(std::span(text)));
  EXPECT_NE(refusal(info_with_page("64")).find("--types takes a vmlinux, or BTF alone"),
            std::string::npos);

  const auto missing = TypeFile::open("/nonexistent/vmlinux");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nonexistent/vmlinux"), std::string::npos);
  const auto none = TypeFile::open_if_named("");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

}  // namespace
}  // namespace ringside::guest_linux
