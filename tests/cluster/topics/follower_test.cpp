// A follower and a server in one thread, over real sockets: restarts, losses, keys.
#include "cluster/topics/follower.h"

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/process/clock.h"
#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// What is committed; it outlives the servers that publish it.
class Log final : public ReplaySource {
 public:
  const TopicMessage& commit(const std::string& topic) {
    events.push_back(
        {topic, ++sequences[topic], topic + std::to_string(sequences[topic]), events.size() + 1});
    return events.back();
  }
  ReplayPage replay(const ReplayQuery& query) override {
    ++pages;
    ReplayPage page{outbox, {}, query.after.value_or(events.size()), false, events.size()};
    while (page.cursor < events.size() && page.events.size() < 2) {
      const TopicMessage& event = events[page.cursor++];
      const bool wanted = std::any_of(query.topics.begin(), query.topics.end(),
                                      [&](const auto& prefix) { return event.topic.starts_with(prefix); });
      if (!wanted || event.position <= forgotten) continue;
      if (query.from && event.sequence < *query.from) continue;
      if (query.since_ms && static_cast<std::int64_t>(event.position) < *query.since_ms) continue;
      page.events.push_back(event);
    }
    page.more = page.cursor < events.size();
    return page;
  }
  std::optional<ReplayRefusal> refuse(const ReplayQuery&) const override { return refusal; }
  std::optional<ReplayRefusal> refusal;
  int pages = 0;
  std::string outbox = "A";
  std::vector<TopicMessage> events;
  std::map<std::string, std::uint64_t> sequences;
  std::uint64_t forgotten = 0;
};

class FollowerTest : public ::testing::Test {
 protected:
  void start(const std::optional<CurveServer>& curve = std::nullopt) {
    publisher_.emplace(TopicPublisher::Options{
        .endpoint = "ipc://" + (folder_ / "events"), .high_water_mark = 1000, .linger = 0ms, .curve = curve});
    for (const TopicMessage& event : log_.events) publisher_->remember(event);
    server_.emplace(ReplayServer::Options{.endpoint = "ipc://" + (folder_ / "replay"), .curve = curve}, log_);
  }
  void stop() {
    server_.reset();
    publisher_.reset();
  }

  Follower::Options options() {
    Follower::Options options;
    options.endpoint = "ipc://" + (folder_ / "events");
    options.replay = "ipc://" + (folder_ / "replay");
    options.topics = {"alert/"};
    options.heartbeat = 200ms;
    options.ask_again = 200ms;
    options.patience = 1s;
    return options;
  }

  /// Serves and follows until as many events have come in all, or 20 s are over.
  void follow(Follower& follower, std::size_t events) {
    for (int i = 0; i < 2000 && seen_.size() < events; ++i) step(follower);
    EXPECT_EQ(seen_.size(), events);
  }
  /// … until somebody should know of something like that.
  void follow_until(Follower& follower, const std::string& notice) {
    for (int i = 0; i < 2000 && notices_.find(notice) == std::string::npos; ++i) step(follower);
    EXPECT_THAT(notices_, HasSubstr(notice));
  }
  void step(Follower& follower) {
    if (publisher_) publisher_->serve();
    if (server_ && answering_) server_->serve();
    while (const auto entry = follower.next(seen_.empty() ? 10ms : 5ms)) {
      if (const auto* message = std::get_if<TopicMessage>(&*entry)) {
        seen_.push_back(message->body);
      } else {
        notices_ += std::get<Notice>(*entry).text + '\n';
      }
      if (publisher_) publisher_->serve();
    }
  }

  const TemporaryFolder folder_;
  const SystemClock clock_;
  Log log_;
  std::optional<TopicPublisher> publisher_;
  std::optional<ReplayServer> server_;
  bool answering_ = true;
  std::vector<std::string> seen_;
  std::string notices_;
};

