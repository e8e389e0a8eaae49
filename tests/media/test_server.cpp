#include "tests/media/test_server.h"

#include <csignal>
#include <stdexcept>
#include <utility>

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vigil::media {
namespace {

void must(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

}  // namespace

TestServer::TestServer(Answer answer) : answer_(std::move(answer)) {
  listen();
}

TestServer::TestServer(Answer answer, const Certificate& certificate) : answer_(std::move(answer)) {
  present(certificate);
  listen();
}

void TestServer::present(const Certificate& certificate) {
  const CertificateText text = make_certificate(certificate);
  const std::lock_guard lock(mutex_);
  tls_ = server_context(text);
  pem_ += text.certificate;
}

std::string TestServer::pem() const {
  const std::lock_guard lock(mutex_);
  return pem_;
}

void TestServer::listen() {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  must(bind(socket_, generic, size) == 0 && ::listen(socket_, 16) == 0 &&
           getsockname(socket_, generic, &size) == 0,
       "cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] {
    while (true) {
      const int peer = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) return;
      ++connections_;
      const std::lock_guard lock(mutex_);
      peers_.push_back(peer);
      threads_.emplace_back([this, peer, tls = tls_] { serve(peer, tls.get()); });
    }
  });
}

TestServer::~TestServer() {
  shutdown(socket_, SHUT_RDWR);
  thread_.join();
  for (const int peer : peers_) shutdown(peer, SHUT_RDWR);
  for (std::thread& thread : threads_) thread.join();
  for (const int peer : peers_) close(peer);
  close(socket_);
}

std::string TestServer::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

void TestServer::serve(int socket, SSL_CTX* tls) {
  // What a client hears that has gone already may raise it.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  SSL* session = tls != nullptr ? SSL_new(tls) : nullptr;
  if (session != nullptr) SSL_set_fd(session, socket);
  if (session == nullptr || SSL_accept(session) == 1) {
    std::string request;
    char bytes[4096];
    while (true) {
      const ssize_t count =
          session != nullptr ? SSL_read(session, bytes, sizeof bytes) : recv(socket, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      request.append(bytes, static_cast<std::size_t>(count));
      {
        const std::lock_guard lock(mutex_);
        received_.append(bytes, static_cast<std::size_t>(count));
      }
      const std::string answer = answer_(request);
      if (answer.empty()) continue;
      request.clear();
      for (std::size_t sent = 0; sent < answer.size();) {
        const int rest = static_cast<int>(answer.size() - sent);
        const ssize_t now = session != nullptr ? SSL_write(session, answer.data() + sent, rest)
                                               : send(socket, answer.data() + sent,
                                                      static_cast<std::size_t>(rest), MSG_NOSIGNAL);
        if (now <= 0) break;
        sent += static_cast<std::size_t>(now);
      }
      if (answer.starts_with("HTTP/")) break;
    }
  }
  if (session != nullptr) {
    SSL_shutdown(session);
    SSL_free(session);
  }
  shutdown(socket, SHUT_RDWR);
}

TestServer::Answer http_answers(std::map<std::string, std::string> answers) {
  return [answers = std::move(answers)](const std::string& request) -> std::string {
    if (request.find("\r\n\r\n") == std::string::npos) return {};
    const std::size_t begin = request.find(' ') + 1;
    const auto found = answers.find(request.substr(begin, request.find(' ', begin) - begin));
    return found == answers.end() ? "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                                  : found->second;
  };
}

std::string http_ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

std::string http_redirect(const std::string& location) {
  return "HTTP/1.1 302 Found\r\nLocation: " + location + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
}

}  // namespace vigil::media
