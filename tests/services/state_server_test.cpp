// What a running process tells over HTTP, and where.
#include "services/state_server.h"

#include <future>
#include <latch>
#include <memory>
#include <vector>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include "actors/messages/types.h"
#include "actors/status/status_actor.h"
#include "cluster/http/http_client.h"
#include "cluster/process/clock.h"
#include "cluster/process/system.h"

namespace vigil::services {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

int free_port() {
  return cluster::HttpServer({.listen = "127.0.0.1:0", .routes = {}}).port();
}

struct MessageTypes : cluster::SystemConfig {
  MessageTypes() { actors::know_messages(*this); }
};

/// Owes an answer to all who ask.
actors::status_actor::behavior_type mute(actors::status_actor::pointer self) {
  using Promise = caf::typed_response_promise<actors::StatusReport>;
  const auto owed = std::make_shared<std::vector<Promise>>();
  const auto owe = [self, owed] {
    owed->push_back(self->make_response_promise<actors::StatusReport>());
    return owed->back();
  };
  return {[owe](actors::probe_atom) { return owe(); }, [owe](actors::status_atom) { return owe(); },
          [self](actors::stop_atom) { self->quit(); }};
}

class StateServerTest : public ::testing::Test {
 protected:
  cluster::HttpResponse get(int port, const std::string& path) const {
    return cluster::http_get("http://127.0.0.1:" + std::to_string(port) + path, 5s);
  }
  config::MetricsSettings settings() const {
    config::MetricsSettings settings;
    settings.listen = "127.0.0.1:" + std::to_string(free_port());
    settings.probes = "127.0.0.1:" + std::to_string(free_port());
    return settings;
  }