TEST_F(FollowerTest, LastValuesComeFirstThenWhatIsLive) {
  log_.commit("alert/a/");
  log_.commit("alert/a/");
  log_.commit("status/a/");
  start();
  Follower follower(options(), clock_);
  follow(follower, 1);
  publisher_->publish(log_.commit("alert/a/"));
  publisher_->publish(log_.commit("status/a/"));
  publisher_->publish(log_.commit("alert/b/"));
  follow(follower, 3);
  EXPECT_THAT(seen_, ElementsAre("alert/a/2", "alert/a/3", "alert/b/1"));
  EXPECT_EQ(notices_, "");
}

TEST_F(FollowerTest, WhatWasNeverPublishedIsReplayedAndARestartIsSurvived) {
  start();
  Follower follower(options(), clock_);
  publisher_->publish(log_.commit("alert/a/"));
  follow(follower, 1);
  // Committed, then the process is gone.
  for (int i = 0; i < 5; ++i) log_.commit("alert/a/");
  log_.commit("alert/new/");
  stop();
  follow_until(follower, "no connection to ipc://");
  for (int i = 0; i < 3; ++i) log_.commit("alert/new/");
  start();
  follow(follower, 10);
  follow_until(follower, "connected to ipc://");
  EXPECT_THAT(std::vector(seen_.begin(), seen_.begin() + 6),
              ElementsAre("alert/a/1", "alert/a/2", "alert/a/3", "alert/a/4", "alert/a/5", "alert/a/6"));
  EXPECT_EQ(seen_.back(), "alert/new/4");
  // Nothing tells of an event that got lost but the heartbeat.
  log_.commit("alert/a/");
  follow(follower, 11);
}

TEST_F(FollowerTest, BeginsInThePast) {
  for (int i = 0; i < 9; ++i) log_.commit(i % 2 == 0 ? "alert/a/" : "alert/b/");
  start();
  Follower::Options sequence = options();
  sequence.topics = {"alert/a/"};
  sequence.since = Since{std::uint64_t{3}};
  Follower by_sequence(sequence, clock_);
  follow(by_sequence, 3);
  EXPECT_THAT(seen_, ElementsAre("alert/a/3", "alert/a/4", "alert/a/5"));
  seen_.clear();
  Follower::Options time = options();
  time.since = Since{base::Clock::WallTime(7ms)};
  Follower by_time(time, clock_);
  follow(by_time, 3);
  EXPECT_THAT(seen_, ElementsAre("alert/a/4", "alert/b/4", "alert/a/5"));
  publisher_->publish(log_.commit("alert/b/"));
  follow(by_time, 4);
  EXPECT_EQ(seen_.back(), "alert/b/5");
}

TEST_F(FollowerTest, WhatWasForgottenIsTold) {
  start();
  Follower follower(options(), clock_);
  publisher_->publish(log_.commit("alert/a/"));
  follow(follower, 1);
  for (int i = 0; i < 3; ++i) log_.commit("alert/a/");
  log_.forgotten = 3;
  publisher_->publish(log_.commit("alert/a/"));
  follow(follower, 3);
  EXPECT_THAT(seen_, ElementsAre("alert/a/1", "alert/a/4", "alert/a/5"));
  EXPECT_EQ(notices_, "2 events of alert/a/ cannot be replayed and will be missing\n");
}

TEST_F(FollowerTest, WithoutReplayEventsComeAfterAWhile) {
  answering_ = false;
  start();
  Follower follower(options(), clock_);
  for (int i = 0; i < 20; ++i) step(follower);
  publisher_->publish(log_.commit("alert/a/"));
  follow(follower, 1);
  EXPECT_THAT(notices_, HasSubstr("no replay from ipc://"));
  log_.commit("alert/a/");
  publisher_->publish(log_.commit("alert/a/"));
  follow(follower, 2);
  EXPECT_THAT(seen_, ElementsAre("alert/a/1", "alert/a/3"));
  EXPECT_THAT(notices_, HasSubstr("1 event of alert/a/ cannot be replayed"));
}

