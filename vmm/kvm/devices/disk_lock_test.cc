#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <initializer_list>

#include "vmm/kvm/devices/disk_file.h"
#include "vmm/kvm/devices/testing/temporary_disk.h"

namespace ringside::vmm::kvm {
namespace {

/// Another program that has the disk open, with locks of its own.
class Other {
 public:
  explicit Other(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}

  bool flock(int kind) { return ::flock(fd_.get(), kind | LOCK_NB) == 0; }
  bool lock(short type, off_t start, off_t length) {
    struct flock record = made(type, start, length);
    return ::fcntl(fd_.get(), F_OFD_SETLK, &record) == 0;
  }
  /// Read locks on single bytes, as QEMU has them.
  bool flag(std::initializer_list<off_t> bytes) {
    bool all = true;
    for (const off_t byte : bytes) all = lock(F_RDLCK, byte, 1) && all;
    return all;
  }
  /// Whether QEMU would find a flag there.
  bool finds(off_t byte) {
    struct flock record = made(F_WRLCK, byte, 1);
    return ::fcntl(fd_.get(), F_OFD_GETLK, &record) == 0 && record.l_type != F_UNLCK;
  }

 private:
  static struct flock made(short type, off_t start, off_t length) {
    struct flock record {};
    record.l_type = type;
    record.l_whence = SEEK_SET;
    record.l_start = start;
    record.l_len = length;
    return record;
  }
  UniqueFd fd_;
};

class DiskLock : public testing::Test {
 protected:
  bool writes() const { return message_of({disk_.path(), false}).empty(); }
  bool reads() const { return message_of({disk_.path(), true}).empty(); }

  TemporaryDisk disk_{std::string(512, 'd')};
  Other other_{disk_.path()};
};

TEST_F(DiskLock, OneWritesOrSeveralRead) {
  {
    const auto writer = DiskFile::open({disk_.path(), false});
    ASSERT_TRUE(writer);
    const std::string words = "the disk " + disk_.path() +
                              " is in use already: stop what uses it (fuser " + disk_.path() +
                              " names it), or give a copy";
    EXPECT_EQ(message_of({disk_.path(), false}), words);
    EXPECT_EQ(message_of({disk_.path(), true}), words);
  }
  const auto reader = DiskFile::open({disk_.path(), true});
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reads());
  EXPECT_FALSE(writes());
}

TEST_F(DiskLock, GoesWithQemuOnlyWhereBothRead) {
  ASSERT_TRUE(other_.flag({100, 201}));  // QEMU 7.2: a disk with readonly=on
  EXPECT_TRUE(reads());
  EXPECT_FALSE(writes());
  ASSERT_TRUE(other_.flag({101}));  // a disk that is written
  EXPECT_FALSE(reads());
  EXPECT_FALSE(writes());
}

TEST_F(DiskLock, NobodyReadsWhatAnotherKeepsForItself) {
  ASSERT_TRUE(other_.flag({200}));
  EXPECT_FALSE(reads());
}

TEST_F(DiskLock, QemuSeesThatWeRead) {
  const auto reader = DiskFile::open({disk_.path(), true});
  ASSERT_TRUE(reader);

  for (const off_t byte : {100, 201, 203}) EXPECT_TRUE(other_.finds(byte)) << byte;
  for (const off_t byte : {101, 102, 103, 104, 200, 202, 204}) {
    EXPECT_FALSE(other_.finds(byte)) << byte << " would keep a QEMU out that reads, too";
  }
  EXPECT_FALSE(other_.lock(F_WRLCK, 0, 0));
}

TEST_F(DiskLock, QemuSeesThatWeWrite) {
  const auto writer = DiskFile::open({disk_.path(), false});
  ASSERT_TRUE(writer);

  for (const off_t byte : {101, 200, 201}) EXPECT_TRUE(other_.finds(byte)) << byte;
  EXPECT_FALSE(other_.flag({100}));
}

TEST_F(DiskLock, ALockOfSomeBytesCountsToo) {
  ASSERT_TRUE(other_.lock(F_WRLCK, 1000, 10));
  EXPECT_FALSE(reads());
  ASSERT_TRUE(other_.lock(F_RDLCK, 1000, 10));
  EXPECT_TRUE(reads());
  EXPECT_FALSE(writes());
}

TEST_F(DiskLock, FlockIsSeenAndTaken) {
  ASSERT_TRUE(other_.flock(LOCK_SH));
  EXPECT_TRUE(reads());
  EXPECT_FALSE(writes());
  ASSERT_TRUE(other_.flock(LOCK_EX));
  EXPECT_FALSE(reads());
  ASSERT_TRUE(other_.flock(LOCK_UN));
  {
    const auto reader = DiskFile::open({disk_.path(), true});
    EXPECT_FALSE(other_.flock(LOCK_EX));
    EXPECT_TRUE(other_.flock(LOCK_SH));
    EXPECT_TRUE(other_.flock(LOCK_UN));
  }
  const auto writer = DiskFile::open({disk_.path(), false});
  EXPECT_FALSE(other_.flock(LOCK_SH));
}

}  // namespace
}  // namespace ringside::vmm::kvm
