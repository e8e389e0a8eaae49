// HTTPS, with certificates that the program `openssl` made.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/http/http.h"
#include "cluster/http/http_client.h"
#include "tests/cluster/http/raw_client.h"
#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::RawClient;

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 512> bytes{};
  while (const std::size_t size = std::fread(bytes.data(), 1, bytes.size(), pipe))
    text.append(bytes.data(), size);
  ::pclose(pipe);
  return text;
}

class HttpTls : public ::testing::Test {
 protected:
  void SetUp() override { issue("server", "IP:127.0.0.1,DNS:localhost"); }

  std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  /// A certificate for `names` that issued itself: NAME.pem and NAME.key.
  void issue(const std::string& name, const std::string& names) {
    const std::string said = output_of(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name +
        " -addext subjectAltName=" + names + " -keyout " + file(name + ".key").string() + " -out " +
        file(name + ".pem").string());
    ASSERT_TRUE(std::filesystem::exists(file(name + ".pem"))) << said;
  }

  HttpServer::Options options() {
    return {
        .listen = "127.0.0.1:0",
        .routes = {{.path = "/", .handler = [](const HttpRequest&) { return HttpResponse{.body = "ok"}; }}},
        .tls = TlsFiles{file("server.pem"), file("server.key")},
        .log = [this](const std::string& line) { log_ += line + '\n'; }};
  }

  std::string get(const HttpServer& server, const HttpTrust& trust, const std::string& host = "127.0.0.1") {
    try {
      return http_get("https://" + host + ':' + std::to_string(server.port()) + '/', 5s, trust).body;
    } catch (const HttpError& error) {
      return error.what();
    }
  }

  std::string why_not(const HttpServer::Options& options) {
    try {
      const HttpServer server(options);
      return "no error";
    } catch (const HttpError& error) {
      return error.what();
    }
  }

  const TemporaryFolder folder_;
  std::string log_;
};

TEST_F(HttpTls, AnswersThoseWhoTrustItsCertificate) {
  const HttpServer server(options());
  EXPECT_EQ(get(server, {file("server.pem")}), "ok");
  EXPECT_EQ(get(server, {file("server.pem")}, "localhost"), "ok");
  EXPECT_THAT(get(server, {}), HasSubstr("self-signed certificate; nobody known vouches for it: --ca-file "));
  EXPECT_EQ(get(server, {{}, true}), "ok");
  issue("other", "IP:127.0.0.1");
  EXPECT_THAT(get(server, {file("other.pem")}), HasSubstr("certificate verify failed"));
  EXPECT_THAT(get(server, {file("other.pem")}),
              HasSubstr("; its issuer is not in " + file("other.pem").string()));
  EXPECT_THAT(get(server, {file("none.pem")}), HasSubstr("none.pem: no such file"));
  std::ofstream(file("text.pem")) << "text";
  EXPECT_THAT(get(server, {file("text.pem")}), HasSubstr("text.pem: no certificates in PEM"));
}

TEST_F(HttpTls, ACertificateOfAnotherNameIsNotBelieved) {
  issue("server", "DNS:elsewhere.example");
  const HttpServer server(options());
  EXPECT_THAT(get(server, {file("server.pem")}), EndsWith("certificate verify failed: IP address mismatch"));
  EXPECT_THAT(get(server, {file("server.pem")}, "localhost"),
              EndsWith("certificate verify failed: hostname mismatch"));
}

TEST_F(HttpTls, SpeaksNothingOlderThanTls12) {
  const HttpServer server(options());
  const auto handshake = [&](const std::string& version) {
    return output_of("openssl s_client -" + version + " -cipher ALL:@SECLEVEL=0 -connect 127.0.0.1:" +
                     std::to_string(server.port()) + " </dev/null");
  };
  EXPECT_THAT(handshake("tls1_2"), HasSubstr("Protocol  : TLSv1.2"));
  EXPECT_THAT(handshake("tls1_3"), HasSubstr("New, TLSv1.3"));
  EXPECT_THAT(handshake("tls1_1"), HasSubstr("Cipher is (NONE)"));
}

TEST_F(HttpTls, PlainTextAndSilenceHoldUpNobody) {
  HttpServer::Options brief = options();
  brief.limits.handshake = 100ms;
  const HttpServer server(std::move(brief));
  std::vector<RawClient> silent;
  for (int i = 0; i < 48; ++i) silent.emplace_back(server.port());
  RawClient plain(server.port());
  plain.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(get(server, {file("server.pem")}), "ok");
  EXPECT_EQ(plain.rest().find("ok"), std::string::npos);
  for (RawClient& client : silent) EXPECT_EQ(client.rest(), "") << "ended by the deadline of handshakes";
}

TEST_F(HttpTls, RenewedFilesServeFromTheNextConnectionOn) {
  const HttpServer server(options());
  EXPECT_EQ(get(server, {file("server.pem")}), "ok");
  std::filesystem::copy(file("server.pem"), file("old.pem"));
  issue("next", "IP:127.0.0.1");
  // As tools do that renew certificates: one file, and then the other.
  std::filesystem::rename(file("next.pem"), file("server.pem"));
  EXPECT_EQ(get(server, {file("old.pem")}), "ok") << "the new one has no key yet";
  EXPECT_THAT(log_, HasSubstr("the certificate from before goes on to be used: "));
  std::filesystem::rename(file("next.key"), file("server.key"));
  EXPECT_EQ(get(server, {file("server.pem")}), "ok");
  EXPECT_THAT(get(server, {file("old.pem")}), HasSubstr("certificate verify failed"));
  EXPECT_THAT(log_, HasSubstr("the certificate was read again\n"));
  std::ofstream(file("server.pem")) << "nonsense";
  EXPECT_EQ(get(server, {{}, true}), "ok");
}

TEST_F(HttpTls, FilesThatAreOfNoUseAreNamed) {
  ::chmod(file("server.key").c_str(), 0604);
  EXPECT_EQ(why_not(options()),
            file("server.key").string() + ": everybody may read this private key; chmod 600 it");
  ::chmod(file("server.key").c_str(), 0640);
  EXPECT_EQ(why_not(options()), "no error") << "a group may, as in a mounted secret";
  HttpServer::Options missing = options();
  missing.tls->cert_file = file("none.pem");
  EXPECT_EQ(why_not(missing), file("none.pem").string() + ": no such file");
  issue("other", "IP:127.0.0.1");
  HttpServer::Options foreign = options();
  foreign.tls->key_file = file("other.key");
  EXPECT_THAT(why_not(foreign), HasSubstr("not the private key in PEM of " + file("server.pem").string()));
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  HttpServer::Options fifo = options();
  fifo.tls->cert_file = file("fifo");
  EXPECT_EQ(why_not(fifo), file("fifo").string() + ": is not a regular file");
  output_of("openssl ec -aes256 -passout pass:x -in " + file("server.key").string() + " -out " +
            file("locked.key").string());
  HttpServer::Options locked = options();
  locked.tls->key_file = file("locked.key");
  ::chmod(file("locked.key").c_str(), 0600);
  EXPECT_THAT(why_not(locked), HasSubstr(file("locked.key").string() + ": not the private key in PEM"));
}

}  // namespace
}  // namespace vigil::cluster
