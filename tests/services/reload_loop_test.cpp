// A file that changes on the disk, and what a running process is told of it.
#include "services/reload_loop.h"

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "config/file/load.h"
#include "tests/temporary_folder.h"

namespace vigil::services {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ReloadLoopTest : public ::testing::Test {
 protected:
  void SetUp() override { put("gate"); }

  /// As editors do: a new file takes the place of the old one.
  void put(const std::string& camera, const std::string& more = "") const {
    std::ofstream(folder_ / "new") << "model: m\ncameras: {" << camera
                                   << ": {url: x, rules: [{name: r, prompt: p}]}}\n"
                                   << more;
    std::filesystem::rename(folder_ / "new", file_);
  }

  config::Settings load() {
    const std::lock_guard lock(mutex_);
    ++loads_;
    told_.notify_all();
    return config::load(file_);
  }

  void apply(const config::Settings& settings) {
    const std::lock_guard lock(mutex_);
    applied_.push_back(settings.cameras.front().name);
    told_.notify_all();
  }

  bool wait_until(const std::function<bool()>& reached) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, std::chrono::seconds(20), reached);
  }

  const TemporaryFolder scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
  std::filesystem::path file_ = folder_ / "site.yaml";
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  actors::Metrics metrics_;
  std::mutex mutex_;
  std::condition_variable told_;
  int loads_ = 0;
  std::vector<std::string> applied_;
};

TEST_F(ReloadLoopTest, AppliesWhatIsRightAndSaysWhatIsWrong) {
  cluster::FileWatch watch(file_, {.settle = std::chrono::milliseconds(20), .look = std::chrono::hours(1)});
  const config::Settings before = config::load(file_);
  {
    const ReloadLoop loop(config::Reloader(before, [this] { return load(); }), watch, metrics_, logger_,
                          [this](const config::Settings& settings) { apply(settings); });
    put("yard");
    EXPECT_TRUE(wait_until([this] { return applied_.size() == 1; }));
    put("dock", "colour: red\nsize: 7\n");
    EXPECT_TRUE(wait_until([this] { return loads_ == 2; }));
    put("roof");
    EXPECT_TRUE(wait_until([this] { return applied_.size() == 2; }));
  }
  EXPECT_THAT(applied_, ElementsAre("yard", "roof"));
  EXPECT_THAT(log_.str(), HasSubstr("[info] configuration: applied: added yard; removed gate"));
  EXPECT_THAT(log_.str(), HasSubstr("site.yaml:3:1: colour: unknown key"));
  EXPECT_THAT(log_.str(), HasSubstr("site.yaml:4:1: size: unknown key"));
  EXPECT_THAT(log_.str(), HasSubstr("[info] configuration: applied: added roof; removed yard"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_config_reloads_total{result=\"applied\"} 2\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_config_reloads_total{result=\"refused\"} 1\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_config_last_reload_success 1\n"));
}

TEST_F(ReloadLoopTest, ALogOfErrorsAloneSaysThatTheFileWasMended) {
  cluster::FileWatch watch(file_, {.settle = std::chrono::milliseconds(20), .look = std::chrono::hours(1)});
  logger_.set_level(spdlog::level::err);
  {
    const ReloadLoop loop(config::Reloader(config::load(file_), [this] { return load(); }), watch, metrics_,
                          logger_, [this](const config::Settings& settings) { apply(settings); });
    put("yard");
    EXPECT_TRUE(wait_until([this] { return applied_.size() == 1; }));
    put("dock", "colour: red\n");
    EXPECT_TRUE(wait_until([this] { return loads_ == 2; }));
    put("roof");
    EXPECT_TRUE(wait_until([this] { return applied_.size() == 2; }));
  }
  EXPECT_THAT(log_.str(), Not(HasSubstr("added yard")));
  EXPECT_THAT(log_.str(), HasSubstr("[error] configuration: not applied"));
  EXPECT_THAT(log_.str(), HasSubstr("[info] configuration: applied: added roof; removed yard"));
}

TEST_F(ReloadLoopTest, ReadsTheFileWhenItIsAskedTo) {
  // What ran was read when the file said something else, as between two looks at a disk of another machine.
  const config::Settings before = config::load(file_);
  put("gate", "shutdown_grace: 1s\n");
  cluster::FileWatch watch(file_, {.settle = std::chrono::milliseconds(20), .look = std::chrono::hours(1)});
  {
    const ReloadLoop loop(config::Reloader(before, [this] { return load(); }), watch, metrics_, logger_,
                          [this](const config::Settings& settings) { apply(settings); });
    watch.poke();
    EXPECT_TRUE(wait_until([this] { return loads_ == 1; }));
  }
  EXPECT_THAT(applied_, ElementsAre());
  EXPECT_THAT(log_.str(), HasSubstr("configuration: shutdown_grace: cannot change while running"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_config_last_reload_success 0\n"));
}

}  // namespace
}  // namespace vigil::services
