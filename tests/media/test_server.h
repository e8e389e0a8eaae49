// A server of this machine for tests: whatever it is asked it answers with a function, and it remembers what
// it was asked. With TLS or without.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/media/certificate.h"

namespace vigil::media {

class TestServer {
 public:
  /// The answer to what a client has sent so far; empty: wait for more. Called by the server's threads.
  using Answer = std::function<std::string(const std::string& request)>;

  explicit TestServer(Answer answer);
  /// With TLS, and a certificate that it signed itself.
  TestServer(Answer answer, const Certificate& certificate);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return port_; }
  /// "127.0.0.1:PORT"
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  /// The certificate in PEM, and those before it.
  std::string pem() const;

  /// Shows another certificate to whoever connects from now on.
  void present(const Certificate& certificate);

  /// How often somebody connected.
  int connections() const { return connections_; }
  /// All that clients sent, decrypted.
  std::string received() const;

 private:
  void listen();
  /// `tls`: null without.
  void serve(int socket, ssl_ctx_st* tls);

  Answer answer_;
  int socket_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> tls_;
  std::string pem_;
  std::string received_;
  std::vector<int> peers_;
  std::vector<std::thread> threads_;
  std::thread thread_;
};

/// An answer for HTTP: of each path (with its query) the whole answer, 404 for any other.
TestServer::Answer http_answers(std::map<std::string, std::string> answers);
/// A whole answer of HTTP.
std::string http_ok(const std::string& body);
std::string http_redirect(const std::string& location);

}  // namespace vigil::media
