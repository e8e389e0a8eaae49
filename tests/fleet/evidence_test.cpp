// Stills and clips: their names, the folder, and parts on their way.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fleet/evidence/evidence_chunk.h"
#include "fleet/evidence/evidence_folder.h"
#include "fleet/evidence/fetch_desk.h"
#include "tests/actors/fakes.h"
#include "tests/temporary_folder.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using actors::testing::ManualClock;

const std::string kClip = "gate/2026-11-26/20261126T100012.480Z-person-0a1b.mp4";

TEST(EvidenceName, IsThreePlainNamesWithAnExtensionOfEvidence) {
  for (const char* good :
       {"gate/2026-11-26/20261126T100012.480Z-person-0a1b.mp4", "a/b/c.jpg", "_.gate/b_/c-d.mkv"})
    EXPECT_TRUE(is_evidence_name(good)) << good;
  for (const std::string& bad : {std::string(),
                                 std::string("/"),
                                 std::string("a.jpg"),
                                 std::string("a/b.jpg"),
                                 std::string("a/b/c/d.jpg"),
                                 std::string("../../etc/passwd.jpg"),
                                 std::string("a/../c.jpg"),
                                 std::string("a/./c.jpg"),
                                 std::string("/a/b/c.jpg"),
                                 std::string("a//c.jpg"),
                                 std::string("a/b/c.jpg/"),
                                 std::string("a/b/.jpg"),
                                 std::string("a/b/.ages"),
                                 std::string(".a/b/c.jpg"),
                                 std::string("a/b/c"),
                                 std::string("a/b/c.JPG"),
                                 std::string("a/b/c.jpg.txt"),
                                 std::string("a/b/%2e%2e.jpg"),
                                 std::string("a/b\\c/d.jpg"),
                                 std::string("a/b/c d.jpg"),
                                 std::string("a/b/c\n.jpg"),
                                 std::string("a/b\0/c.jpg", 9),
                                 std::string("a/b/") + std::string(300, 'c') + ".jpg",
                                 std::string("a/b/\xc3\xa9.jpg")})
    EXPECT_FALSE(is_evidence_name(bad)) << bad;
  EXPECT_EQ(content_type_of("a/b/c.jpg"), "image/jpeg");
  EXPECT_EQ(content_type_of(kClip), "video/mp4");
}

class EvidenceFolderTest : public ::testing::Test {
 protected:
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_.path() / file).parent_path());
    std::ofstream(root_.path() / file) << text;
  }

  TemporaryFolder root_;
  EvidenceFolder folder_{root_.path() / "own"};
};

TEST_F(EvidenceFolderTest, ReadsWhatIsThereFromAnywhereOn) {
  write("own/" + kClip, "0123456789");
  EXPECT_EQ(folder_.size(kClip), 10U);
  EXPECT_EQ(folder_.read(kClip, 0, 4), "0123");
  EXPECT_EQ(folder_.read(kClip, 8, 4), "89");
  EXPECT_EQ(folder_.read(kClip, 10, 4), "");
  EXPECT_EQ(folder_.read(kClip, 1'000'000, 4), "");
  EXPECT_EQ(folder_.size("gate/2026-11-26/other.mp4"), std::nullopt);
  EXPECT_EQ(EvidenceFolder().size(kClip), std::nullopt);
}

TEST_F(EvidenceFolderTest, NothingOutsideIsReached) {
  write("secret.jpg", "secret");
  write("other/day/secret.jpg", "secret");
  write("own/gate/day/real.jpg", "real");
  fs::create_symlink(root_.path() / "secret.jpg", root_.path() / "own/gate/day/file.jpg");
  fs::create_directory_symlink(root_.path() / "other", root_.path() / "own/linked");
  fs::create_directory_symlink(root_.path() / "other/day", root_.path() / "own/gate/linked");
  fs::create_directories(root_.path() / "own/gate/day/folder.jpg");
  ASSERT_EQ(::mkfifo((root_.path() / "own/gate/day/pipe.jpg").c_str(), 0600), 0);
  ASSERT_EQ(folder_.size("gate/day/real.jpg"), 4U);
  for (const char* name :
       {"gate/day/file.jpg", "linked/day/secret.jpg", "gate/linked/secret.jpg", "gate/day/folder.jpg",
        "gate/day/pipe.jpg", "gate/../secret.jpg", "../other/day/secret.jpg"}) {
    EXPECT_EQ(folder_.size(name), std::nullopt) << name;
    EXPECT_EQ(folder_.read(name, 0, 10), std::nullopt) << name;
  }
}

TEST(EvidenceChunk, IsReadBackAndNothingElseIsTakenForOne) {
  const EvidenceChunk chunk{7, 1 << 20, 3 << 20, cluster::Bytes(std::string("bytes"))};
  const cluster::BulkMessage message = write(chunk);
  const auto read = read_chunk(message);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ticket, 7U);
  EXPECT_EQ(read->offset, 1U << 20);
  EXPECT_EQ(read->size, 3U << 20);
  EXPECT_EQ(read->bytes.text(), "bytes");
  for (std::size_t length = 0; length < message.header.size(); ++length)
    EXPECT_FALSE(read_chunk({message.header.substr(0, length), message.parts}));
  EXPECT_FALSE(read_chunk({message.header + "x", message.parts}));
  EXPECT_FALSE(read_chunk({message.header, {}}));
  EXPECT_FALSE(is_chunk({"P", {}})) << "a link's patch";
}

