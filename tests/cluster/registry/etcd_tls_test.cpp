// etcd behind TLS, with certificates that the program `openssl` made.
#include "cluster/registry/etcd_tls.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cluster/registry/etcd_registry.h"
#include "tests/cluster/registry/asking.h"
#include "tests/cluster/registry/etcd_server.h"

namespace vigil::cluster::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = RegistryFailure::Kind;

class EtcdTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_etcd(); !why.empty()) GTEST_SKIP() << why;
    authority("ca");
    issue("server", "ca", "IP:127.0.0.1,DNS:localhost");
    issue("client", "ca", "DNS:client");
  }

  std::string file(const std::string& name) const { return folder_ / name; }

  void authority(const std::string& name) {
    output_of("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=" +
              name + " -keyout " + file(name + ".key") + " -out " + file(name + ".pem"));
    ASSERT_TRUE(std::filesystem::exists(file(name + ".pem")));
  }
  /// NAME.pem and NAME.key, for these names; days below 0: it has expired.
  void issue(const std::string& name, const std::string& by, const std::string& names, int days = 5) {
    std::ofstream(file("names")) << "subjectAltName=" << names
                                 << "\nextendedKeyUsage=serverAuth,clientAuth\n";
    const std::string said =
        output_of("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
                  " -keyout " + file(name + ".key") + " -out " + file("request") +
                  " && openssl x509 -req -in " + file("request") + " -CA " + file(by + ".pem") + " -CAkey " +
                  file(by + ".key") + " -set_serial " + std::to_string(++serial_) + " -days " +
                  std::to_string(days) + " -extfile " + file("names") + " -out " + file(name + ".pem"));
    ASSERT_TRUE(std::filesystem::exists(file(name + ".pem"))) << said;
  }

  EtcdServer::Options server(const std::string& certificate) const {
    return {.scheme = "https",
            .more = {"--cert-file", file(certificate + ".pem"), "--key-file", file(certificate + ".key"),
                     "--client-cert-auth", "--trusted-ca-file", file("ca.pem")},
            .client = "--cacert " + file("ca.pem") + " --cert " + file("client.pem") + " --key " +
                      file("client.key")};
  }
  EtcdRegistry::Options options(const std::string& endpoint, const std::string& ca,
                                const std::string& client) {
    EtcdTlsFiles files{.ca_file = file(ca + ".pem"), .cert_file = {}, .key_file = {}};
    if (!client.empty()) {
      files.cert_file = file(client + ".pem");
      files.key_file = file(client + ".key");
    }
    return {.endpoints = {endpoint}, .tls = files, .time_limit = 10s, .log = [this](const std::string& line) {
              const std::lock_guard lock(mutex_);
              log_ += line + '\n';
            }};
  }
  RegistryResult<RegistryRange> range(const EtcdRegistry::Options& options) {
    EtcdRegistry registry(options);
    return Asking(registry).range("");
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  const TemporaryFolder folder_;
  int serial_ = 0;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(EtcdTlsTest, WhoHasTheRightCertificatesIsAnswered) {
  const EtcdServer at(server("server"));
  EXPECT_NE(good(range(options(at.endpoint(), "ca", "client"))).header.revision, 0);
  const std::string by_name = "localhost" + at.endpoint().substr(at.endpoint().find(':'));
  EXPECT_NE(good(range(options(by_name, "ca", "client"))).header.revision, 0);
}

TEST_F(EtcdTlsTest, WhoHasTheWrongOnesIsRefusedWithTheReason) {
  authority("other");
  issue("alien", "other", "DNS:client");
  issue("old", "ca", "DNS:client", -1);
  const EtcdServer at(server("server"));
  good(range(options(at.endpoint(), "ca", "client")));
  const auto why_not = [&](const std::string& ca, const std::string& client) {
    const auto begin = std::chrono::steady_clock::now();
    const RegistryFailure failure = bad(range(options(at.endpoint(), ca, client)));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << "at once";
    EXPECT_EQ(failure.kind, Kind::refused) << failure.text;
    EXPECT_THAT(failure.text, StartsWith("registry: etcd at " + at.endpoint() + ": "));
    return failure.text;
  };
  EXPECT_THAT(why_not("other", "client"),
              HasSubstr("the server's certificate: unable to get local issuer certificate"));
  EXPECT_THAT(why_not("ca", ""), HasSubstr("the server wants a client's certificate: "));
  EXPECT_THAT(why_not("ca", "alien"),
              HasSubstr("the server does not take the client's certificate " + file("alien.pem") + ": "));
  EXPECT_THAT(why_not("ca", "old"), HasSubstr(file("old.pem") + ": certificate has expired: "));
}

TEST_F(EtcdTlsTest, AServerWithTheWrongCertificateIsRefusedWithTheReason) {
  issue("elsewhere", "ca", "DNS:elsewhere.example");
  issue("expired", "ca", "IP:127.0.0.1,DNS:localhost", -1);
  const EtcdServer elsewhere(server("elsewhere")), expired(server("expired"));
  const auto why_not = [&](const EtcdServer& at, const std::string& host) {
    const std::string endpoint = host + at.endpoint().substr(at.endpoint().find(':'));
    const RegistryFailure failure = bad(range(options(endpoint, "ca", "client")));
    EXPECT_EQ(failure.kind, Kind::refused) << failure.text;
    return failure.text;
  };
  EXPECT_THAT(why_not(elsewhere, "127.0.0.1"), HasSubstr("the server's certificate: IP address mismatch"));
  EXPECT_THAT(why_not(elsewhere, "localhost"), HasSubstr("the server's certificate: hostname mismatch"));
  EXPECT_THAT(why_not(expired, "127.0.0.1"), HasSubstr("the server's certificate: certificate has expired"));
}

TEST_F(EtcdTlsTest, PlainTextAndTlsDoNotMix) {
  const EtcdServer secure(server("server")), plain;
  EtcdRegistry::Options without{.endpoints = {secure.endpoint()}, .plain_text = true, .time_limit = 1s};
  EXPECT_EQ(bad(range(without)).kind, Kind::unreachable);
  EXPECT_THAT(bad(range(options(plain.endpoint(), "ca", "client"))).text, HasSubstr("TLS: "));
}

TEST_F(EtcdTlsTest, RenewedFilesServeFromTheNextConnectionOn) {
  issue("short", "ca", "DNS:client");
  EtcdServer at(server("server"));
  EtcdRegistry registry(options(at.endpoint(), "ca", "short"));
  Asking ask(registry);
  good(ask.put("a", "1"));
  // The cluster moves to another authority: servers and clients get new files, and the old ones are of no
  // use.
  authority("ca");
  issue("server", "ca", "IP:127.0.0.1,DNS:localhost");
  std::filesystem::rename(file("short.key"), file("older.key"));
  EXPECT_EQ(std::get<RegistryCommit>(ask.put("a", "2")).made, true) << "the connection goes on";
  at.kill();
  at.start();
  issue("short", "ca", "DNS:client");
  EXPECT_EQ(good(ask.range("a")).entries[0].value, "2");
  EXPECT_THAT(log(), HasSubstr("registry: the certificates were read again"));
}

TEST_F(EtcdTlsTest, FilesThatAreOfNoUseAreNamed) {
  const auto why_not = [&](const EtcdTlsFiles& files) -> std::string {
    try {
      EtcdTls tls(files, {});
      return "none";
    } catch (const RegistryError& error) {
      return error.what();
    }
  };
  const EtcdTlsFiles good_files{file("ca.pem"), file("client.pem"), file("client.key")};
  EXPECT_EQ(why_not(good_files), "none");
  EXPECT_EQ(why_not({file("ca.pem"), {}, {}}), "none");
  EXPECT_EQ(why_not({file("none.pem"), {}, {}}), file("none.pem") + ": no such file");
  EXPECT_EQ(why_not({folder_.path(), {}, {}}), folder_.path().string() + ": is not a regular file");
  EXPECT_EQ(why_not({file("ca.key"), {}, {}}), file("ca.key") + ": no certificates in PEM");
  EXPECT_EQ(why_not({file("ca.pem"), file("client.pem"), {}}),
            "registry: a client's certificate and its private key come together");
  EXPECT_EQ(why_not({file("ca.pem"), file("client.pem"), file("server.key")}),
            file("server.key") + ": not the private key in PEM of " + file("client.pem"));
  output_of("openssl ec -aes256 -passout pass:x -in " + file("client.key") + " -out " + file("locked.key"));
  ::chmod(file("locked.key").c_str(), 0600);
  EXPECT_THAT(why_not({file("ca.pem"), file("client.pem"), file("locked.key")}),
              HasSubstr("not the private key"));
  ::chmod(file("client.key").c_str(), 0604);
  EXPECT_EQ(why_not(good_files), file("client.key") + ": everybody may read this private key; chmod 600 it");
}

TEST_F(EtcdTlsTest, WhileNewFilesAreOfNoUseTheOldOnesServe) {
  std::string log;
  EtcdTls tls({file("ca.pem"), file("client.pem"), file("client.key")},
              [&](const std::string& line) { log += line + '\n'; });
  const EtcdTls::Material before = tls.current();
  EXPECT_EQ(log, "");
  issue("next", "ca", "DNS:client");
  // As tools do that renew certificates: one file, and then the other.
  std::filesystem::rename(file("next.pem"), file("client.pem"));
  EXPECT_EQ(tls.current(), before);
  EXPECT_EQ(tls.current(), before);
  EXPECT_EQ(log, "registry: the certificates from before go on to be used: " + file("client.key") +
                     ": not the private key in PEM of " + file("client.pem") + '\n');
  std::filesystem::rename(file("next.key"), file("client.key"));
  EXPECT_NE(tls.current(), before);
  EXPECT_THAT(log, HasSubstr("registry: the certificates were read again\n"));
}

}  // namespace
}  // namespace vigil::cluster::testing