TEST_F(FollowerTest, WhereReplayIsRefusedEventsComeAfterAWhile) {
  log_.refusal = ReplayRefusal{"un\x1b[2Javailable\nvigil: all is well"};
  start();
  Follower follower(options(), clock_);
  for (int i = 0; i < 20; ++i) step(follower);
  publisher_->publish(log_.commit("alert/a/"));
  follow(follower, 1);
  EXPECT_THAT(notices_, HasSubstr("replay: un?[2Javailable?vigil: all is well\n")) << "as a line of this one";
  EXPECT_THAT(notices_, HasSubstr("what was missed cannot be filled in"));
  log_.refusal.reset();
  for (int i = 0; i < 2000 && log_.pages < 2; ++i) step(follower);
  log_.commit("alert/a/");
  publisher_->publish(log_.commit("alert/a/"));
  follow(follower, 3);
  EXPECT_THAT(seen_, ElementsAre("alert/a/1", "alert/a/2", "alert/a/3"));
}

TEST(TopicsFault, IsWhatAServerWouldNotTake) {
  EXPECT_EQ(topics_fault({"", "alert/north/", std::string(1000, 'x')}), std::nullopt);
  EXPECT_THAT(topics_fault(std::vector<std::string>(65, "alert/")).value_or(""), HasSubstr("64"));
  EXPECT_THAT(topics_fault({std::string(1001, 'x')}).value_or(""), HasSubstr("1000 bytes"));
  EXPECT_THAT(topics_fault(std::vector<std::string>(10, std::string(900, 'x'))).value_or(""),
              HasSubstr("8 KiB"));
}

TEST_F(FollowerTest, AnotherOutboxIsTold) {
  for (int i = 0; i < 3; ++i) log_.commit("alert/a/");
  start();
  Follower follower(options(), clock_);
  follow(follower, 1);
  stop();
  log_ = Log();
  log_.outbox = "B";
  log_.commit("alert/a/");
  start();
  follow(follower, 2);
  EXPECT_THAT(seen_, ElementsAre("alert/a/3", "alert/a/1"));
  EXPECT_THAT(notices_, HasSubstr("has another outbox than before"));
}

TEST_F(FollowerTest, ANumberThatBeginsAnewIsAskedAboutAtOnce) {
  const auto commit = [&](const std::string& id) -> const TopicMessage& {
    log_.commit("alert/a/");
    log_.events.back().body = R"({"source":"s","id":")" + id + R"("})";
    return log_.events.back();
  };
  start();
  Follower::Options patient = options();
  patient.heartbeat = 1h;
  Follower follower(patient, clock_);
  publisher_->publish(commit("1"));
  follow(follower, 1);
  publisher_->publish(commit("2"));
  follow(follower, 2);
  log_.events.clear();
  log_.sequences.clear();
  log_.outbox = "B";
  publisher_->publish(commit("3"));
  follow(follower, 3);
  EXPECT_THAT(notices_, HasSubstr("has another outbox than before"));
  // What was told before is asked about by nobody.
  const int pages = log_.pages;
  publisher_->publish(log_.events.back());
  for (int i = 0; i < 20; ++i) step(follower);
  EXPECT_EQ(log_.pages, pages);
}