class FetchDeskTest : public ::testing::Test {
 protected:
  EvidenceChunk chunk(std::uint64_t ticket, std::uint64_t offset, const std::string& bytes,
                      std::uint64_t size = 10) const {
    return {ticket, offset, size, cluster::Bytes(bytes)};
  }

  ManualClock clock_;
  FetchDesk desk_{{.bytes = 20, .chunk = 6, .patience = 5s}, clock_};
};

TEST_F(FetchDeskTest, AsksForOnePartAfterTheOther) {
  EXPECT_TRUE(desk_.may(20));
  EXPECT_FALSE(desk_.may(21));
  EXPECT_FALSE(desk_.may(0));
  const auto ticket = desk_.begin("c1", 10);
  auto step = desk_.take("c1", chunk(ticket, 0, "012345"));
  ASSERT_TRUE(step);
  EXPECT_EQ(step->next, 6U);
  step = desk_.take("c1", chunk(ticket, 6, "6789"));
  ASSERT_TRUE(step && step->done);
  EXPECT_EQ(*step->done, "0123456789");
  EXPECT_EQ(desk_.size(), 0U);
  EXPECT_FALSE(desk_.take("c1", chunk(ticket, 6, "6789"))) << "nobody waits for it any more";
}

TEST_F(FetchDeskTest, WhatDoesNotFitEndsIt) {
  for (const EvidenceChunk& bad :
       {chunk(0, 1, "0123"), chunk(0, 0, "01234567"), chunk(0, 0, ""), chunk(0, 0, "0123", 11)}) {
    EvidenceChunk sent = bad;
    sent.ticket = desk_.begin("c1", 10);
    const auto step = desk_.take("c1", sent);
    ASSERT_TRUE(step);
    EXPECT_NE(step->failure, "");
    EXPECT_EQ(desk_.size(), 0U);
  }
  const auto ticket = desk_.begin("c1", 4);
  EXPECT_NE(desk_.take("c1", chunk(ticket, 0, "01234", 4))->failure, "") << "more than there is";
}

TEST_F(FetchDeskTest, OthersPartsAreNotTaken) {
  const auto ticket = desk_.begin("c1", 10);
  EXPECT_FALSE(desk_.take("c2", chunk(ticket, 0, "012345")));
  EXPECT_FALSE(desk_.take("c1", chunk(ticket + 1, 0, "012345")));
  EXPECT_TRUE(desk_.take("c1", chunk(ticket, 0, "012345")));
}

TEST_F(FetchDeskTest, APartThatDoesNotComeEndsIt) {
  const auto slow = desk_.begin("c1", 10);
  clock_.advance(3s);
  const auto other = desk_.begin("c1", 10);
  clock_.advance(2s);
  const auto overdue = desk_.take_overdue();
  ASSERT_THAT(overdue, ::testing::SizeIs(1));
  EXPECT_EQ(overdue[0].ticket, slow);
  EXPECT_EQ(overdue[0].failure, "did not send it in time");
  desk_.take("c1", chunk(other, 0, "012345"));
  clock_.advance(4s);
  EXPECT_THAT(desk_.take_overdue(), ::testing::IsEmpty()) << "it goes on";
}

TEST_F(FetchDeskTest, PartsThatAllComeTooSlowlyEndItTogether) {
  FetchDesk desk({.bytes = 1000, .chunk = 6, .patience = 5s, .in_all = 120s}, clock_);
  const auto ticket = desk.begin("c1", 1000);
  const auto begun = clock_.now();
  std::vector<FetchDesk::Overdue> overdue;
  std::uint64_t come = 0;
  while (overdue.empty() && come < 600) {
    clock_.advance(4900ms);
    if (const auto step = desk.take("c1", chunk(ticket, come, "012345", 1000)); step && step->next) come += 6;
    overdue = desk.take_overdue();
  }
  ASSERT_THAT(overdue, ::testing::SizeIs(1));
  EXPECT_EQ(overdue[0].ticket, ticket);
  EXPECT_EQ(overdue[0].failure, "sends it too slowly: 150 of 1000 bytes came within 2m");
  EXPECT_EQ(desk.size(), 0U);
  EXPECT_GE(clock_.now() - begun, 120s);
  EXPECT_LE(clock_.now() - begun, 125s);
}

TEST(FetchDesk, TheLargestHasTimeAtTenMegabitsASecond) {
  const FetchDesk::Limits limits;
  EXPECT_GT(base::seconds(limits.in_all), static_cast<double>(limits.bytes) * 8 / 10e6);
}

TEST_F(FetchDeskTest, WhatIsDroppedIsNotWaitedFor) {
  const auto ticket = desk_.begin("c1", 10);
  desk_.drop(ticket);
  EXPECT_EQ(desk_.size(), 0U);
  EXPECT_FALSE(desk_.take("c1", chunk(ticket, 0, "012345")));
}

}  // namespace
}  // namespace vigil::fleet
