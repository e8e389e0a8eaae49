#include "cluster/sockets/curve.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq_addon.hpp>

#include "base/durable.h"
#include "base/private_file.h"
#include "config/settings.h"
#include "config/values/curve_key.h"

namespace vigil::cluster {
namespace {

constexpr std::size_t kKeyCharacters = 40;
constexpr std::size_t kKeyBytes = 32;
constexpr const char* kDomain = "vigil";

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

/// Refuses a secret that others than its owner may read, or change.
void check_private(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) throw KeyError(file.string() + ": " + reason_of(errno));
  if (const auto fault = base::fault_of_privacy(status)) throw KeyError(file.string() + ": " + *fault);
}

/// The one line of a key file that is no comment.
std::string key_line(const std::filesystem::path& file) {
  if (config::is_key_for_path(file.string())) throw KeyError("a key stands where its file is expected");
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw KeyError(file.string() + ": is a folder, no key file");
  std::ifstream stream(file);
  if (!stream) throw KeyError(file.string() + ": " + reason_of(errno));
  std::string key;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    if (!key.empty() || !config::is_curve_key(line)) throw KeyError(file.string() + ": holds no CURVE key");
    key = line;
  }
  if (key.empty()) throw KeyError(file.string() + ": holds no CURVE key");
  return key;
}

/// A public key that others were given must not lose its secret one: names are synced, too.
void write_new(const std::filesystem::path& file, const std::string& text, mode_t mode) {
  try {
    base::write_first(file, text, mode);
  } catch (const base::FileError& error) {
    throw KeyError(error.what());
  }
}

std::filesystem::path public_file(std::filesystem::path secret) {
  return secret += ".pub";
}

/// The reply to one request (https://rfc.zeromq.org/spec/27): version, request id, code, text, user id,
/// metadata.
std::vector<std::string> judge(const std::vector<zmq::message_t>& request,
                               const std::function<bool(const std::string&)>& allowed) {
  // version, request id, domain, address, identity, mechanism, credentials
  const bool curve = request.size() == 7 && request[0].to_string_view() == "1.0" &&
                     request[5].to_string_view() == "CURVE" && request[6].size() == kKeyBytes;
  const std::string id(request.size() > 1 ? request[1].to_string_view() : std::string_view());
  std::array<char, kKeyCharacters + 1> key{};
  if (curve) zmq_z85_encode(key.data(), request[6].data<std::uint8_t>(), kKeyBytes);
  if (curve && allowed(key.data())) return {"1.0", id, "200", "OK", key.data(), ""};
  return {"1.0", id, "400", "not in the allow-list", "", ""};
}

void serve(zmq::socket_t requests, zmq::socket_t stop, const std::set<std::string>& allowed) {
  std::array<zmq::pollitem_t, 2> items = {zmq::pollitem_t{requests.handle(), 0, ZMQ_POLLIN, 0},
                                          zmq::pollitem_t{stop.handle(), 0, ZMQ_POLLIN, 0}};
  for (;;) {
    zmq::poll(items.data(), items.size(), std::chrono::milliseconds(-1));
    if ((items[1].revents & ZMQ_POLLIN) != 0) return;
    answer_handshake(requests, [&](const std::string& key) { return allowed.contains(key); });
  }
}

}  // namespace

KeyPair make_key_pair() {
  std::array<char, kKeyCharacters + 1> public_key{};
  std::array<char, kKeyCharacters + 1> secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    throw KeyError("ZeroMQ was built without CURVE");
  }
  return {public_key.data(), secret_key.data()};
}

void write_key_files(const std::filesystem::path& file, const KeyPair& keys) {
  const std::filesystem::path shown = public_file(file);
  std::error_code error;
  if (std::filesystem::exists(shown, error)) throw KeyError(shown.string() + ": " + reason_of(EEXIST));
  write_new(file, keys.secret_key + '\n', S_IRUSR | S_IWUSR);
  write_new(shown, keys.public_key + '\n', S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
}

KeyPair read_secret_key(const std::filesystem::path& file) {
  KeyPair keys;
  keys.secret_key = key_line(file);
  check_private(file);
  std::array<char, kKeyCharacters + 1> public_key{};
  if (zmq_curve_public(public_key.data(), keys.secret_key.c_str()) != 0) {
    throw KeyError(file.string() + ": holds no CURVE key");
  }
  keys.public_key = public_key.data();
  // Every 40 characters are some key: damage shows beside the other half only.
  const std::filesystem::path shown = public_file(file);
  std::error_code error;
  if (std::filesystem::exists(shown, error) && key_line(shown) != keys.public_key) {
    throw KeyError(file.string() + " and " + shown.string() +
                   ": are no pair; one of them is damaged, or another pair's");
  }
  return keys;
}

std::string read_public_key(const std::string& key_or_file) {
  return config::is_curve_key(key_or_file) ? key_or_file : key_line(key_or_file);
}

void use_curve(zmq::socket_t& socket, const CurveServer& server) {
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, server.keys.secret_key);
  socket.set(zmq::sockopt::zap_domain, kDomain);
}

void use_curve(zmq::socket_t& socket, const CurveClient& client) {
  socket.set(zmq::sockopt::curve_serverkey, client.server_key);
  socket.set(zmq::sockopt::curve_publickey, client.keys.public_key);
  socket.set(zmq::sockopt::curve_secretkey, client.keys.secret_key);
}

void answer_handshake(zmq::socket_t& requests, const std::function<bool(const std::string&)>& allowed) {
  std::vector<zmq::message_t> request;
  if (!zmq::recv_multipart(requests, std::back_inserter(request), zmq::recv_flags::dontwait)) return;
  const std::vector<std::string> reply = judge(request, allowed);
  for (const std::string& part : reply) {
    requests.send(zmq::buffer(part),
                  &part == &reply.back() ? zmq::send_flags::none : zmq::send_flags::sndmore);
  }
}

AllowList::AllowList(zmq::context_t& context, const std::vector<std::string>& public_keys)
    : stop_(context, zmq::socket_type::pair) {
  zmq::socket_t requests(context, zmq::socket_type::rep);
  requests.set(zmq::sockopt::linger, 0);
  requests.bind(kHandshakes);
  const std::string address = "inproc://vigil.allow-list.stop";
  stop_.set(zmq::sockopt::linger, 0);
  stop_.bind(address);
  zmq::socket_t stop(context, zmq::socket_type::pair);
  stop.connect(address);
  thread_ = std::thread([requests = std::move(requests), stop = std::move(stop),
                         allowed = std::set<std::string>(public_keys.begin(), public_keys.end())]() mutable {
    serve(std::move(requests), std::move(stop), allowed);
  });
}

AllowList::~AllowList() {
  stop_.send(zmq::str_buffer("stop"), zmq::send_flags::dontwait);
  thread_.join();
}

}  // namespace vigil::cluster
