#include "base/durable.h"

#include <cerrno>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/temporary_folder.h"

namespace vigil::base {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string reason_of(const std::function<void()>& act, int code) {
  try {
    act();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(Durable, AFolderIsMadeWithThoseAboveIt) {
  const TemporaryFolder scratch;
  make_folders(scratch.path() / "a/./b//c/");
  EXPECT_TRUE(std::filesystem::is_directory(scratch.path() / "a/b/c"));
  make_folders(scratch.path() / "a/b/c");
  // The same folder as everybody else finds there.
  std::filesystem::create_directory_symlink("a/b/c", scratch.path() / "link");
  make_folders(scratch.path() / "link/../d");
  EXPECT_TRUE(std::filesystem::is_directory(scratch.path() / "a/b/d"));
}

TEST(Durable, WhatStandsInAFoldersPlaceIsNamed) {
  const TemporaryFolder scratch;
  std::ofstream(scratch / "file") << "x";
  const std::string reason = reason_of([&] { make_folders(scratch.path() / "file/below"); }, EEXIST);
  EXPECT_THAT(reason, HasSubstr("file: cannot make the folder: "));
  EXPECT_EQ(text_of(scratch / "file"), "x");
}

TEST(Durable, AFirstFileReplacesNone) {
  const TemporaryFolder scratch;
  write_first(scratch / "key", "secret", 0600);
  EXPECT_EQ(text_of(scratch / "key"), "secret");
  struct stat status {};
  ASSERT_EQ(::stat((scratch / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_THAT(reason_of([&] { write_first(scratch / "key", "other", 0600); }, EEXIST),
              EndsWith("key: cannot open: File exists"));
  EXPECT_EQ(text_of(scratch / "key"), "secret");
}

TEST(Durable, ANewFileAppearsWholeOrNotAtAll) {
  const TemporaryFolder scratch;
  std::ofstream(scratch / "a") << "before";
  {
    NewFile file(scratch / "a");
    file.write("half of it");
    EXPECT_EQ(text_of(scratch / "a"), "before");
    EXPECT_EQ(text_of(scratch / ".part-a"), "half of it");
  }
  EXPECT_EQ(text_of(scratch / "a"), "before") << "never committed";
  EXPECT_FALSE(std::filesystem::exists(scratch / ".part-a"));
  const std::string large(3 << 20, 'x');
  NewFile file(scratch / "a");
  file.write("what a crash left behind is overwritten");
  file.write(large);
  file.commit();
  EXPECT_EQ(text_of(scratch / "a"), large);
  EXPECT_FALSE(std::filesystem::exists(scratch / ".part-a"));
}

TEST(Durable, ADiskThatIsFullIsToldWithTheFilesName) {
  const TemporaryFolder scratch;
  ASSERT_EQ(::symlink("/dev/full", (scratch / ".part-a").c_str()), 0);
  NewFile file(scratch / "a");
  EXPECT_THAT(reason_of([&] { file.write("x"); }, ENOSPC),
              EndsWith(".part-a: cannot write: No space left on device"));
}

TEST(Durable, WhatIsNotThereCannotBeSynced) {
  const TemporaryFolder scratch;
  EXPECT_THAT(reason_of([&] { sync(scratch.path() / "none"); }, ENOENT), HasSubstr("none: cannot open: "));
  sync("");
  sync(scratch.path());
}

}  // namespace
}  // namespace vigil::base
