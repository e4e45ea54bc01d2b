#include "vmm/kernel_file/kernel_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "vmm/testing/sample_kernels.h"

namespace ringside::vmm {
namespace {

using namespace testing;

/// The message of the refusal; empty when the bytes were taken.
std::string refusal(Bytes bytes) {
  const auto file = KernelFile::parse(std::move(bytes), "k");
  if (file) return {};
  EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
  return file.error().message;
}

Bytes with_text(std::size_t at, std::string_view text) {
  Bytes bytes(std::max<std::size_t>(at + text.size(), 256));
  for (std::size_t i = 0; i < text.size(); ++i) bytes[at + i] = static_cast<std::byte>(text[i]);
  return bytes;
}

TEST(KernelFile, TellsTheFormats) {
  SampleElf elf32;
  elf32.is_64 = false;
  elf32.machine = 3;

  EXPECT_EQ(KernelFile::parse(sample_elf({}), "k")->format(), KernelFile::Format::Elf64);
  EXPECT_EQ(KernelFile::parse(sample_elf(elf32), "k")->format(), KernelFile::Format::Elf32);
  EXPECT_EQ(KernelFile::parse(sample_bz_image({}), "k")->format(), KernelFile::Format::BzImage);
  EXPECT_EQ(KernelFile::parse(sample_flat_kernel(), "k")->format(), KernelFile::Format::Flat);
}

TEST(KernelFile, AnElfFileIsItsOwnElfImage) {
  const Bytes bytes = sample_elf({});
  const auto file = KernelFile::parse(bytes, "k");
  ASSERT_TRUE(file.has_value());

  const auto elf = file->elf();

  ASSERT_TRUE(elf.has_value());
  EXPECT_EQ(elf->data(), file->bytes().data());
  EXPECT_TRUE(std::equal(elf->begin(), elf->end(), bytes.begin(), bytes.end()));
}

TEST(KernelFile, ABzImageGivesTheElfImageOfItsPayloadOnceUnpacked) {
  const Bytes elf = sample_elf({});
  for (const char* packing : {"gzip", "xz", "lzma", "zstd", "lz4", "bzip2"}) {
    SampleBzImage image;
    image.payload = packed(elf, packing);
    const auto file = KernelFile::parse(sample_bz_image(image), "k");
    ASSERT_TRUE(file.has_value()) << file.error().message;

    const auto got = file->elf();

    ASSERT_TRUE(got.has_value()) << packing << ": " << got.error().message;
    EXPECT_TRUE(std::equal(got->begin(), got->end(), elf.begin(), elf.end())) << packing;
    EXPECT_EQ(file->elf()->data(), got->data()) << "unpacked twice";
  }
}

TEST(KernelFile, TheElfImageOfABzImageIsAKernelFileThatOutlivesIt) {
  const Bytes elf = sample_elf({});
  Result<KernelFile> inside = fail(ErrorCode::NotFound, {});
  {
    SampleBzImage image;
    image.payload = packed(elf, "gzip");
    const auto file = KernelFile::parse(sample_bz_image(image), "k");
    ASSERT_TRUE(file.has_value());
    inside = file->elf_file();
  }

  ASSERT_TRUE(inside.has_value()) << inside.error().message;
  EXPECT_EQ(inside->format(), KernelFile::Format::Elf64);
  EXPECT_EQ(inside->name(), "k");
  EXPECT_TRUE(std::equal(inside->bytes().begin(), inside->bytes().end(), elf.begin(), elf.end()));
  EXPECT_EQ(inside->elf_file()->bytes().data(), inside->bytes().data());
  EXPECT_FALSE(KernelFile::parse(sample_flat_kernel(), "k")->elf_file().has_value());
}

TEST(KernelFile, APayloadThatIsNoKernelIsRefusedByName) {
  SampleBzImage image;
  image.payload = packed(Bytes(5000), "gzip");
  const auto file = KernelFile::parse(sample_bz_image(image), "k");
  ASSERT_TRUE(file.has_value());

  const auto elf = file->elf();

  ASSERT_FALSE(elf.has_value());
  EXPECT_EQ(elf.error().message.substr(0, 11), "k's payload");
}

TEST(KernelFile, ABzImageWithoutPayloadStillIsAKernel) {
  const auto file = KernelFile::parse(sample_bz_image({}), "k");

  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->elf().error().code, ErrorCode::Unsupported);
}

TEST(KernelFile, AFlatFileHasNoElfImage) {
  EXPECT_EQ(KernelFile::parse(sample_flat_kernel(), "k")->elf().error().code,
            ErrorCode::Unsupported);
}

TEST(KernelFile, OtherArchitecturesAreNamed) {
  const auto for_machine = [](std::uint16_t machine) {
    SampleElf elf;
    elf.machine = machine;
    return refusal(sample_elf(elf));
  };
  EXPECT_EQ(for_machine(183), "k: a kernel for arm64: take one built for x86-64");
  EXPECT_EQ(for_machine(243), "k: a kernel for RISC-V: take one built for x86-64");
  EXPECT_EQ(for_machine(3), "k: a kernel for x86 (32 bits): take one built for x86-64");
  EXPECT_EQ(for_machine(999), "k: a program for machine 999: take a kernel built for x86-64");
  EXPECT_EQ(refusal(with_text(56, "ARM\x64")), "k: a kernel for arm64: take one built for x86-64");
  EXPECT_EQ(refusal(with_text(56, "RSC\x05")), "k: a kernel for RISC-V: take one built for x86-64");
}

TEST(KernelFile, ABigEndianMachineIsNamedToo) {
  Bytes elf = sample_elf({});
  elf[5] = std::byte{2};  // EI_DATA
  elf[18] = std::byte{0};
  elf[19] = std::byte{22};  // e_machine

  EXPECT_EQ(refusal(elf), "k: a kernel for s390: take one built for x86-64");
}

TEST(KernelFile, ElfFilesThatAreNoProgramsAreNamed) {
  const auto of_type = [](std::uint16_t type) {
    Bytes elf = sample_elf({});
    set(elf, 16, type);
    return refusal(elf);
  };
  EXPECT_EQ(of_type(1), "k: an object file or a module: link it first");
  EXPECT_EQ(of_type(4), "k: a core dump, not a kernel");
}

TEST(KernelFile, WhatIsNoKernelIsNamed) {
  EXPECT_EQ(refusal({}), "k: the file is empty: copy it again");
  EXPECT_EQ(refusal(packed(sample_elf({}), "gzip")), "k: packed with gzip: unpack it first");
  EXPECT_EQ(refusal(packed(sample_elf({}), "xz")), "k: packed with xz: unpack it first");
  EXPECT_EQ(refusal(with_text(0, "070701")), "k: an initramfs (cpio), not a kernel");
  EXPECT_EQ(refusal(with_text(0, "QFI\xfb")), "k: a disk image (qcow2), not a kernel");
  EXPECT_EQ(refusal(Bytes(5000)),
            "k: no kernel: it takes a bzImage (vmlinuz), a vmlinux, or an ELF file");
}

TEST(KernelFile, FilesThatAreCutShortSaySo) {
  const Bytes bz_image = sample_bz_image({}), elf = sample_elf({});

  EXPECT_EQ(refusal({bz_image.begin(), bz_image.begin() + 1100}),
            "k: the bzImage is cut short after 1100 bytes: copy it again");
  EXPECT_EQ(refusal({elf.begin(), elf.begin() + 40}),
            "k: the ELF file is cut short: copy it again");
}

TEST(KernelFile, AKernelOfBefore2013IsRefusedByItsProtocol) {
  SampleBzImage image;
  image.version = 0x020a;

  EXPECT_EQ(refusal(sample_bz_image(image)),
            "k: a kernel with boot protocol 2.10: it takes 2.12 (Linux 3.8) or later");
}

TEST(KernelFile, OpensFilesAndNamesThemInErrors) {
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "/kernel_file_test." + std::to_string(::getpid());
  const Bytes elf = sample_elf({});
  // SAFETY: char may alias.
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(elf.data()), static_cast<std::streamsize>(elf.size()));

  const auto file = KernelFile::open(path);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->name(), path);
  EXPECT_EQ(file->bytes().size(), elf.size());
  std::filesystem::remove(path);
  EXPECT_TRUE(std::equal(file->bytes().begin(), file->bytes().end(), elf.begin(), elf.end()));
  std::ofstream(path).close();
  EXPECT_EQ(KernelFile::open(path).error().message, path + ": the file is empty: copy it again");
  std::filesystem::remove(path);

  const auto missing = KernelFile::open(path);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_EQ(missing.error().message,
            "cannot read the guest's kernel " + path +
                ": No such file or directory; give --kernel a bzImage (/boot/vmlinuz-*) or a "
                "vmlinux that you may read");
  EXPECT_EQ(KernelFile::open(folder).error().code, ErrorCode::Io);
}

}  // namespace
}  // namespace ringside::vmm
