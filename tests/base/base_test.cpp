#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/fnv1a.h"
#include "base/json_line.h"
#include "base/one_line.h"
#include "base/sealed_text.h"

namespace vigil::base {
namespace {

// Of draft-eastlake-fnv-17, appendix C.
TEST(Fnv1a, HasTheValuesOfItsDescription) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

TEST(JsonLine, IsJsonWhateverTheTextsHold) {
  const std::string line = json_line({{"a", "b\xff\n"}, {"c", {1, nullptr}}});
  EXPECT_EQ(line, "{\"a\":\"b\xef\xbf\xbd\\n\",\"c\":[1,null]}");
  EXPECT_EQ(nlohmann::json::parse(line).at("c").at(0), 1);
}

TEST(OneLine, LeavesWhatPeopleWriteAsItIs) {
  for (const char* text : {"", "camera gate: down", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x97",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf", "\xc2\xa0"})
    EXPECT_EQ(one_line(text), text);
}

TEST(OneLine, HasNoControlCharacterAndNoByteThatIsNoCharacter) {
  EXPECT_EQ(one_line("a\r\nb\tc"), "a??b?c");
  EXPECT_EQ(one_line("\x1b[31mRED\x1b]0;title\x07"), "?[31mRED?]0;title?");
  EXPECT_EQ(one_line(std::string("a\0b\x7f", 4)), "a?b?");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "31m"),
            "?31m")
      << "a CSI of one character";
  EXPECT_EQ(one_line("\xff\xfe"), "??");
  EXPECT_EQ(one_line("\xc3"), "?") << "cut off";
  EXPECT_EQ(one_line("\xe2\x82"), "??");
  EXPECT_EQ(one_line("\xc0\xaf"), "??") << "longer than it has to be";
  EXPECT_EQ(one_line("\xed\xa0\x80"), "???") << "half of a pair";
  EXPECT_EQ(one_line("\xf4\x90\x80\x80"), "????") << "beyond the last one";
  EXPECT_EQ(one_line("\xc3\n"), "??");
}

TEST(SealedText, NoByteOfItCanChangeUnseen) {
  const std::string text = sealed("a 1\n# checksum of what\nb 2\n");
  EXPECT_EQ(unsealed(text), "a 1\n# checksum of what\nb 2\n");
  EXPECT_EQ(unsealed(sealed("")), "");
  for (const char* other : {"", "a 1\n", "# checksum \n", "# checksum 0000000000000000\n"})
    EXPECT_FALSE(unsealed(other));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(unsealed(flipped)) << bit;
  }
  EXPECT_FALSE(unsealed(text + ' '));
  EXPECT_FALSE(unsealed(text.substr(0, text.size() - 1)));
}

}  // namespace
}  // namespace vigil::base