// As after damage: what is left has its numbers, and what is new has those of what is gone.
TEST_F(FollowerTest, AnotherOutboxShowsWhatIsNewAndNothingTwice) {
  const auto body = [](int id) { return R"({"source":"s","id":")" + std::to_string(id) + R"("})"; };
  const auto commit = [&](int id) -> const TopicMessage& {
    log_.commit("alert/a/");
    log_.events.back().body = body(id);
    return log_.events.back();
  };
  start();
  Follower::Options from_the_beginning = options();
  from_the_beginning.since = Since{base::Clock::WallTime()};
  Follower follower(from_the_beginning, clock_);
  for (int id = 1; id <= 5; ++id) publisher_->publish(commit(id));
  follow(follower, 5);
  const auto lose_the_last_three = [&](const std::string& identity) {
    log_.events.resize(log_.events.size() - 3);
    log_.sequences["alert/a/"] = log_.events.size();
    log_.outbox = identity;
  };
  // While it is connected.
  lose_the_last_three("B");
  for (int id = 6; id <= 9; ++id) publisher_->publish(commit(id));
  follow(follower, 9);
  follow_until(follower, "has another outbox than before");
  // While it was away.
  stop();
  lose_the_last_three("C");
  commit(10);
  commit(11);
  start();
  notices_.clear();
  follow(follower, 11);
  follow_until(follower, "has another outbox than before");
  for (int i = 0; i < 60; ++i) step(follower);
  std::vector<std::string> expected;
  for (int id = 1; id <= 11; ++id) expected.push_back(body(id));
  // One whose number follows comes out before it is known that it is another outbox's.
  EXPECT_THAT(seen_, ::testing::UnorderedElementsAreArray(expected));
}

TEST_F(FollowerTest, KeysLetInThoseWhoAreOnTheList) {
  const KeyPair server = make_key_pair();
  const KeyPair friendly = make_key_pair();
  const KeyPair stranger = make_key_pair();
  start(CurveServer{server, {friendly.public_key}});
  log_.commit("alert/a/");
  publisher_->publish(log_.events.back());

  const auto with = [&](const KeyPair& keys, const std::string& server_key) {
    Follower::Options result = options();
    result.curve = CurveClient{keys, server_key};
    return result;
  };
  {
    Follower follower(with(friendly, server.public_key), clock_);
    follow(follower, 1);
    EXPECT_THAT(seen_, ElementsAre("alert/a/1"));
    EXPECT_TRUE(follower.was_connected());
    log_.commit("alert/a/");
    publisher_->publish(log_.commit("alert/a/"));
    follow(follower, 3);
  }
  seen_.clear();
  {
    Follower follower(with(stranger, server.public_key), clock_);
    follow_until(follower, "does not let this key in");
    EXPECT_FALSE(follower.was_connected());
  }
  {
    Follower follower(with(friendly, stranger.public_key), clock_);
    for (int i = 0; i < 60; ++i) step(follower);
  }
  {
    Follower follower(options(), clock_);
    follow_until(follower, "wants keys");
    EXPECT_FALSE(follower.was_connected());
  }
  EXPECT_THAT(seen_, IsEmpty()) << "nobody else sees anything";
  for (const std::string& key : {server.secret_key, friendly.secret_key, stranger.secret_key}) {
    EXPECT_THAT(notices_, Not(HasSubstr(key)));
  }
}

TEST(ParseSince, ReadsDurationsTimesAndSequences) {
  const base::Clock::WallTime now(std::chrono::seconds(1785578400));
  EXPECT_EQ(std::get<base::Clock::WallTime>(parse_since("10m", now)->begin), now - 10min);
  EXPECT_EQ(std::get<base::Clock::WallTime>(parse_since("2026-08-01T12:00:00+02:00", now)->begin), now);
  EXPECT_EQ(std::get<std::uint64_t>(parse_since("8812", now)->begin), 8812U);
  for (const char* text : {"30000d", "110000d", "365000d"}) {
    EXPECT_EQ(std::get<base::Clock::WallTime>(parse_since(text, now)->begin), base::Clock::WallTime{})
        << text << ": all there is, and no time that a query refuses";
  }
  for (const char* text : {"", "yesterday", "-5", "10 m", "2026-08-01", "99999999999999999999999"}) {
    EXPECT_FALSE(parse_since(text, now).has_value()) << text;
  }
}

