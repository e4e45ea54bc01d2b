// Formats, rings and records as the kernel makes them, without a kernel: by hand.
#include "vmm/kvm/host/host_tracepoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;

// Of Linux 6.1.
constexpr std::string_view kCpuidFormat = R"(name: kvm_cpuid
ID: 1234
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:unsigned int function;	offset:8;	size:4;	signed:0;
	field:unsigned int index;	offset:12;	size:4;	signed:0;
	field:unsigned long rax;	offset:16;	size:8;	signed:0;
	field:unsigned long rbx;	offset:24;	size:8;	signed:0;
	field:unsigned long rcx;	offset:32;	size:8;	signed:0;
	field:unsigned long rdx;	offset:40;	size:8;	signed:0;
	field:bool found;	offset:48;	size:1;	signed:0;

print fmt: "func %x idx %x rax %lx", REC->function, REC->index, REC->rax
)";
constexpr std::string_view kWakeupFormat = R"(name: kvm_vcpu_wakeup
ID: 1300
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:__u64 ns;	offset:8;	size:8;	signed:0;
	field:bool waited;	offset:16;	size:1;	signed:0;
	field:char name[16];	offset:20;	size:16;	signed:0;
)";
constexpr std::uint32_t kExitId = 1301;

HostFormats formats() {
  return {*parse_cpuid_format(kCpuidFormat), kExitId, *parse_wakeup_format(kWakeupFormat)};
}

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  bytes.resize(std::max(bytes.size(), at + sizeof value));
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<std::byte> cpuid_record(std::uint32_t leaf, std::uint64_t eax) {
  std::vector<std::byte> record(52);
  put<std::uint16_t>(record, 0, 1234);
  put<std::uint32_t>(record, 8, leaf);
  put<std::uint32_t>(record, 12, 3);
  put<std::uint64_t>(record, 16, eax);
  put<std::uint64_t>(record, 40, 4);
  return record;
}

std::vector<std::byte> halt_record() {
  std::vector<std::byte> record(40);
  put<std::uint16_t>(record, 0, kExitId);
  return record;
}

std::vector<std::byte> wakeup_record(std::uint64_t ns) {
  std::vector<std::byte> record(24);
  put<std::uint16_t>(record, 0, 1300);
  put<std::uint64_t>(record, 8, ns);
  return record;
}

TEST(TraceFormat, FieldsAreFoundByTheirWholeName) {
  const auto index = trace_field(kCpuidFormat, "index");
  ASSERT_TRUE(index);
  EXPECT_EQ(index->offset, 12u);
  EXPECT_EQ(index->size, 4u);
  EXPECT_EQ(*trace_id(kCpuidFormat), 1234u);
  EXPECT_EQ(trace_field(kCpuidFormat, "ax").error().code, ErrorCode::NotFound);
  EXPECT_EQ(trace_field(kWakeupFormat, "name[16]").error().code, ErrorCode::Invalid);
}

TEST(TraceFormat, AnUnknownLayoutIsRefused) {
  EXPECT_FALSE(trace_id(""));
  EXPECT_FALSE(trace_id("ID: none"));
  EXPECT_FALSE(trace_field("\tfield:int x;\toffset:;\tsize:4;", "x"));
  EXPECT_FALSE(trace_field("\tfield:int x", "x"));
  EXPECT_EQ(parse_cpuid_format(kWakeupFormat).error().message,
            "a tracepoint has no field 'function'");
}

TEST(TraceFormat, ARecordThatIsTooShortHasNoField) {
  const std::vector<std::byte> record(10);

  EXPECT_EQ((TraceField{8, 2}).read(record), 0u);
  EXPECT_FALSE((TraceField{8, 4}).read(record));
  EXPECT_FALSE((TraceField{UINT32_MAX, 8}).read(record));
}

/// A ring that the test writes as the kernel would.
class Ring {
 public:
  explicit Ring(std::size_t size, std::uint64_t start = 0) : bytes_(size) {
    page_.data_head = page_.data_tail = start;
  }
  PerfRing reader() { return {page_, bytes_}; }
  void sample(std::uint64_t time, const std::vector<std::byte>& raw) {
    std::vector<std::byte> record;
    put(record, 8, time);
    put(record, 16, static_cast<std::uint32_t>(raw.size()));
    record.insert(record.end(), raw.begin(), raw.end());
    append(PERF_RECORD_SAMPLE, record);
  }
  void lost(std::uint64_t count) {
    std::vector<std::byte> record;
    put<std::uint64_t>(record, 8, 77);
    put(record, 16, count);
    append(PERF_RECORD_LOST, record);
  }
  void append(std::uint32_t type, std::vector<std::byte> record, std::uint16_t size = 0) {
    record.resize((record.size() + 7) / 8 * 8);
    const perf_event_header header{type, 0,
                                   size != 0 ? size : static_cast<std::uint16_t>(record.size())};
    put(record, 0, header);
    for (const std::byte byte : record) bytes_[page_.data_head++ % bytes_.size()] = byte;
  }
  bool drained() const { return page_.data_head == page_.data_tail; }

 private:
  perf_event_mmap_page page_{};
  std::vector<std::byte> bytes_;
};

