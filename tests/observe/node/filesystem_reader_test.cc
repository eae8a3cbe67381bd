// SPDX-License-Identifier: Apache-2.0
// A filesystem that hangs delays no caller but the first, and its signals become unknown.
#include "observe/node/filesystem_reader.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using namespace std::chrono_literals;

std::atomic<Instant::rep> stepped{0};
Instant stepped_clock() {
  return Instant(Instant::duration(stepped.load()));
}
void step(Duration by) {
  stepped += by.count();
}

// What the thread uses, which may outlive the test's reader.
struct Disk {
  std::atomic<bool> hangs{false};
  std::promise<void> promise;
  std::shared_future<void> returns = promise.get_future().share();
  std::atomic<int> available{100};
  std::atomic<int> reads{0};
};

FilesystemReader::Read read_of(const std::shared_ptr<Disk>& disk) {
  return [disk](Observations& all) {
    ++disk->reads;
    if (disk->hangs) disk->returns.wait();
    of(all, Signal::kNodeFsAvailable) = {disk->available.load(), 1000, stepped_clock()};
  };
}

struct FilesystemReaderTest : testing::Test {
  FilesystemReaderTest() { stepped = Instant::duration(1h).count(); }

  bool nodefs_becomes_known(FilesystemReader& reader) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    do {
      std::this_thread::sleep_for(1ms);
      reader.take(seen);
    } while (!of(seen, Signal::kNodeFsAvailable) && std::chrono::steady_clock::now() < deadline);
    return of(seen, Signal::kNodeFsAvailable).has_value();
  }

  const std::shared_ptr<Disk> disk = std::make_shared<Disk>();
  Observations seen;
};

TEST_F(FilesystemReaderTest, AWorkingFilesystemIsRead) {
  FilesystemReader reader(read_of(disk), &stepped_clock);
  ASSERT_TRUE(reader.take(seen));
  ASSERT_TRUE(of(seen, Signal::kNodeFsAvailable));
  EXPECT_EQ(of(seen, Signal::kNodeFsAvailable)->available, 100);
  EXPECT_FALSE(of(seen, Signal::kImageFsAvailable)) << "not read";
}

TEST_F(FilesystemReaderTest, AFilesystemWithAQuarterLeftIsReadLessOften) {
  const auto roomy = std::make_shared<Disk>();
  roomy->available = 250;
  FilesystemReader one(read_of(disk), &stepped_clock, 10ms),
      other(read_of(roomy), &stepped_clock, 10ms);
  while (disk->reads < 100)
    std::this_thread::sleep_for(1ms);
  EXPECT_LT(roomy->reads, 75) << "half as many";
}

TEST_F(FilesystemReaderTest, AHangingFilesystemBlocksNothingAndBecomesUnknown) {
  FilesystemReader reader(read_of(disk), &stepped_clock, 1ms);
  ASSERT_TRUE(reader.take(seen));
  disk->hangs = true;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 9; ++i) {
    step(1s);
    EXPECT_TRUE(reader.take(seen)) << "the last reading is valid";
    EXPECT_TRUE(of(seen, Signal::kNodeFsAvailable));
  }
  step(2s);  // one that had begun before may have been completed after the first step
  EXPECT_FALSE(reader.take(seen)) << "too old";
  EXPECT_FALSE(of(seen, Signal::kNodeFsAvailable));
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(reader.take(seen));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s) << "it waits once";

  // It works again.
  disk->hangs = false;
  disk->available = 50;
  disk->promise.set_value();
  ASSERT_TRUE(nodefs_becomes_known(reader));
  EXPECT_EQ(of(seen, Signal::kNodeFsAvailable)->available, 50);
}

// The clock goes on while a machine is suspended; what the thread waits with does not.
TEST_F(FilesystemReaderTest, AfterAMachineSleptItIsReadAtOnce) {
  FilesystemReader reader(read_of(disk), &stepped_clock, 1h);
  ASSERT_TRUE(reader.take(seen));
  step(1min);
  disk->available = 50;
  of(seen, Signal::kNodeFsAvailable).reset();
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(nodefs_becomes_known(reader));
  EXPECT_EQ(of(seen, Signal::kNodeFsAvailable)->available, 50);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

TEST_F(FilesystemReaderTest, AHangingFilesystemDoesNotHangTheEnd) {
  disk->hangs = true;
  const auto began = std::chrono::steady_clock::now();
  {
    FilesystemReader reader(read_of(disk), &stepped_clock);
    EXPECT_FALSE(reader.take(seen));
    EXPECT_FALSE(of(seen, Signal::kNodeFsAvailable));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  disk->promise.set_value();
}

}  // namespace
}  // namespace headroom::observe
