#include "engine/model/text/tokenizer.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/files/json_file.h"
#include "engine/model/text/utf8.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::golden;
using ::testing::HasSubstr;

Json base_json() {
  return read_json_file(golden("tokenizer/tokenizer.json"));
}

const Tokenizer& published() {
  static const Tokenizer tokenizer = Tokenizer::open(golden("tokenizer"));
  return tokenizer;
}

std::string error_with(const Json& patch) {
  Json json = base_json();
  json.merge_patch(patch);
  return error_of([&] { Tokenizer::parse(json.dump(), "tokenizer.json"); });
}

/// Every text of tests/golden/tokenizer/ids.json, for every variant of the file.
TEST(Tokenizer, AgreesWithTransformers) {
  const Json groups = read_json_file(golden("tokenizer/ids.json"));
  ASSERT_EQ(groups.size(), 6U);
  std::size_t compared = 0;
  for (const Json& group : groups) {
    Json json = base_json();
    json.merge_patch(group["patch"]);
    const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "tokenizer.json");
    for (const Json& item : group["cases"]) {
      SCOPED_TRACE(item.dump());
      const auto ids = item["ids"].get<std::vector<std::int32_t>>();
      if (item["text"].is_string()) {
        EXPECT_EQ(tokenizer.encode(item["text"].get<std::string>()), ids);
      }
      EXPECT_EQ(tokenizer.decode(ids, false), item["decoded"].get<std::string>());
      EXPECT_EQ(tokenizer.decode(ids, true), item["skipped"].get<std::string>());

      StreamDecoder stream(tokenizer, true);
      std::string streamed;
      for (const std::int32_t id : ids) {
        const std::string piece = stream.push(id);
        EXPECT_EQ(incomplete_utf8_tail(piece), 0U);
        streamed += piece;
      }
      EXPECT_EQ(streamed + stream.finish(), item["skipped"].get<std::string>());
      ++compared;
    }
  }
  EXPECT_GT(compared, 500U);
}

TEST(Tokenizer, IllFormedTextCountsAsReplacementCharacters) {
  const std::string replacement = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\xFFz", "a" + replacement + "z"},
      {"\xE4\xBA", replacement},                // cut within a character
      {"\xE4\xBAz", replacement + "z"},         // one mark for the part that was well-formed
      {"\xC0\x80", replacement + replacement},  // overlong
      {"\xED\xA0\x80", replacement + replacement + replacement},                    // a surrogate
      {"\xF4\x90\x80\x80", replacement + replacement + replacement + replacement},  // beyond U+10FFFF
      {"\x80 a", replacement + " a"},
  };
  for (const auto& [broken, clean] : cases) EXPECT_EQ(published().encode(broken), published().encode(clean));
}

TEST(Tokenizer, LongWordsTakeNoQuadraticTime) {
  // A quadratic search over 2^19 symbols would take minutes.
  for (const std::string& unit :
       {std::string("a"), std::string("ab"), std::string(" "), std::string("\n \n")}) {
    std::string text;
    while (text.size() < (std::size_t{1} << 19U)) text += unit;
    EXPECT_EQ(published().decode(published().encode(text), false), text);
  }
}

TEST(Tokenizer, IsUsableFromManyThreads) {
  const std::string text = "Is there a person in the room? 有一个人吗 \n\n <|im_end|>";
  const auto expected = published().encode(text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) wrong[t] += published().encode(text) == expected ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST(Tokenizer, FindsTokensAndTheirKind) {
  const Tokenizer& tokenizer = published();
  const std::int32_t end = tokenizer.find("<|im_end|>");
  EXPECT_EQ(tokenizer.encode("<|im_end|>"), std::vector<std::int32_t>{end});
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_TRUE(tokenizer.is_added("<|im_end|>"));
  EXPECT_FALSE(tokenizer.is_special(tokenizer.find("<tool_call>")));
  EXPECT_FALSE(tokenizer.is_added("a"));
  EXPECT_EQ(tokenizer.find("no such token"), -1);
  EXPECT_EQ(tokenizer.bytes(-1), "");
  EXPECT_EQ(tokenizer.bytes(tokenizer.id_limit()), "");
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{-5, tokenizer.id_limit(), end}, true), "");
}