TEST(PerfRing, SamplesComeInTheirOrderAlsoAroundTheEnd) {
  Ring ring(256, UINT64_MAX - 19);  // the positions wrap, too
  PerfRing reader = ring.reader();

  for (std::uint64_t round = 0; round < 100; ++round) {
    ring.sample(round, cpuid_record(static_cast<std::uint32_t>(round), 0));
    ring.sample(round + 1000, wakeup_record(round));
    const auto first = reader.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->time, round);
    EXPECT_EQ((TraceField{8, 4}).read(first->raw), round);
    const auto second = reader.next();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->time, round + 1000);
    EXPECT_EQ((TraceField{8, 8}).read(second->raw), round);
    EXPECT_FALSE(reader.next());
  }
  EXPECT_EQ(reader.lost(), 0u);
}

TEST(PerfRing, LostRecordsAreCountedAndOthersPassedOver) {
  Ring ring(1024);
  PerfRing reader = ring.reader();
  ring.lost(5);
  ring.append(PERF_RECORD_THROTTLE, std::vector<std::byte>(32));
  ring.sample(9, wakeup_record(1));
  ring.lost(2);

  ASSERT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());

  EXPECT_EQ(reader.lost(), 7u);
  EXPECT_TRUE(ring.drained());
}

TEST(PerfRing, ARecordThatIsNotWholeEndsTheReadingNotUs) {
  for (const std::uint16_t size : {0, 7, 200}) {
    Ring ring(1024);
    PerfRing reader = ring.reader();
    ring.append(PERF_RECORD_SAMPLE, std::vector<std::byte>(32), size == 0 ? 1 : size);

    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(ring.drained());
  }
}

TEST(PerfRing, ALongSampleIsCutAndTheNextFound) {
  Ring ring(2048);
  PerfRing reader = ring.reader();
  ring.sample(1, std::vector<std::byte>(1000));
  ring.sample(2, wakeup_record(3));

  const auto first = reader.next();
  ASSERT_TRUE(first);
  EXPECT_LT(first->raw.size(), 1000u);
  const auto second = reader.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->time, 2u);
}

class Decoder : public testing::Test {
 protected:
  void take(std::uint64_t time, const std::vector<std::byte>& raw) {
    decoder_.take(time, raw, [this](const HostEvent& event) { told_.push_back(event); });
  }
  void finish() {
    decoder_.finish([this](const HostEvent& event) { told_.push_back(event); });
  }

  HostEventDecoder decoder_{formats()};
  std::vector<HostEvent> told_;
};

TEST_F(Decoder, ACpuidHasItsLeafAndFourRegistersOf32Bits) {
  take(50, cpuid_record(0x4000'0000, 0xffff'ffff'8000'0001));

  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].time, 50u);
  EXPECT_EQ(told_[0].event.kind, Kind::Cpuid);
  EXPECT_EQ(told_[0].event.values,
            (std::array<std::uint64_t, 6>{0x4000'0000, 3, 0x8000'0001, 0, 0, 4}));
}

TEST_F(Decoder, AHaltInPiecesIsToldOnceWhenItIsOver) {
  take(10, halt_record());
  take(40, wakeup_record(30));  // a kick
  EXPECT_TRUE(decoder_.halting());
  EXPECT_TRUE(decoder_.take_wakeup());
  EXPECT_FALSE(decoder_.take_wakeup());
  take(90, wakeup_record(45));
  EXPECT_TRUE(told_.empty());
  finish();
  finish();

  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].time, 90u);
  EXPECT_EQ(told_[0].event.kind, Kind::Hlt);
  EXPECT_EQ(told_[0].event.values[0], 75u);
  EXPECT_FALSE(decoder_.halting());
}

TEST_F(Decoder, AHaltThatDidNotWaitIsOverWhenTheNextBegins) {
  take(10, halt_record());
  take(20, halt_record());
  take(25, wakeup_record(4));
  finish();

  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0].time, 10u);
  EXPECT_EQ(told_[0].event.values[0], 0u);
  EXPECT_EQ(told_[1].event.values[0], 4u);
}

TEST_F(Decoder, WakeupsWithoutAHaltAndForeignRecordsSayNothing) {
  take(10, wakeup_record(30));  // a vCPU that waits for INIT
  take(11, {});
  take(12, std::vector<std::byte>(64));
  finish();

  EXPECT_TRUE(told_.empty());
}

TEST(TscOfTime, IsLinearBetweenTheBeginningAndNow) {
  const TscOfTime clock(TscOfTime::Moment{1'000'000, 500});
  const TscOfTime::Moment now{4'000'000, 1500};

  EXPECT_EQ(clock.at(1500, now), 4'000'000u);
  EXPECT_EQ(clock.at(1000, now), 2'500'000u);
  EXPECT_EQ(clock.at(500, now), 1'000'000u);
  EXPECT_EQ(clock.at(0, now), 1'000'000u) << "not before the beginning";
  EXPECT_EQ(clock.at(9999, now), 4'000'000u) << "not after now";
  EXPECT_EQ(clock.at(600, {1'000'000, 500}), 1'000'000u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