  cluster::SystemClock clock_;
  actors::Metrics metrics_;
  actors::StatusBoard board_{clock_};
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  MessageTypes types_;
  caf::actor_system system_{types_};
  actors::status_actor status_ =
      system_.spawn<caf::hidden>(actors::status, actors::StatusDeps{board_, metrics_, logger_});
};

TEST_F(StateServerTest, PagesAndProbesAtOneAddressAndProbesAloneAtAnother) {
  metrics_.build("0.1.0", "abc");
  const config::MetricsSettings where = settings();
  const StateServer server(where, metrics_, system_, status_, clock_, {});
  EXPECT_EQ(server.url(), "http://" + where.listen + "/metrics");
  for (const int port : {server.port(), server.probes_port()}) {
    EXPECT_EQ(get(port, "/startupz").status, 503);
    EXPECT_EQ(get(port, "/healthz").status, 200);
    EXPECT_EQ(get(port, "/readyz").status, 503);
  }
  board_.phase(actors::RunPhase::running);
  for (const int port : {server.port(), server.probes_port()}) {
    EXPECT_EQ(get(port, "/startupz").body, "ok\n");
    EXPECT_EQ(get(port, "/readyz").body, "ok\n");
  }
  EXPECT_EQ(get(server.probes_port(), "/metrics").status, 404);
  EXPECT_EQ(get(server.probes_port(), "/status").status, 404);
  EXPECT_THAT(get(server.port(), "/status").body, HasSubstr("\"phase\":\"running\""));
  const std::string page = get(server.port(), "/metrics").body;
  EXPECT_THAT(page, HasSubstr("vigil_build_info{commit=\"abc\",version=\"0.1.0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("\nprocess_open_fds "));
  EXPECT_EQ(page.find("process_start_time_seconds 0\n"), std::string::npos);
  EXPECT_EQ(page.find("process_max_fds 0\n"), std::string::npos);
}

TEST_F(StateServerTest, OtherPagesAreNotWithTheProbes) {
  std::vector<cluster::HttpRoute> more;
  more.push_back({.path = "/fleet",
                  .handler =
                      [](const cluster::HttpRequest& request) {
                        return cluster::HttpResponse{.body = "asked " + request.query};
                      },
                  .slow = true});
  const StateServer server(settings(), metrics_, system_, status_, clock_, {}, {}, std::move(more));
  EXPECT_EQ(get(server.port(), "/fleet?cameras").body, "asked cameras");
  EXPECT_EQ(get(server.probes_port(), "/fleet").status, 404);
  EXPECT_EQ(get(server.port(), "/status").status, 200);
}

TEST_F(StateServerTest, AProbeNamesNobody) {
  board_.phase(actors::RunPhase::running);
  board_.beat("alerts", -1ms);
  const StateServer server(settings(), metrics_, system_, status_, clock_, {});
  const cluster::HttpResponse answer = get(server.probes_port(), "/healthz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "no\n");
  EXPECT_THAT(get(server.port(), "/status").body, HasSubstr("\"late\":[\"alerts\"]"));
}

TEST_F(StateServerTest, WithoutAnAnswerProbesAndTheStatusAre503AndMetricsGoOn) {
  board_.phase(actors::RunPhase::running);
  const actors::status_actor owes = system_.spawn(mute);
  const StateServer server(settings(), metrics_, system_, owes, clock_, {}, {.probe = 20ms, .page = 20ms});
  for (const int port : {server.port(), server.probes_port()}) {
    for (const char* path : {"/healthz", "/readyz", "/startupz"}) {
      const cluster::HttpResponse answer = get(port, path);
      EXPECT_EQ(answer.status, 503) << path;
      EXPECT_EQ(answer.body, "no\n") << path;
    }
  }
  const cluster::HttpResponse status = get(server.port(), "/status");
  EXPECT_EQ(status.status, 503);
  EXPECT_EQ(status.body, "no status: who tells it does not answer\n");
  EXPECT_EQ(get(server.port(), "/metrics").status, 200);
  caf::anon_send(owes, actors::stop_atom_v);
}

TEST_F(StateServerTest, APipelineThatHoldsEveryThreadHangsNoProbe) {
  board_.phase(actors::RunPhase::running);
  constexpr std::size_t kThreads = 2;
  ASSERT_EQ(system_.scheduler().num_workers(), kThreads);
  std::latch held(kThreads);
  std::promise<void> release;
  const auto hold = [&held, released = release.get_future().share()](caf::event_based_actor*) {
    held.count_down();
    released.wait();
  };
  const StateServer server(settings(), metrics_, system_, status_, clock_, {}, {.probe = 20ms, .page = 1h});
  for (std::size_t i = 0; i < kThreads; ++i) system_.spawn(hold);
  held.wait();
  EXPECT_EQ(get(server.port(), "/healthz").status, 503);
  EXPECT_EQ(get(server.probes_port(), "/startupz").status, 503);
  EXPECT_EQ(get(server.port(), "/metrics").status, 200);
  release.set_value();
  EXPECT_EQ(get(server.port(), "/status").status, 200);
}

TEST_F(StateServerTest, WhoIsGoneIsNotWaitedFor) {
  board_.phase(actors::RunPhase::running);
  // Longer than whoever asks here would wait.
  const StateServer server(settings(), metrics_, system_, status_, clock_, {}, {.probe = 1h, .page = 1h});
  EXPECT_EQ(get(server.port(), "/readyz").status, 200);
  EXPECT_EQ(get(server.port(), "/status").status, 200);
  caf::scoped_actor self{system_};
  self->monitor(status_);
  self->send(status_, actors::stop_atom_v);
  self->receive([](const caf::down_msg&) {});
  EXPECT_EQ(get(server.port(), "/healthz").status, 503);
  EXPECT_EQ(get(server.probes_port(), "/startupz").status, 503);
}

TEST_F(StateServerTest, WhoAsksIsNotWaitedForByWhoWaitsForThePipeline) {
  // Those for whom an actor system waits, while somebody asks.
  const auto waited_for = std::make_shared<std::promise<std::size_t>>();
  const auto count = [waited_for](actors::status_actor::pointer self) -> actors::status_actor::behavior_type {
    return {[self, waited_for](actors::probe_atom) {
              waited_for->set_value(self->system().registry().running());
              return actors::StatusReport{.live = true};
            },
            [](actors::status_atom) { return actors::StatusReport(); },
            [self](actors::stop_atom) { self->quit(); }};
  };
  const actors::status_actor counting = system_.spawn<caf::hidden>(count);
  const StateServer server(settings(), metrics_, system_, counting, clock_, {});
  EXPECT_EQ(get(server.port(), "/healthz").status, 200);
  EXPECT_EQ(waited_for->get_future().get(), 0U);
}

TEST_F(StateServerTest, NothingIsServedThatIsNotAskedFor) {
  const StateServer nothing({.listen = "", .probes = "", .tls = {}}, metrics_, system_, status_, clock_, {});
  EXPECT_EQ(nothing.port() + nothing.probes_port(), 0);
  EXPECT_EQ(nothing.url(), "");
  const StateServer main({.listen = settings().listen, .probes = "", .tls = {}}, metrics_, system_, status_,
                         clock_, {});
  EXPECT_EQ(get(main.port(), "/healthz").status, 200);
}

}  // namespace
}  // namespace vigil::services
