#include "services/past_client.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <variant>

#include <unistd.h>

#include "base/duration.h"
#include "base/one_line.h"
#include "base/timestamp.h"
#include "cluster/asks/client.h"
#include "cluster/process/clock.h"
#include "config/schema/fields.h"
#include "fleet/asks/past_lines.h"
#include "services/command.h"
#include "services/connection_options.h"

namespace vigil::services {
namespace {

using cluster::AskClient;
using cluster::AskRefusal;
using cluster::ConnectionEvent;

// For a connection to a service that is there.
constexpr std::chrono::seconds kConnecting{5};
// So that the service says itself that it is too late.
constexpr std::chrono::seconds kAfterTimeout{2};
// As long as a request may take (cluster/asks/README.md).
constexpr std::chrono::minutes kLongestTimeout{10};

/// A line that is written over and over, on a terminal alone.
class ProgressLine {
 public:
  ProgressLine() : is_shown_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (is_drawn_) std::fprintf(stderr, "\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text) {
    if (!is_shown_) return;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    is_drawn_ = true;
  }

 private:
  bool is_shown_;
  bool is_drawn_ = false;
};

std::string in_words(const AskRefusal& refusal) {
  std::string text(cluster::name_of(refusal.type));
  text += ": " + refusal.message;
  if (refusal.retry_after) text += " (again after " + base::format_duration(*refusal.retry_after) + ')';
  return text;
}

std::string why_nobody(const std::string& endpoint, const std::optional<ConnectionEvent>& event) {
  if (event == ConnectionEvent::refused) return endpoint + ": does not let this key in";
  if (event == ConnectionEvent::failed)
    return endpoint + ": no handshake: are --server-key and --key-file what it wants?";
  return "no answer at " + endpoint + "; is `vigil run`, or a gateway, running there, with memory, and is " +
         "--connect what its configuration says in asks.bind?";
}

std::int64_t ms_of(base::Clock::WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

AskClient client_of(const PastConnection& connection) {
  check_endpoint("--connect", connection.endpoint, config::AskSettings().bind);
  AskClient::Options options{.endpoint = connection.endpoint};
  if (!connection.server_key.empty()) {
    options.curve = cluster::CurveClient{cluster::read_secret_key(connection.key_file),
                                         server_key_of(connection.server_key)};
  }
  return AskClient(options);
}

/// Throws if there is nobody to take it.
void send_past(AskClient& client, const PastConnection& connection, const cluster::AskRequest& request,
               base::Duration patience) {
  const cluster::SystemClock clock;
  const auto until = clock.now() + std::min<base::Duration>(patience, kConnecting);
  for (;;) {
    if (client.ask(request, patience + kAfterTimeout)) return;
    const auto event = client.connection();
    const bool is_final = event == ConnectionEvent::refused || event == ConnectionEvent::failed;
    const auto left = std::chrono::ceil<base::Duration>(until - clock.now());
    if (is_final || left.count() <= 0) throw std::runtime_error(why_nobody(connection.endpoint, event));
    client.wait(std::min<base::Duration>(left, std::chrono::milliseconds(100)));
  }
}

}  // namespace

CLI::Option* add_given(CLI::App& command, const char* name, std::optional<std::string>& text,
                       const char* help) {
  return command.add_option_function<std::string>(
      name, [&text](const std::string& given) { text = given; }, help);
}

void add_past_connection(CLI::App& command, PastConnection& connection, const std::string& group) {
  command
      .add_option("--connect", connection.endpoint,
                  "Where `vigil run`, or a gateway of a fleet, takes questions about the past")
      ->type_name("ENDPOINT")
      ->group(group)
      ->capture_default_str();
  auto* server_key = command
                         .add_option("--server-key", connection.server_key,
                                     "The server's public key, or its file, where questions need keys")
                         ->type_name("TEXT")
                         ->group(group);
  auto* key_file =
      command.add_option("--key-file", connection.key_file, "Your secret key (vigil keygen)")->group(group);
  server_key->needs(key_file);
  key_file->needs(server_key);
  command.add_option("--timeout", connection.timeout, "How long to wait for the answer, 10m at most")
      ->type_name("DURATION")
      ->group(group)
      ->capture_default_str();
}

base::Duration timeout_of(const PastConnection& connection) {
  const base::Duration timeout = duration_of("--timeout", connection.timeout);
  if (timeout > kLongestTimeout)
    throw UsageError("--timeout: expected 10m at most, not '" + connection.timeout + "'");
  return timeout;
}

std::string ask_past(const PastConnection& connection, const cluster::AskRequest& request) {
  const base::Duration patience = timeout_of(connection);
  AskClient client = client_of(connection);
  send_past(client, connection, request, patience);
  ProgressLine progress;
  for (;;) {
    auto arrival = client.take();
    if (!arrival) {
      client.wait(std::chrono::milliseconds(100));
      continue;
    }
    if (const auto* answer = std::get_if<cluster::AskAnswer>(&arrival->reply)) return answer->body;
    if (const auto* refusal = std::get_if<AskRefusal>(&arrival->reply))
      throw std::runtime_error(in_words(*refusal));
    if (const auto line = fleet::progress_line(std::get<cluster::AskProgress>(arrival->reply).body))
      progress.show(*line);
  }
}

std::int64_t past_time_of(const char* option, const std::string& text, base::Clock::WallTime now) {
  const std::int64_t time = time_of(option, text, now);
  if (time <= ms_of(now)) return time;
  throw UsageError(std::string(option) + ": '" + base::one_line(text) + "' has not come yet");
}

std::int64_t time_of(const char* option, const std::string& text, base::Clock::WallTime now) {
  if (const auto ago = base::parse_duration(text))
    return std::max<std::int64_t>(0, ms_of(now) - ago->count());
  if (const auto time = base::parse_rfc3339(text)) return ms_of(*time);
  throw UsageError(std::string(option) +
                   ": expected how long ago, such as 2h (ms, s, m, h or d), or a time such as "
                   "2026-08-01T10:00:00Z, not '" +
                   base::one_line(text) + "'");
}

std::optional<std::string> past_name(const char* option, const std::optional<std::string>& name) {
  if (!name || config::is_name(*name)) return name;
  throw UsageError(std::string(option) + ": expected a name of letters, digits, '.', '_' and '-', not '" +
                   base::one_line(*name) + "'");
}

void check_past_span(const char* from_option, std::int64_t from, const char* to_option, std::int64_t to) {
  if (from < to) return;
  throw UsageError(std::string("nothing lies between ") + from_option + " and " + to_option +
                   ": the one is not before the other");
}

void print_past(const PastConnection& connection, const std::string& output, const std::string& body,
                const std::optional<std::string>& lines) {
  const auto shown = output == "json" ? fleet::indented(body) : lines;
  if (!lines || !shown)
    throw std::runtime_error(connection.endpoint + ": what answers there is no `vigil run`");
  std::cout << *shown << '\n';
}

}  // namespace vigil::services