TEST(CurveKeys, AreWrittenOnceAndReadBack) {
  const TemporaryFolder folder;
  const KeyPair keys = make_key_pair();
  write_key_files(folder / "server.key", keys);
  EXPECT_EQ(read_secret_key(folder / "server.key").secret_key, keys.secret_key);
  EXPECT_EQ(read_secret_key(folder / "server.key").public_key, keys.public_key);
  EXPECT_EQ(read_public_key(folder / "server.key.pub"), keys.public_key);
  EXPECT_EQ(read_public_key(keys.public_key), keys.public_key);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "server.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U) << "the owner's alone";
  EXPECT_THROW(write_key_files(folder / "server.key", keys), KeyError) << "a key is never overwritten";
  std::filesystem::remove(folder / "server.key");
  EXPECT_THROW(write_key_files(folder / "server.key", keys), KeyError) << "nor is half of one";
  EXPECT_FALSE(std::filesystem::exists(folder / "server.key"));
}

TEST(CurveKeys, AFileThatHoldsNoneIsNamedAndNotShown) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& text) {
    std::ofstream(folder / "x.key") << text;
    std::filesystem::permissions(folder / "x.key", std::filesystem::perms(0600));
    try {
      read_secret_key(folder / "x.key");
    } catch (const KeyError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("# a comment\r\n" + make_key_pair().secret_key + "\r\n"), "accepted");
  for (const std::string& text :
       {std::string(), std::string("hunter2\n"), std::string(40, '~'), std::string(41, 'a'),
        make_key_pair().secret_key + '\n' + make_key_pair().secret_key}) {
    EXPECT_EQ(message(text), (folder / "x.key") + ": holds no CURVE key");
  }
  EXPECT_THROW(read_secret_key(folder / "nowhere"), KeyError);
  EXPECT_THROW(read_secret_key(folder / ""), KeyError);
}

TEST(CurveKeys, HalvesThatAreNoPairAreRefused) {
  const TemporaryFolder folder;
  const std::string file = folder / "server.key";
  write_key_files(file, make_key_pair());
  const auto message = [&] {
    try {
      read_secret_key(file);
    } catch (const KeyError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(), "accepted");
  std::ofstream(file + ".pub") << make_key_pair().public_key << '\n';
  EXPECT_EQ(message(),
            file + " and " + file + ".pub: are no pair; one of them is damaged, or another pair's");
  std::filesystem::remove(file + ".pub");
  EXPECT_EQ(message(), "accepted") << "where only the secret half is, nothing is compared";
}

TEST(CurveKeys, ASecretThatOthersMayReadOrChangeIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder / "server.key";
  write_key_files(file, make_key_pair());
  for (const unsigned mode : {0666U, 0644U, 0640U, 0604U, 0620U, 0602U, 0601U}) {
    std::filesystem::permissions(file, std::filesystem::perms(mode));
    try {
      read_secret_key(file);
      ADD_FAILURE() << std::oct << mode << " is accepted";
    } catch (const KeyError& error) {
      std::ostringstream octal;
      octal << std::oct << std::setw(4) << std::setfill('0') << mode;
      EXPECT_EQ(std::string(error.what()),
                file + ": has mode " + octal.str() + "; a secret key must be its owner's alone (chmod 600)");
    }
  }
  std::filesystem::permissions(file, std::filesystem::perms(0400));
  EXPECT_NO_THROW(read_secret_key(file));
}

TEST(CurveKeys, AKeyInPlaceOfItsFileIsNotShown) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& file) {
    try {
      read_secret_key(file);
    } catch (const KeyError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (int i = 0; i < 20; ++i) {
    const std::string key = make_key_pair().secret_key;
    for (const std::string& file : {key, key + '\n', folder / key}) {
      EXPECT_EQ(message(file), "a key stands where its file is expected");
    }
    EXPECT_EQ(message(key.substr(1)), key.substr(1) + ": No such file or directory") << "no key";
  }
  const std::string path = "/etc/vigil/keys/of-the-north/server.keys";
  ASSERT_EQ(path.size(), 40U);
  EXPECT_EQ(message(path), path + ": No such file or directory");
}

}  // namespace
}  // namespace vigil::cluster