TEST(Tokenizer, MustFitTheModel) {
  const Tokenizer& tokenizer = published();
  EXPECT_NO_THROW(tokenizer.require_ids_below(tokenizer.id_limit()));
  EXPECT_THAT(error_of([&] { tokenizer.require_ids_below(5000); }),
              testing::golden("tokenizer/tokenizer.json").string() +
                  ": the token '<|file_sep|>' has the id 5021, the model's vocab_size is 5000");
  const std::int32_t pad = tokenizer.find("<|video_pad|>");
  EXPECT_NO_THROW(tokenizer.require_added("<|video_pad|>", pad));
  EXPECT_THAT(error_of([&] { tokenizer.require_added("<|video_pad|>", 151656); }),
              HasSubstr("'<|video_pad|>' has the id 5013, the model's configuration says 151656"));
  EXPECT_THAT(error_of([&] { tokenizer.require_added("<|audio|>"); }), HasSubstr("'<|audio|>' is missing"));
  EXPECT_THAT(error_of([&] { tokenizer.require_added("a"); }), HasSubstr("'a' is missing"));
}

TEST(Tokenizer, RefusesWhatItWouldDoDifferently) {
  EXPECT_THAT(error_with({{"model", {{"type", "Unigram"}}}}),
              "tokenizer.json: model.type: 'Unigram' is not supported, BPE is");
  EXPECT_THAT(error_with({{"model", {{"dropout", 0.1}}}}), HasSubstr("model.dropout"));
  EXPECT_THAT(error_with({{"model", {{"end_of_word_suffix", "</w>"}}}}),
              HasSubstr("model.end_of_word_suffix"));
  EXPECT_THAT(error_with({{"normalizer", {{"type", "NFKC"}}}}), HasSubstr("normalizer.type: 'NFKC'"));
  EXPECT_THAT(error_with({{"normalizer",
                           {{"type", "Sequence"}, {"normalizers", Json::array({{{"type", "Lowercase"}}})}}}}),
              HasSubstr("normalizer.normalizers"));
  EXPECT_THAT(error_with({{"post_processor", {{"type", "TemplateProcessing"}}}}),
              HasSubstr("post_processor: 'TemplateProcessing'"));
  EXPECT_THAT(error_with({{"decoder", {{"type", "WordPiece"}}}}), HasSubstr("decoder"));
  EXPECT_THAT(error_with({{"decoder", nullptr}}), HasSubstr("decoder"));
  EXPECT_THAT(error_with({{"pre_tokenizer", nullptr}}), "tokenizer.json: pre_tokenizer: missing");
  const auto split = [](Json stage) {
    return Json{
        {"pre_tokenizer",
         {{"pretokenizers",
           Json::array({std::move(stage),
                        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}})}}}};
  };
  EXPECT_THAT(
      error_with(split({{"type", "Split"}, {"pattern", {{"Regex", "a(b"}}}, {"behavior", "Isolated"}})),
      HasSubstr("'a(b' does not compile: missing closing parenthesis"));
  EXPECT_THAT(error_with(split({{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Removed"}})),
              HasSubstr("'Removed' is not supported"));
  EXPECT_THAT(error_with(split({{"type", "Whitespace"}})), HasSubstr("'Whitespace' is not supported"));
  EXPECT_THAT(error_with({{"pre_tokenizer", {{"pretokenizers", Json::array()}}}}),
              HasSubstr("no ByteLevel stage"));
}

TEST(Tokenizer, NamesTheFaultOfABrokenVocabulary) {
  const Json json = base_json();
  EXPECT_THAT(error_with({{"model", {{"vocab", {{"Ġ", nullptr}}}}}}), HasSubstr("model.vocab.'Ġ': missing"));
  EXPECT_THAT(error_with({{"model", {{"vocab", {{"a", -1}}}}}}), HasSubstr("model.vocab.'a': the id '-1'"));
  EXPECT_THAT(error_with({{"model", {{"vocab", {{"a", "x"}}}}}}), HasSubstr("model.vocab.'a': the id"));
  EXPECT_THAT(error_with({{"model", {{"vocab", {{"zzz", 7}}}}}}),
              HasSubstr("the id 7 belongs to another token too"));
  EXPECT_THAT(error_with({{"model", {{"vocab", {{"a", 18446744073709551615U}}}}}}),
              HasSubstr("is not between"));
  EXPECT_THAT(error_with({{"model", {{"merges", {"a qqqq"}}}}}),
              HasSubstr("needs the token 'qqqq', which the vocabulary lacks"));
  EXPECT_THAT(error_with({{"model", {{"merges", {"# %"}}}}}), HasSubstr("needs the token '#%'"));
  EXPECT_THAT(error_with({{"model", {{"merges", {"ab"}}}}}), HasSubstr("'ab' is not two tokens"));
  EXPECT_THAT(error_with({{"model", {{"merges", {"a b c"}}}}}), HasSubstr("'a b c' is not two tokens"));
  EXPECT_THAT(error_with({{"model", {{"merges", Json::array({Json::array({"a"})})}}}}),
              HasSubstr("number 0 is not a pair"));
  EXPECT_THAT(error_with({{"model", {{"merges", nullptr}}}}), HasSubstr("model.merges: missing"));
  EXPECT_THAT(error_with({{"model", {{"vocab", nullptr}}}}), HasSubstr("model.vocab: missing"));
}

TEST(Tokenizer, NamesTheFaultOfAnAddedToken) {
  const auto with = [](Json token) {
    return error_with({{"added_tokens", Json::array({std::move(token)})}});
  };
  EXPECT_THAT(with({{"id", 3}, {"content", "<|x|>"}}),
              HasSubstr("'<|x|>' with the id 3 takes the id of another token"));
  EXPECT_THAT(with({{"id", 6000}, {"content", "a"}}), HasSubstr("'a' with the id 6000 has the id"));
  EXPECT_THAT(with({{"content", "a"}}), HasSubstr("added_tokens.id: missing"));
  EXPECT_THAT(with({{"id", 6000}}), HasSubstr("added_tokens.content: missing"));
  EXPECT_THAT(error_with({{"added_tokens", Json::array({{{"id", 6000}, {"content", "x1"}},
                                                        {{"id", 6001}, {"content", "x1"}}})}}),
              HasSubstr("occurs twice"));
}

TEST(Tokenizer, AcceptsBothFormsOfMerges) {
  Json json = base_json();
  ASSERT_TRUE(json["model"]["merges"][0].is_array());
  for (Json& merge : json["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const Tokenizer strings = Tokenizer::parse(json.dump(), "tokenizer.json");
  const std::string text = "The camera didn't see a person. 摄像机里有一个人吗？";
  EXPECT_EQ(strings.encode(text), published().encode(text));
}

TEST(Tokenizer, EndsAPatternThatExplodes) {
  const Json patch = {
      {"pre_tokenizer",
       {{"pretokenizers",
         Json::array(
             {{{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$|(a|aa)+$"}}}, {"behavior", "Isolated"}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}})}}}};
  Json json = base_json();
  json.merge_patch(patch);
  const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "tokenizer.json");
  EXPECT_THAT(error_of([&] { tokenizer.encode(std::string(60, 'a') + "b"); }),
              HasSubstr("match limit exceeded"));
}

TEST(StreamDecoder, HoldsACharacterBackUntilItIsWhole) {
  const Tokenizer& tokenizer = published();
  // The four bytes of an emoji that the vocabulary has no token for, one by one.
  const std::string emoji = "\xF0\x9F\x83\x8F";
  std::vector<std::int32_t> ids = tokenizer.encode(emoji);
  ASSERT_GT(ids.size(), 1U);
  StreamDecoder stream(tokenizer, true);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids.back()), emoji);
  EXPECT_EQ(stream.finish(), "");

  StreamDecoder cut(tokenizer, true);
  EXPECT_EQ(cut.push(ids[0]), "");
  EXPECT_EQ(cut.push(tokenizer.find("a")),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(cut.push(ids[0]), "");
  EXPECT_EQ(cut.finish(), "\xEF\xBF\xBD");
}

TEST(Utf8, KnowsWhatCouldStillBeCompleted) {
  EXPECT_EQ(incomplete_utf8_tail(""), 0U);
  EXPECT_EQ(incomplete_utf8_tail("abc"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("a\xC3"), 1U);
  EXPECT_EQ(incomplete_utf8_tail("a\xC3\xA9"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\xE4\xBA"), 2U);
  EXPECT_EQ(incomplete_utf8_tail("\xF0\x9F\x83"), 3U);
  EXPECT_EQ(incomplete_utf8_tail("\xF0\x9F\x83\x8F"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\xE0\x80"), 0U);  // never a character
  EXPECT_EQ(incomplete_utf8_tail("\xED\xA0"), 0U);  // a surrogate
  EXPECT_EQ(incomplete_utf8_tail("\xF5"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80\x80\x80"), 0U);
}

}  // namespace
}  // namespace vigil::model
