// The cases of tests/golden/draft_tokens.txt (tools/golden_draft_tokens.py tells what its lines are).
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace vigil {

struct DraftGolden {
  struct Frame {
    std::vector<std::int32_t> places;
    /// [tokens, width]
    std::vector<float> embeddings;
    std::vector<float> attention;
    /// NaN: not known.
    std::vector<float> to_before, spread;
  };
  /// Of the tokens of a window of some of its frames.
  struct Scores {
    std::size_t first = 0, frames = 0;
    std::vector<double> change, hippo, early;
  };
  struct Kept {
    std::string selection;
    std::size_t first = 0, frames = 0;
    double share = 0;
    std::vector<std::int32_t> tokens;
  };

  std::string name;
  std::int64_t rows = 0, columns = 0, width = 0;
  std::vector<Frame> frames;
  std::vector<Scores> scores;
  std::vector<Kept> kept;
};

class DraftGoldenFile {
 public:
  static std::vector<DraftGolden> read() {
    DraftGoldenFile file;
    std::vector<DraftGolden> cases;
    for (std::string word; file.in_ >> word;) {
      if (word != "case") throw std::runtime_error("draft_tokens.txt: " + word + " where a case begins");
      cases.push_back(file.one());
    }
    return cases;
  }

 private:
  DraftGoldenFile() : in_(VIGIL_SOURCE_DIR "/tests/golden/draft_tokens.txt") {}

  template <typename T>
  T next() {
    T value{};
    if (!(in_ >> value)) throw std::runtime_error("draft_tokens.txt: it ends within a case");
    return value;
  }
  template <typename T>
  std::vector<T> some(std::size_t count) {
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(next<T>());
    return values;
  }
  std::vector<float> numbers(std::size_t count) {
    std::vector<float> values = some<float>(count);
    for (float& value : values)
      if (value == 998) {
        value = std::numeric_limits<float>::quiet_NaN();
      } else if (value == 999 || value == -999) {
        value *= std::numeric_limits<float>::infinity();
      }
    return values;
  }
  std::vector<float> known(std::size_t count) {
    std::vector<float> values = some<float>(count);
    for (float& value : values)
      if (value == -9) value = std::numeric_limits<float>::quiet_NaN();
    return values;
  }

  DraftGolden one() {
    DraftGolden now;
    std::size_t frames = 0;
    in_ >> now.name >> frames >> now.rows >> now.columns >> now.width;
    for (std::size_t f = 0; f < frames; ++f) {
      if (next<std::string>() != "frame") throw std::runtime_error("draft_tokens.txt: a frame is missing");
      const auto tokens = next<std::size_t>();
      DraftGolden::Frame frame;
      frame.places = some<std::int32_t>(tokens);
      frame.embeddings = numbers(tokens * static_cast<std::size_t>(now.width));
      frame.attention = some<float>(tokens);
      frame.to_before = known(tokens);
      frame.spread = known(tokens);
      now.frames.push_back(frame);
    }
    for (auto word = next<std::string>(); word != "end"; word = next<std::string>()) {
      if (word == "scores") {
        DraftGolden::Scores scores;
        in_ >> scores.first >> scores.frames;
        std::size_t tokens = 0;
        for (std::size_t f = 0; f < scores.frames; ++f)
          tokens += now.frames.at(scores.first + f).places.size();
        scores.change = some<double>(tokens);
        scores.hippo = some<double>(tokens);
        scores.early = some<double>(tokens);
        now.scores.push_back(scores);
      } else if (word == "keep") {
        DraftGolden::Kept kept;
        std::size_t count = 0;
        in_ >> kept.selection >> kept.first >> kept.frames >> kept.share >> count;
        kept.tokens = some<std::int32_t>(count);
        now.kept.push_back(kept);
      } else {
        throw std::runtime_error("draft_tokens.txt: " + word);
      }
    }
    return now;
  }

  std::ifstream in_;
};

}  // namespace vigil
