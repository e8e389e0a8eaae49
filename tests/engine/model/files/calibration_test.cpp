#include "engine/model/files/calibration.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Calibration parse(std::string_view text) {
  return parse_calibration(text, "calibration.json");
}

std::string error(std::string_view text) {
  return error_of([&] { parse(text); });
}

TEST(CalibrationTest, MovesAndStretchesTheLogOdds) {
  const Calibration calibration{.slope = 2, .bias = -1, .fitted_on = {}};
  EXPECT_DOUBLE_EQ(calibration.probability(0.5), 0.5);
  EXPECT_DOUBLE_EQ(calibration.probability(0), 1 / (1 + std::exp(1.0)));
  EXPECT_DOUBLE_EQ(calibration.probability(2), 1 / (1 + std::exp(-3.0)));
}

TEST(CalibrationTest, LeavesThemAloneUnlessAFileSaysOtherwise) {
  const Calibration none;
  for (const double log_odds : {-30.0, -2.0, 0.0, 0.25, 9.0})
    EXPECT_DOUBLE_EQ(none.probability(log_odds), 1 / (1 + std::exp(-log_odds)));
  const testing::ScratchFolder published;
  EXPECT_FALSE(read_calibration(published.path()).has_value());
}

TEST(CalibrationTest, IsAProbabilityHoweverSureTheModelIs) {
  const Calibration steep{.slope = 100, .bias = 100, .fitted_on = {}};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(steep.probability(-1e6), 0);
  EXPECT_EQ(steep.probability(1e6), 1);
  EXPECT_EQ(steep.probability(-kInfinity), 0);
  EXPECT_EQ(steep.probability(kInfinity), 1);
}

TEST(CalibrationTest, IsReadFromItsFile) {
  const testing::ScratchFolder folder;
  folder.write("calibration.json", R"({"yes": {"slope": 1.25, "bias": -1}, "fitted_on": "1,320 answers"})");
  const auto read = read_calibration(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->slope, 1.25);
  EXPECT_EQ(read->bias, -1);
  EXPECT_EQ(read->fitted_on, "1,320 answers");
  EXPECT_EQ(parse(R"({"yes": {"bias": 0, "slope": 1}})").fitted_on, "");
}

TEST(CalibrationTest, NamesTheKeyThatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({})", "yes: missing"},
      {R"({"yes": null})", "yes: missing"},
      {R"({"yes": 1.5})", "yes: an object was expected"},
      {R"({"yes": {"slope": 1}})", "yes.bias: missing"},
      {R"({"yes": {"bias": 1}})", "yes.slope: missing"},
      {R"({"yes": {"slope": null, "bias": 1}})", "yes.slope: missing"},
      {R"({"yes": {"slope": 0, "bias": 0}})", "yes.slope: 0 is not between"},
      {R"({"yes": {"slope": -1.5, "bias": 0}})", "yes.slope: -1.5 is not between"},
      {R"({"yes": {"slope": 1e300, "bias": 0}})", "yes.slope: 1e+300 is not between"},
      {R"({"yes": {"slope": 1, "bias": -1e9}})", "yes.bias: -1000000000.0 is not between"},
      {R"({"yes": {"slope": "1", "bias": 0}})", "yes.slope: a number was expected, this is string"},
      {R"({"yes": {"slope": true, "bias": 0}})", "yes.slope: a number was expected, this is boolean"},
      {R"({"yes": {"slope": 1, "bias": [0]}})", "yes.bias: a number was expected, this is array"},
      {R"({"yes": {"slope": 1, "bias": 0, "offset": 1}})", "yes.'offset': no such key is known"},
      {R"({"yes": {"slope": 1, "bias": 0}, "no": {}})", "'no': no such key is known"},
      {R"({"yes": {"slope": 1, "bias": 0}, "a\nb": 1})", "'a?b': no such key is known"},
      {R"({"yes": {"slope": 1, "bias": 0}, "fitted_on": 7})", "fitted_on: a string was expected"},
      {R"({"yes": {"slope": 1, "bias": 0}, "fitted_on": "a\nb"})", "fitted_on: one line"},
      {R"({"yes": {"slope": 1, "bias": 0}, "fitted_on": "\u001b[2J"})", "fitted_on: one line"},
      {R"({"yes": {"slope": 1, "slope": 2, "bias": 0}})", "the key 'slope' occurs twice"},
  };
  for (const auto& [text, reason] : wrong)
    EXPECT_THAT(error(text), HasSubstr(std::string("calibration.json: ") + reason)) << text;
  const std::string note(1001, 'x');
  EXPECT_THAT(error(R"({"yes": {"slope": 1, "bias": 0}, "fitted_on": ")" + note + "\"}"),
              HasSubstr("one line"));
}

TEST(CalibrationTest, RefusesNumbersThatAreNoneAndWhatIsNoJson) {
  for (const char* text :
       {R"({"yes": {"slope": NaN, "bias": 0}})", R"({"yes": {"slope": 1, "bias": Infinity}})",
        R"({"yes": {"slope": 1, "bias": 1e999}})", R"({"yes": {"slope": 1, "bias": 0})", "", "\xff\xfe",
        "[1, 2]", "\"yes\""})
    EXPECT_THAT(error(text), StartsWith("calibration.json: ")) << text;
  EXPECT_THAT(error(R"({"yes": {"slope": NaN, "bias": 0}})"), HasSubstr("slope"));
  EXPECT_THAT(error(R"({"yes": {"slope": 1, "bias": 1e999}})"), HasSubstr("1e999"));
  EXPECT_THAT(error(std::string(2000, '[')), HasSubstr("nested deeper"));
}

TEST(CalibrationTest, NamesAFileThatCannotBeRead) {
  const testing::ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "calibration.json";
  const auto line = [&] { return error_of([&] { read_calibration(folder.path()); }); };
  std::filesystem::create_symlink(folder.path() / "gone.json", file);
  EXPECT_EQ(line(), file.string() + ": no such file");
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_EQ(line(), file.string() + ": not a regular file");
  std::filesystem::remove(file);
  folder.write("calibration.json", std::string(1 << 20, ' '));
  EXPECT_THAT(line(), HasSubstr("more than the 65536"));
}

}  // namespace
}  // namespace vigil::model
