#include "engine/model/files/fingerprint.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace vigil::model {
namespace {

class Fingerprint : public ::testing::Test {
 protected:
  Fingerprint() {
    write("a/config.json", "{}");
    write("a/tokenizer.json", "words");
    write("a/model-1.safetensors", std::string(1000, 'x'));
    write("a/model-2.safetensors", std::string(1000, 'y'));
  }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string of(const std::string& name) const { return fingerprint(folder_ / name); }

  const TemporaryFolder folder_;
};

TEST_F(Fingerprint, IsThatOfTheContentWhereverItLies) {
  EXPECT_THAT(of("a"), ::testing::MatchesRegex("[0-9a-f]{16}"));
  std::filesystem::copy(folder_ / "a", folder_ / "b");
  EXPECT_EQ(of("b"), of("a"));
  write("b/README.md", "of no concern");
  EXPECT_EQ(of("b"), of("a"));
}

TEST_F(Fingerprint, DiffersWithEveryByteThatTheModelIsMadeOf) {
  const std::string before = of("a");
  for (const char* name : {"a/config.json", "a/tokenizer.json", "a/model-2.safetensors"}) {
    std::string text((std::istreambuf_iterator<char>(*std::make_unique<std::ifstream>(folder_ / name))), {});
    text.back() ^= 1;
    write(name, text);
    EXPECT_NE(of("a"), before) << name;
    text.back() ^= 1;
    write(name, text);
    EXPECT_EQ(of("a"), before);
  }
  write("a/preprocessor_config.json", "{}");
  EXPECT_NE(of("a"), before);
}

TEST_F(Fingerprint, LooksAtBothEndsOfALargeFileAndBetween) {
  const std::filesystem::path weights = folder_ / "a/model-1.safetensors";
  std::filesystem::resize_file(weights, 100 << 20);
  const std::string before = of("a");
  for (const std::streamoff place : {0, (100 << 20) - 1, 10 << 10}) {
    std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(place);
    const char was = place < 1000 ? 'x' : '\0';
    file.put('!');
    file.flush();
    EXPECT_NE(of("a"), before) << place;
    file.seekp(place);
    file.put(was);
    file.flush();
    EXPECT_EQ(of("a"), before);
  }
  std::filesystem::resize_file(weights, (100 << 20) + 1);
  EXPECT_NE(of("a"), before);
}

}  // namespace
}  // namespace vigil::model
