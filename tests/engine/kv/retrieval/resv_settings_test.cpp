#include "engine/kv/retrieval/resv_settings.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::retrieval {
namespace {

using kernels::ClusterBits;
using kernels::WicsumRows;
using kernels::WicsumScores;
using ::testing::HasSubstr;

std::string refusal(const ResvSettings& settings) {
  try {
    check(settings);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ResvSettingsTest, TheBindingFormIsThePapers) {
  const ResvSettings resv = resv_named("resv");
  EXPECT_EQ(resv.n_hp, 32);
  EXPECT_EQ(resv.th_hp, 7);
  EXPECT_EQ(resv.th_wics, 0.3);
  EXPECT_EQ(resv.scores, WicsumScores::raw);
  EXPECT_EQ(resv.rows, WicsumRows::united);
  EXPECT_EQ(resv.bits, ClusterBits::first);
  EXPECT_EQ(resv.keys, HashedKeys::rotated);
}

// A form differs from the paper's in what its name says, and in nothing else.
TEST(ResvSettingsTest, FormsHaveNamesOfTheirOwn) {
  ResvSettings wanted;
  wanted.bits = ClusterBits::mean;
  EXPECT_EQ(resv_named("resv-mean"), wanted);
  wanted = {};
  wanted.keys = HashedKeys::still;
  EXPECT_EQ(resv_named("resv-still"), wanted);
  wanted = {};
  wanted.scores = WicsumScores::exp;
  EXPECT_EQ(resv_named("resv-mass"), wanted);
  wanted.rows = WicsumRows::pooled;
  EXPECT_EQ(resv_named("resv-pooled"), wanted);
  for (const std::string_view name : kResvForms) EXPECT_EQ(refusal(resv_named(name)), "") << name;
  EXPECT_THROW(resv_named("ReSV"), std::invalid_argument);
}

TEST(ResvSettingsTest, EachSettingHasTwoNames) {
  EXPECT_EQ(scores_named("raw"), WicsumScores::raw);
  EXPECT_EQ(scores_named("exp"), WicsumScores::exp);
  EXPECT_EQ(rows_named("union"), WicsumRows::united);
  EXPECT_EQ(rows_named("pooled"), WicsumRows::pooled);
  EXPECT_EQ(bits_named("first"), ClusterBits::first);
  EXPECT_EQ(bits_named("mean"), ClusterBits::mean);
  EXPECT_EQ(keys_named("rotated"), HashedKeys::rotated);
  EXPECT_EQ(keys_named("still"), HashedKeys::still);
  try {
    keys_named("turned");
    FAIL() << "a name that is none";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "\"turned\" is no kind of keys: rotated, still");
  }
  EXPECT_THROW(scores_named(""), std::invalid_argument);
  EXPECT_THROW(rows_named("raw"), std::invalid_argument);
  EXPECT_THROW(bits_named("last"), std::invalid_argument);
}

TEST(ResvSettingsTest, RefusesNumbersThatNoTableCanHave) {
  const auto changed = [](auto member, auto value) {
    ResvSettings settings;
    settings.*member = value;
    return refusal(settings);
  };
  EXPECT_THAT(changed(&ResvSettings::n_hp, 0), HasSubstr("n_hp: 0 is not from 1 to 64"));
  EXPECT_THAT(changed(&ResvSettings::n_hp, 65), HasSubstr("n_hp"));
  EXPECT_EQ(changed(&ResvSettings::n_hp, 64), "");
  EXPECT_THAT(changed(&ResvSettings::th_hp, -1), HasSubstr("th_hp"));
  EXPECT_THAT(changed(&ResvSettings::th_hp, 34), HasSubstr("th_hp: 34 is not from 0 to 33"));
  EXPECT_EQ(changed(&ResvSettings::th_hp, 33), "");
  for (const double share : {-0.01, 1.01, std::nan("")})
    EXPECT_THAT(changed(&ResvSettings::th_wics, share), HasSubstr("th_wics")) << share;
  EXPECT_EQ(changed(&ResvSettings::th_wics, 1.0), "");
  EXPECT_THAT(changed(&ResvSettings::rows, WicsumRows::pooled), HasSubstr("pooled goes with scores: exp"));
}

}  // namespace
}  // namespace vigil::retrieval
