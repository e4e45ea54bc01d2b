#include "vmm/linux/vmcoreinfo.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ringside::guest_linux {
namespace {

const std::string kInfo =
    "OSRELEASE=6.1.0-56-cloud-amd64\nBUILD-ID=abc\nPAGESIZE=4096\nSYMBOL(init_uts_ns)="
    "ffffffff8fbf9b60\nOFFSET(uts_namespace.name)=0\nSYMBOL(_stext)=ffffffff8e000000\n"
    "SYMBOL(swapper_pg_dir)=ffffffff8fa10000\nNUMBER(phys_base)=-197132288\n"
    "NUMBER(pgtable_l5_enabled)=1\nKERNELOFFSET=d000000\n";

struct Ram {
  std::vector<std::byte> bytes = std::vector<std::byte>(16 * 4096);
  vmm::GuestMemory memory{{{GuestPhys(0), bytes}}};

  void put(std::size_t at, std::string_view text) {
    std::memcpy(bytes.data() + at, text.data(), text.size());
  }
};

std::string as_note(std::string_view text) {
  std::string note(24, '\0');
  const std::uint32_t header[3] = {11, static_cast<std::uint32_t>(text.size()), 0};
  std::memcpy(note.data(), header, sizeof header);
  std::memcpy(note.data() + 12, "VMCOREINFO", 10);
  return note.append(text);
}

TEST(VmcoreInfo, ReadsSymbolsNumbersAndOffsets) {
  const auto info = VmcoreInfo::parse(kInfo);

  ASSERT_TRUE(info);
  EXPECT_EQ(info->release(), "6.1.0-56-cloud-amd64");
  EXPECT_EQ(info->symbol("_stext"), GuestVirt(0xffff'ffff'8e00'0000));
  EXPECT_EQ(info->number("phys_base"), -197132288);
  EXPECT_EQ(info->offset("uts_namespace.name"), 0);
  EXPECT_EQ(info->symbol("kallsyms_names"), std::nullopt);
  EXPECT_EQ(info->number("stext"), std::nullopt);
}

TEST(VmcoreInfo, FindsTheKernelsNamesAlsoWhereOldOnesDoNotSayWhere) {
  const std::string offset = "OFFSET(uts_namespace.name)=0\n";
  std::string before_5_11 = kInfo;
  before_5_11.erase(before_5_11.find(offset), offset.size());
  const auto info = VmcoreInfo::parse(kInfo), old = VmcoreInfo::parse(before_5_11);

  ASSERT_TRUE(info && old);
  EXPECT_EQ(info->names(), GuestVirt(0xffff'ffff'8fbf'9b60));
  EXPECT_EQ(old->names(), GuestVirt(0xffff'ffff'8fbf'9b64));
}

TEST(VmcoreInfo, EndsAtTheFirstNul) {
  const auto info = VmcoreInfo::parse(kInfo + std::string("\0SYMBOL(late)=1\n", 16));

  ASSERT_TRUE(info);
  EXPECT_EQ(info->symbol("late"), std::nullopt);
}

TEST(VmcoreInfo, RefusesWhatIsNotPrintableIncompleteOrTheFormatString) {
  std::string binary = kInfo;
  binary[40] = '\x01';
  std::string no_base = kInfo;
  no_base.replace(no_base.find("-197132288"), 10, "0x12345678");

  EXPECT_FALSE(VmcoreInfo::parse(binary));
  EXPECT_FALSE(VmcoreInfo::parse(no_base));
  EXPECT_FALSE(VmcoreInfo::parse("OSRELEASE=%s\n"));
  EXPECT_FALSE(VmcoreInfo::parse(""));
}

bool any(const VmcoreInfo&) {
  return true;
}

std::string with_release(char first_digit) {
  std::string text = kInfo;
  text[10] = first_digit;
  return text;
}

TEST(FindVmcoreinfo, KeepsFewOfManyForgeries) {
  Ram ram;
  for (unsigned i = 0; i < 16; ++i) ram.put(i * 4096, with_release(static_cast<char>('A' + i)));
  const auto found = find_vmcoreinfo(ram.memory, any);
  EXPECT_EQ(found.size(), kMostVmcoreInfos);
}

TEST(FindVmcoreinfo, WhatIsNotWantedDoesNotHideWhatIs) {
  Ram ram;
  for (unsigned i = 0; i < 16; ++i) ram.put(i * 4096, with_release(static_cast<char>('A' + i)));

  const auto found =
      find_vmcoreinfo(ram.memory, [](const VmcoreInfo& info) { return info.release()[0] == 'P'; });

  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text(), with_release('P'));
}

TEST(FindVmcoreinfo, FindsTextAndNoteAtPageStartsOnly) {
  Ram ram;
  std::string other = kInfo;
  other.replace(10, 1, "5");
  std::string third = kInfo;
  third.replace(10, 1, "4");
  ram.put(3 * 4096, kInfo);
  ram.put(5 * 4096, as_note(other));
  ram.put(7 * 4096 + 64, third);

  const auto found = find_vmcoreinfo(ram.memory, any);

  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].release(), "6.1.0-56-cloud-amd64");
  EXPECT_EQ(found[1].release(), "5.1.0-56-cloud-amd64");
}

TEST(FindVmcoreinfo, CopiesOfTheSameTextCountOnce) {
  Ram ram;
  ram.put(2 * 4096, kInfo);
  ram.put(4 * 4096, as_note(kInfo));

  EXPECT_EQ(find_vmcoreinfo(ram.memory, any).size(), 1u);
}

TEST(FindVmcoreinfo, ANoteInTheLastPageOfRamIsRead) {
  Ram ram;
  ram.put(15 * 4096, as_note(kInfo));

  EXPECT_EQ(find_vmcoreinfo(ram.memory, any).size(), 1u);
}

}  // namespace
}  // namespace ringside::guest_linux
