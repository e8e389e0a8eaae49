// What is remembered, how, and for how long, as a running service's settings say.
#include "services/memory_parts.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include <caf/actor_system.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/null_sink.h>

#include "actors/messages/types.h"
#include "cluster/process/clock.h"
#include "cluster/process/system.h"
#include "engine/kv/history/history_error.h"
#include "tests/temporary_folder.h"

namespace vigil::services {
namespace {

using kv::Form;
using memory::HostTier;
using std::chrono::hours;
using std::chrono::minutes;
namespace fs = std::filesystem;

const fs::path kDemo = fs::path(VIGIL_SOURCE_DIR) / "models" / "demo";

const model::ModelFolder& demo() {
  static const auto folder = model::ModelFolder::open(kDemo);
  return *folder;
}

config::MemorySettings settings() {
  config::MemorySettings settings;
  settings.enabled = true;
  return settings;
}

TEST(WindowMemoryOf, EnginesShareWhatTheSettingsSay) {
  config::EngineSettings wanted;
  wanted.window_memory = config::gibibytes(16);
  EXPECT_EQ(window_memory_of(wanted, 1, 77), std::int64_t{16} << 30U) << "whatever there is";
  EXPECT_EQ(window_memory_of(wanted, 4, 77), std::int64_t{4} << 30U);
  EXPECT_EQ(window_memory_of(wanted, 4, std::nullopt), std::int64_t{4} << 30U);
}

TEST(WindowMemoryOf, WhereNobodySaysThereIsNoBound) {
  EXPECT_EQ(window_memory_of({}, 2, std::nullopt), std::nullopt);
}

TEST(WindowMemoryOf, ThatSayNothingAQuarterOfWhatThereIs) {
  EXPECT_EQ(window_memory_of({}, 1, std::uint64_t{64} << 30U), std::int64_t{16} << 30U);
  EXPECT_EQ(window_memory_of({}, 2, std::uint64_t{64} << 30U), std::int64_t{8} << 30U);
  EXPECT_EQ(window_memory_of({}, 1, 0), 0) << "nothing is something, too";
}

TEST(CacheOptions, TiersAreAsLargeAsTheirBudgets) {
  config::MemorySettings wanted = settings();
  wanted.host.budget = config::mebibytes(3);
  wanted.disk.budget = config::mebibytes(5);
  const actors::CacheDesk::Options options = cache_options(wanted, demo());
  EXPECT_EQ(options.memory.host_bytes, std::uint64_t{3} << 20U);
  EXPECT_EQ(options.memory.disk_bytes, std::uint64_t{5} << 20U);
}

TEST(CacheOptions, EachTierKeepsItsFormsAsLongAsItIsTold) {
  config::MemorySettings wanted = settings();
  wanted.host.forms = {.bf16 = minutes(1), .int4 = minutes(3), .sketch = minutes(5)};
  wanted.disk.forms = {.fp8 = hours(2), .embeddings = hours(4)};
  const actors::CacheDesk::Options options = cache_options(wanted, demo());
  EXPECT_EQ(options.memory.host,
            (HostTier::Ages{{Form::bf16, minutes(1)}, {Form::int4, minutes(3)}, {Form::sketch, minutes(5)}}));
  EXPECT_EQ(options.memory.disk, (HostTier::Ages{{Form::fp8, hours(2)}, {Form::embeddings, hours(4)}}));
  // The others of each, too.
  wanted.host.forms = {.fp8 = minutes(2), .embeddings = minutes(4)};
  wanted.disk.forms = {.bf16 = hours(1), .int4 = hours(3), .sketch = hours(5)};
  const actors::CacheDesk::Options others = cache_options(wanted, demo());
  EXPECT_EQ(others.memory.host, (HostTier::Ages{{Form::fp8, minutes(2)}, {Form::embeddings, minutes(4)}}));
  EXPECT_EQ(others.memory.disk,
            (HostTier::Ages{{Form::bf16, hours(1)}, {Form::int4, hours(3)}, {Form::sketch, hours(5)}}));
}

TEST(CacheOptions, WhatGoesFirstIsToldByEviction) {
  config::MemorySettings wanted = settings();
  EXPECT_EQ(cache_options(wanted, demo()).memory.eviction, memory::Eviction::value);
  wanted.eviction = config::Eviction::lru;
  EXPECT_EQ(cache_options(wanted, demo()).memory.eviction, memory::Eviction::lru);
}

TEST(CacheOptions, PartsHaveTheModelsLayers) {
  EXPECT_EQ(cache_options(settings(), demo()).memory.parts.layers, demo().config.text.num_hidden_layers);
  EXPECT_GT(demo().config.text.num_hidden_layers, 0);
}

/// A copy of the demo model, by another name, whose files can be changed.
class CopiedModel {
 public:
  CopiedModel() { fs::copy(kDemo, path()); }
  fs::path path() const { return folder_ / "other-name"; }
  history::Fingerprint fingerprint() const {
    return cache_options(settings(), *model::ModelFolder::open(path())).memory.fingerprint;
  }
  void replace(const std::string& name, const std::string& what, const std::string& by) const {
    std::ifstream in(path() / name, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << name << " has no " << what;
    text.replace(at, what.size(), by);
    std::ofstream(path() / name, std::ios::binary) << text;
  }
  void turn_last_byte(const std::string& name) const {
    std::fstream file(path() / name, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(-1, std::ios::end);
    const char last = static_cast<char>(file.get());
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(last ^ 1));
  }

 private:
  TemporaryFolder folder_;
};

TEST(CacheOptions, AModelIsKnownByWhatItsKeysDependOnNotByItsFoldersName) {
  const history::Fingerprint demo = cache_options(settings(), services::demo()).memory.fingerprint;
  const CopiedModel copy;
  EXPECT_EQ(copy.fingerprint(), demo);
  copy.turn_last_byte("model-00002-of-00002.safetensors");
  const history::Fingerprint of_weights = copy.fingerprint();
  EXPECT_NE(of_weights, demo);
  copy.turn_last_byte("model-00002-of-00002.safetensors");
  EXPECT_EQ(copy.fingerprint(), demo);
  copy.replace("preprocessor_config.json", "0.48145466", "0.48145467");
  EXPECT_NE(copy.fingerprint(), demo);
  EXPECT_NE(copy.fingerprint(), of_weights);
  copy.replace("preprocessor_config.json", "0.48145467", "0.48145466");
  EXPECT_EQ(copy.fingerprint(), demo);
}

// Every key has seen something of the text before the frames.
TEST(CacheOptions, ATextBeforeTheFramesOfOtherTokensIsAnotherModel) {
  const auto folder = std::const_pointer_cast<model::ModelFolder>(model::ModelFolder::open(kDemo));
  const history::Fingerprint before = cache_options(settings(), *folder).memory.fingerprint;
  std::ifstream file(kDemo / "tokenizer.json");
  nlohmann::json tokenizer = nlohmann::json::parse(file);
  nlohmann::json& merges = tokenizer.at("model").at("merges");
  const auto helpful = std::find(merges.begin(), merges.end(), nlohmann::json::array({"\u0120help", "ful"}));
  ASSERT_NE(helpful, merges.end());
  merges.erase(helpful);
  folder->tokenizer = model::Tokenizer::parse(tokenizer.dump(), "made for this test");
  EXPECT_NE(cache_options(settings(), *folder).memory.fingerprint, before);
}

struct MemoryPartsTest : ::testing::Test {
  TemporaryFolder folder;
  cluster::SystemClock clock;
  actors::Metrics metrics;
  actors::StatusBoard board{clock};
  spdlog::logger logger{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  config::MemorySettings wanted = settings();

  std::unique_ptr<MemoryParts> make() {
    return std::make_unique<MemoryParts>(wanted, demo(), clock, metrics, board, logger);
  }
  /// The room that a device gets for pages; nothing if nothing is remembered. Whoever held on to the cache
  /// would hold up the system's end.
  std::optional<std::uint64_t> room() {
    cluster::SystemConfig config;
    actors::know_messages(config);
    const auto parts = make();
    caf::actor_system system(config);
    const MemoryParts::Running running(*parts, system);
    return running.access().cache ? std::optional(running.access().most) : std::nullopt;
  }
  bool is_empty() const { return fs::is_empty(folder.path()); }
};

TEST_F(MemoryPartsTest, WhatIsNotEnabledOpensNothing) {
  wanted.enabled = false;
  wanted.dir = folder / "memory";
  EXPECT_FALSE(room());
  EXPECT_TRUE(is_empty());
}

TEST_F(MemoryPartsTest, WithoutAFolderNothingGoesToADisk) {
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  wanted.host.budget = config::mebibytes(3);
  const std::optional<std::uint64_t> most = room();
  fs::current_path(before);
  EXPECT_GT(most, std::uint64_t{3} << 20U) << "what is on its way is beside the budget";
  EXPECT_TRUE(is_empty());
}

TEST_F(MemoryPartsTest, TheFolderIsTheOwnersAndItsKeyHasToFit) {
  wanted.dir = folder / "memory";
  std::ofstream(folder / "one.key") << std::string(64, 'a') << '\n';
  std::ofstream(folder / "two.key") << std::string(64, 'b') << '\n';
  for (const std::string name : {"one.key", "two.key"})
    fs::permissions(folder / name, fs::perms::owner_read | fs::perms::owner_write);
  wanted.key_file = folder / "one.key";
  EXPECT_NO_THROW(make());
  EXPECT_TRUE(fs::is_directory(wanted.dir));
  EXPECT_EQ(fs::status(wanted.dir).permissions() & (fs::perms::group_all | fs::perms::others_all),
            fs::perms::none);
  EXPECT_NO_THROW(make());
  wanted.key_file = folder / "two.key";
  EXPECT_THROW(make(), history::HistoryError);
  wanted.key_file.clear();
  EXPECT_THROW(make(), history::HistoryError);
}

}  // namespace
}  // namespace vigil::services
