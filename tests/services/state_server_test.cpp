// What a running process tells over HTTP, and where.
#include "services/state_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/clock.h"
#include "cluster/http_client.h"

namespace vigil::services {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

int free_port() {
  return cluster::HttpServer({.listen = "127.0.0.1:0", .routes = {}}).port();
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
};

TEST_F(StateServerTest, PagesAndProbesAtOneAddressAndProbesAloneAtAnother) {
  metrics_.build("0.1.0", "abc");
  const config::MetricsSettings where = settings();
  const StateServer server(where, metrics_, board_, clock_, {});
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

TEST_F(StateServerTest, AProbeNamesNobody) {
  board_.phase(actors::RunPhase::running);
  board_.beat("alerts", -1ms);
  const StateServer server(settings(), metrics_, board_, clock_, {});
  const cluster::HttpResponse answer = get(server.probes_port(), "/healthz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "no\n");
  EXPECT_THAT(get(server.port(), "/status").body, HasSubstr("\"late\":[\"alerts\"]"));
}

TEST_F(StateServerTest, NothingIsServedThatIsNotAskedFor) {
  const StateServer nothing({.listen = "", .probes = "", .tls = {}}, metrics_, board_, clock_, {});
  EXPECT_EQ(nothing.port() + nothing.probes_port(), 0);
  EXPECT_EQ(nothing.url(), "");
  const StateServer main({.listen = settings().listen, .probes = "", .tls = {}}, metrics_, board_, clock_,
                         {});
  EXPECT_EQ(get(main.port(), "/healthz").status, 200);
}

}  // namespace
}  // namespace vigil::services
