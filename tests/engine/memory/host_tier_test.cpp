#include "engine/memory/host_tier.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/memory/made_pages.h"

namespace vigil::memory {
namespace {

using kv::Form;
using std::chrono::minutes;
using testing::kNoon;
using testing::kSecond;
using testing::made_page;
using testing::made_tokens;

const history::CameraId kGate{"city", "gate"}, kOther{"village", "gate"};
const history::WallRange kAll{kNoon - 100'000 * kSecond, kNoon + 100'000 * kSecond};
constexpr std::size_t kPage = 8192;

struct HostTierTest : ::testing::Test {
  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  HostTier tier{8 * kPage, Eviction::value, {{Form::fp8, minutes(10)}, {Form::int4, minutes(60)}}};

  HostTier::Put put(const history::CameraId& camera, std::uint64_t number, double second,
                    const std::vector<Form>& forms = {Form::int4}, bool is_alerted = false) {
    HostTier::Page page;
    page.is_alerted = is_alerted;
    page.info = made_page(number, second);
    for (const Form form : forms)
      page.forms.emplace(form, made_tokens(memory, form, form == Form::fp8 ? 2 * kPage : kPage));
    return tier.put(camera, std::move(page));
  }
  std::vector<std::uint64_t> numbers(const history::CameraId& camera, const history::WallRange& wall = kAll) {
    std::vector<std::uint64_t> all;
    for (const HostTier::Page* page : tier.pages(camera, wall)) all.push_back(page->info.number);
    return all;
  }
};
using Numbers = std::vector<std::uint64_t>;

TEST_F(HostTierTest, KeepsTheFormsThatItIsForAndWhatHasRoom) {
  const std::vector both{kGate, kOther};
  tier.share(both);
  EXPECT_TRUE(put(kGate, 1, 0, {Form::bf16, Form::fp8, Form::int4, Form::embeddings}).is_kept);
  const HostTier::Page* page = tier.find(kGate, 1);
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page->forms.size(), 2U);
  EXPECT_EQ(tier.used(), 3 * kPage);
  EXPECT_FALSE(put(kGate, 2, 10, {Form::embeddings}).is_kept);
  EXPECT_EQ(tier.find(kGate, 2), nullptr);
  EXPECT_EQ(tier.find(kOther, 1), nullptr) << "another tenant's camera of the same name";
  for (std::uint64_t number = 3; number < 8; ++number)
    EXPECT_TRUE(put(kGate, number, 10.0 * static_cast<double>(number)).gone.empty());
  EXPECT_EQ(numbers(kGate), (Numbers{1, 3, 4, 5, 6, 7}));
  EXPECT_EQ(numbers(kGate, {kNoon + 35 * kSecond, kNoon + 55 * kSecond}), (Numbers{3, 4, 5}));
  const HostTier::Put other = put(kOther, 1, 100);
  EXPECT_TRUE(other.is_kept);
  ASSERT_EQ(other.gone.size(), 1U);
  EXPECT_EQ(other.gone[0].number, 1U) << "the oldest of the camera that has most";
}

TEST_F(HostTierTest, WhatIsReadStaysUntilItIsLetGo) {
  tier.share(std::vector{kGate});
  put(kGate, 1, 0);
  const kernels::HostBytes held = tier.find(kGate, 1)->forms.at(Form::int4).bytes;
  EXPECT_EQ(tier.erase(kGate, {kNoon + 9 * kSecond, kNoon + 9 * kSecond}), 1U);
  EXPECT_EQ(tier.find(kGate, 1), nullptr);
  EXPECT_EQ(tier.used(), 0U);
  EXPECT_EQ(held[5], std::byte{5});
  EXPECT_EQ(tier.erase(kGate, kAll), 0U);
  EXPECT_EQ(tier.erase(kOther, kAll), 0U);
}

TEST_F(HostTierTest, FormsGoWithTheirAge) {
  tier.share(std::vector{kGate, kOther});
  put(kGate, 1, 0, {Form::fp8, Form::int4});
  put(kGate, 2, 300, {Form::fp8});
  put(kOther, 1, 0, {Form::int4});
  EXPECT_EQ(tier.age(kNoon + 610 * kSecond, {}), 0U);
  EXPECT_EQ(tier.find(kGate, 1)->forms.size(), 1U);
  EXPECT_TRUE(tier.find(kGate, 1)->forms.contains(Form::int4));
  EXPECT_EQ(tier.used(), 4 * kPage);
  EXPECT_EQ(tier.age(kNoon + 910 * kSecond, {}), 1U) << "the second one had no other";
  EXPECT_EQ(numbers(kGate), Numbers{1});
  // A camera that is kept for less.
  const std::vector<HostTier::Aged> keeps{{kGate, kNoon + 11 * kSecond}, {kOther, kNoon}};
  EXPECT_EQ(tier.age(kNoon + 911 * kSecond, keeps), 1U);
  EXPECT_EQ(numbers(kGate), Numbers{});
  EXPECT_EQ(numbers(kOther), Numbers{1});
  EXPECT_EQ(tier.age(kNoon + 4000 * kSecond, {}), 1U);
  EXPECT_EQ(tier.used(), 0U);
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(HostTierTest, WhatIsKnownOfASketchGoesWithIt) {
  HostTier sketches{8 * kPage, Eviction::value, {{Form::int4, minutes(60)}, {Form::sketch, minutes(10)}}};
  sketches.share(std::vector{kGate});
  HostTier::Page page;
  page.info = made_page(1, 0);
  page.sketch = page.info;
  page.forms.emplace(Form::int4, made_tokens(memory, Form::int4, kPage));
  page.forms.emplace(Form::sketch, made_tokens(memory, Form::sketch, kPage / 2));
  ASSERT_TRUE(sketches.put(kGate, std::move(page)).is_kept);
  EXPECT_EQ(sketches.find(kGate, 1)->sketch, made_page(1, 0));
  EXPECT_EQ(sketches.age(kNoon + 900 * kSecond, {}), 0U);
  EXPECT_FALSE(sketches.find(kGate, 1)->sketch);
  EXPECT_EQ(sketches.used(), kPage);
  // A tier that keeps none.
  HostTier::Page other;
  other.info = made_page(2, 10);
  other.sketch = other.info;
  other.forms.emplace(Form::int4, made_tokens(memory, Form::int4, kPage));
  other.forms.emplace(Form::sketch, made_tokens(memory, Form::sketch, kPage / 2));
  tier.share(std::vector{kGate});
  ASSERT_TRUE(tier.put(kGate, std::move(other)).is_kept);
  EXPECT_FALSE(tier.find(kGate, 2)->sketch);
}

TEST_F(HostTierTest, WhatWasAskedAboutOrToldOfStaysLonger) {
  tier.share(std::vector{kGate});
  for (std::uint64_t number = 1; number <= 8; ++number)
    put(kGate, number, 10.0 * static_cast<double>(number), {Form::int4}, number == 2);
  tier.hit(kGate, 1);
  tier.hit(kGate, 99);
  tier.hit(kOther, 1);
  Numbers gone;
  for (std::uint64_t number = 9; number <= 12; ++number)
    for (const history::PageInfo& each : put(kGate, number, 10.0 * static_cast<double>(number)).gone)
      gone.push_back(each.number);
  EXPECT_EQ(gone, (Numbers{3, 4, 5, 6}));
  EXPECT_EQ(numbers(kGate), (Numbers{1, 2, 7, 8, 9, 10, 11, 12}));
}

}  // namespace
}  // namespace vigil::memory
