#include "vmm/linux/processes/debuginfod.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "vmm/linux/processes/elf_file_for_tests.h"
#include "vmm/linux/processes/file_functions.h"
#include "vmm/linux/processes/host_files.h"

namespace ringside::guest_linux {
namespace {

const std::string kServedBuild("\xab\xcd\xef\x01\x23", 5), kUnknownBuild("\xab\xcd\xef\x01\x24", 5);

/// A socket of loopback that answers nobody; `listens`: or that refuses everybody.
class SilentServer {
 public:
  explicit SilentServer(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    if (listens) {
      EXPECT_EQ(::listen(socket_.get(), 8), 0);
    }
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
    port_ = ntohs(place.sin_port);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  UniqueFd socket_;
  unsigned port_ = 0;
};

/// A folder that is a server.
class DebuginfodServers : public testing::Test {
 protected:
  DebuginfodServers() {
    std::string name = testing::TempDir() + "debuginfod.XXXXXX";
    folder_ = ::mkdtemp(name.data());
    ::setenv("DEBUGINFOD_CACHE_PATH", (folder_ / "cache").c_str(), 1);
    use("file://" + (folder_ / "served").string());
  }
  ~DebuginfodServers() override {
    ::unsetenv("DEBUGINFOD_CACHE_PATH");
    ::unsetenv("DEBUGINFOD_URLS");
    std::filesystem::remove_all(folder_);
  }
  static void use(const std::string& url) { ::setenv("DEBUGINFOD_URLS", url.c_str(), 1); }
  void serve(const std::string& build_id, std::span<const std::byte> bytes) const {
    const auto place = folder_ / "served" / "buildid" / build_id;
    std::filesystem::create_directories(place);
    std::ofstream(place / "debuginfo", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  std::filesystem::path folder_;
};

TEST_F(DebuginfodServers, AreThoseThatTheUserHasNamed) {
  EXPECT_TRUE(Debuginfod::is_wanted());
  use("");
  EXPECT_FALSE(Debuginfod::is_wanted());
  ::unsetenv("DEBUGINFOD_URLS");
  EXPECT_FALSE(Debuginfod::is_wanted());
}

TEST_F(DebuginfodServers, HaveFilesByBuildId) {
  const std::string text = "bytes of a file";
  serve("abcdef0123", std::as_bytes(std::span(text)));
  Debuginfod servers;
  const auto missing = servers.find(kUnknownBuild);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  const auto found = servers.find(kServedBuild);
  ASSERT_TRUE(found) << found.error().message;
  std::array<char, 64> read{};
  ASSERT_EQ(::pread(found->get(), read.data(), read.size(), 0), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(text, read.data());
}

TEST_F(DebuginfodServers, OneThatFailsIsNotAskedAgain) {
  const SilentServer refusing(false);
  use(refusing.url());
  Debuginfod servers;
  const auto failed = servers.find(kServedBuild);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "Connection refused");
  use("file://" + (folder_ / "served").string());
  serve("abcdef0123", {});
  const auto again = servers.find(kServedBuild);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "Connection refused");
}

TEST_F(DebuginfodServers, OneThatDoesNotAnswerIsLeft) {
  const SilentServer silent(true);
  use(silent.url());
  Debuginfod servers({.each = std::chrono::seconds(1)});
  const auto failed = servers.find(kServedBuild);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "no file came within 1 s");
}

TEST_F(DebuginfodServers, AreAskedForSoManyFilesAtMost) {
  Debuginfod servers({.files = 2});
  for (unsigned n = 0; n < 2; ++n) {
    EXPECT_EQ(servers.find(kServedBuild).error().code, ErrorCode::NotFound);
  }
  const auto more = servers.find(kServedBuild);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "it was asked for 2 files already");
}

TEST_F(DebuginfodServers, HaveSymbolsForWhoWaits) {
  fakes::ElfFile in_guest(0x1000, 0x1000);
  in_guest.build_id = kServedBuild;
  fakes::ElfFile whole = in_guest;
  whole.add_function("hidden", 0x1010, 16);
  whole.is_split_off = true;
  serve("abcdef0123", whole.encode());
  std::vector<std::string> shown;
  auto files = HostFiles::open(
      {.uses_servers = true, .show = [&](const std::string& what) { shown.push_back(what); }});
  ASSERT_TRUE(files && (*files)->any() && (*files)->has_servers());
  const auto functions = [&](HostFiles::Servers servers) {
    return FileFunctions::read(fakes::MemoryFile(in_guest), files->get(), "/usr/bin/x", servers);
  };
  EXPECT_TRUE(functions(HostFiles::Servers::NotAsked).all().empty());
  EXPECT_TRUE(shown.empty());
  const auto found = functions(HostFiles::Servers::Asked);
  ASSERT_EQ(found.all().size(), 1u);
  EXPECT_EQ(found.all()[0].name, "hidden");
  EXPECT_EQ(found.searched(),
            "no functions in the page cache, 1 by .symtab of debuginfod's file "
            "of build id abcdef0123");
  EXPECT_EQ(shown, (std::vector<std::string>{"asking debuginfod for symbols of x", ""}));

  in_guest.build_id = kUnknownBuild;
  for (unsigned n = 0; n < 2; ++n) {
    EXPECT_EQ(functions(HostFiles::Servers::Asked).searched(),
              "no functions in the page cache; debuginfod has none of build id abcdef0124");
  }
  EXPECT_EQ(shown.size(), 4u) << "it was asked once";
  EXPECT_TRUE((*files)->take_notices().empty());
  serve("0102", whole.encode());
  in_guest.build_id = std::string("\1\2");
  EXPECT_TRUE(functions(HostFiles::Servers::Asked).all().empty()) << "of another build";
  EXPECT_EQ((*files)->take_notices().size(), 1u);
}

TEST_F(DebuginfodServers, ThatFailAreTold) {
  const SilentServer refusing(false);
  use(refusing.url());
  auto files = HostFiles::open({.uses_servers = true});
  ASSERT_TRUE(files);
  fakes::ElfFile in_guest(0x1000, 0x1000);
  for (const std::string& build_id : {kServedBuild, kUnknownBuild}) {
    in_guest.build_id = build_id;
    const auto found = FileFunctions::read(fakes::MemoryFile(in_guest), files->get(), "/x",
                                           HostFiles::Servers::Asked);
    EXPECT_EQ(found.searched(), "no functions in the page cache; debuginfod: Connection refused");
  }
  EXPECT_EQ((*files)->take_notices(),
            std::vector<std::string>{"debuginfod: Connection refused: it is not asked any more; "
                                     "names are those of the guest's memory"});
}

}  // namespace
}  // namespace ringside::guest_linux
