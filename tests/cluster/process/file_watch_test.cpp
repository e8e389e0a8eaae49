#include "cluster/process/file_watch.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using Event = FileWatch::Event;
namespace fs = std::filesystem;

// An event that comes is waited for as long as it takes; that none comes is believed after a while.
constexpr auto kLong = 20s;
constexpr auto kWhile = 200ms;

class FileWatchTest : public ::testing::Test {
 protected:
  void SetUp() override { put(file_, "one"); }

  static void put(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }

  /// The looking alone would come too late for every test but its own.
  FileWatch watch(std::chrono::milliseconds look = 1h, std::chrono::milliseconds settle = 20ms) const {
    return FileWatch(file_, {.settle = settle, .look = look});
  }

  const TemporaryFolder scratch_;
  const fs::path& folder_ = scratch_.path();
  fs::path file_ = folder_ / "site.yaml";
};

TEST_F(FileWatchTest, SeesAFileWrittenInPlace) {
  FileWatch watched = watch();
  put(file_, "two");
  EXPECT_EQ(watched.wait(kLong), Event::changed);
  EXPECT_EQ(watched.wait(kWhile), Event::timeout) << "once";
}

TEST_F(FileWatchTest, SeesAFileReplacedByARename) {
  FileWatch watched = watch();
  for (const char* text : {"two", "three"}) {
    put(folder_ / ".site.yaml.swp", text);
    fs::rename(folder_ / ".site.yaml.swp", file_);
    EXPECT_EQ(watched.wait(kLong), Event::changed) << text;
  }
}

TEST_F(FileWatchTest, SeesTheSwapOfAMountedConfigMap) {
  // The file is a link through a link to a folder, which is replaced at once.
  fs::remove(file_);
  for (const char* version : {"..1", "..2", "..3"}) {
    fs::create_directory(folder_ / version);
    put(folder_ / version / "site.yaml", version);
  }
  fs::create_directory_symlink("..1", folder_ / "..data");
  fs::create_symlink("..data/site.yaml", file_);
  FileWatch watched = watch();
  for (const char* version : {"..2", "..3"}) {
    fs::create_directory_symlink(version, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
    EXPECT_EQ(watched.wait(kLong), Event::changed) << version;
  }
  put(folder_ / "..3" / "site.yaml", "in place");
  EXPECT_EQ(watched.wait(kLong), Event::changed) << "the folder behind the new link is watched, too";
}

TEST_F(FileWatchTest, SeesALinkedFileInAnotherFolder) {
  fs::create_directory(folder_ / "elsewhere");
  fs::remove(file_);
  put(folder_ / "elsewhere" / "real.yaml", "one");
  fs::create_symlink("elsewhere/real.yaml", file_);
  FileWatch watched = watch();
  put(folder_ / "elsewhere" / "real.yaml", "two");
  EXPECT_EQ(watched.wait(kLong), Event::changed);
}

TEST_F(FileWatchTest, SaysNothingOfWhatIsNoChange) {
  FileWatch watched = watch();
  fs::last_write_time(file_, fs::file_time_type::clock::now() + 1h);
  put(file_, "one");
  put(folder_ / "other.yaml", "two");
  fs::permissions(file_, fs::perms::owner_read);
  EXPECT_EQ(watched.wait(kWhile), Event::timeout);
}

TEST_F(FileWatchTest, AFileThatIsGoneAndThenBackHasChangedTwice) {
  FileWatch watched = watch();
  fs::remove(file_);
  EXPECT_EQ(watched.wait(kLong), Event::changed);
  put(file_, "one");
  EXPECT_EQ(watched.wait(kLong), Event::changed);
}

TEST_F(FileWatchTest, WaitsUntilTheFileIsLeftAlone) {
  FileWatch watched = watch(1h, /*settle=*/1s);
  put(file_, "tw");
  EXPECT_EQ(watched.wait(100ms), Event::timeout) << "it may still be being written";
  put(file_, "two");
  EXPECT_EQ(watched.wait(kLong), Event::changed);
  EXPECT_EQ(watched.wait(1200ms), Event::timeout) << "one change, in two writes";
}

TEST_F(FileWatchTest, AReplacementThatIsTakenBackIsNoChange) {
  FileWatch watched = watch();
  put(folder_ / "new", "two");
  fs::rename(folder_ / "new", file_);
  put(folder_ / "new", "one");
  fs::rename(folder_ / "new", file_);
  EXPECT_EQ(watched.wait(kWhile), Event::timeout);
}

TEST_F(FileWatchTest, LooksByItselfWhereNobodyTells) {
  // A folder further up is exchanged: nothing happens in those that are watched.
  fs::create_directories(folder_ / "a" / "etc");
  fs::create_directories(folder_ / "b" / "etc");
  put(folder_ / "a" / "etc" / "site.yaml", "one");
  put(folder_ / "b" / "etc" / "site.yaml", "two");
  fs::create_directory_symlink("a", folder_ / "current");
  file_ = folder_ / "current" / "etc" / "site.yaml";
  FileWatch watched = watch(/*look=*/50ms);
  fs::create_directory_symlink("b", folder_ / "next");
  fs::rename(folder_ / "next", folder_ / "current");
  EXPECT_EQ(watched.wait(kLong), Event::changed);
}

TEST_F(FileWatchTest, CanBePokedAndClosedFromElsewhere) {
  FileWatch watched = watch();
  std::thread other([&] { watched.poke(); });
  EXPECT_EQ(watched.wait(kLong), Event::poked);
  other.join();
  put(file_, "two");
  watched.poke();
  EXPECT_EQ(watched.wait(kLong), Event::poked);
  EXPECT_EQ(watched.wait(kWhile), Event::timeout) << "who was poked reads the file as it is now";
  std::thread last([&] { watched.close(); });
  EXPECT_EQ(watched.wait(), Event::closed);
  last.join();
  EXPECT_EQ(watched.wait(), Event::closed) << "for ever";
}

TEST_F(FileWatchTest, LeavesAPipeToWhoReadsIt) {
  fs::remove(file_);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int pipe = ::open(file_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  ASSERT_GE(pipe, 0);
  ASSERT_EQ(::write(pipe, "one", 3), 3);
  FileWatch watched = watch();
  watched.poke();
  EXPECT_EQ(watched.wait(kLong), Event::poked);
  std::array<char, 8> text{};
  EXPECT_EQ(::read(pipe, text.data(), text.size()), 3);
  ::close(pipe);
}

TEST_F(FileWatchTest, TheFileNeedNotBeThereYet) {
  file_ = folder_ / "later.yaml";
  FileWatch watched = watch();
  put(file_, "here");
  EXPECT_EQ(watched.wait(kLong), Event::changed);
}

}  // namespace
}  // namespace vigil::cluster
