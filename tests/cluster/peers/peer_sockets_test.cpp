// Connections between nodes: whom they believe, and what strangers can do to them.
#include "cluster/peers/peer_sockets.h"

#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/stat.h>

#include "tests/cluster/http/raw_client.h"
#include "tests/cluster/peers/letter.h"
#include "tests/cluster/peers/node_folders.h"
#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::Authority;
using ::testing::HasSubstr;
using testing::Letter;
using testing::RawClient;
using ::testing::StartsWith;

using Dialed = std::variant<SecureSocket, std::string>;

class PeerSocketsTest : public ::testing::Test {
 protected:
  std::filesystem::path folder(const std::string& node) const { return folder_ / node; }

  PeerSockets::Options options(const std::string& node) {
    PeerSockets::Options options;
    if (!node.empty()) options.certificates = std::make_shared<NodeCertificates>(folder(node), nullptr);
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_ += line + '\n';
      said_.notify_all();
    };
    return options;
  }

  /// Of a node that speaks first, in x, to whoever comes.
  PeerAddress listen(PeerSockets& sockets) {
    return sockets.listen({"127.0.0.1", 0}, [this](SecureSocket socket) {
      std::size_t bytes = 0;
      socket.write("xxxxxxxx", 8, bytes);
      accepted_.put(std::move(socket));
    });
  }

  /// The first byte that it gets, or why not.
  std::string dial(PeerSockets& sockets, const PeerAddress& address) {
    Letter<Dialed> letter;
    sockets.dial(address, [&letter](Dialed result) { letter.put(std::move(result)); });
    std::optional<Dialed> result = letter.take();
    if (!result) return "nobody answered";
    if (auto* reason = std::get_if<std::string>(&*result)) return *reason;
    auto& socket = std::get<SecureSocket>(*result);
    char first = 0;
    std::size_t bytes = 0;
    pollfd ready{socket.descriptor(), POLLIN, 0};
    if (socket.pending() == 0) ::poll(&ready, 1, 10'000);
    socket.read(&first, 1, bytes);
    return {first};
  }

  bool logged(const std::string& line) {
    std::unique_lock lock(mutex_);
    return said_.wait_for(lock, 10s, [&] { return log_.find(line) != std::string::npos; });
  }

  const TemporaryFolder folder_;
  const Authority site_;
  Letter<SecureSocket> accepted_;
  std::mutex mutex_;
  std::condition_variable said_;
  std::string log_;
};

TEST_F(PeerSocketsTest, ConnectsNodesOfOneAuthority) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  site_.issue(folder("b"), "DNS:b");
  PeerSockets a(options("a"));
  PeerSockets b(options("b"));
  EXPECT_EQ(dial(b, listen(a)), "x");
  EXPECT_TRUE(accepted_.take());
}

TEST_F(PeerSocketsTest, BelievesACertificateForAnotherHostNotAtAll) {
  site_.issue(folder("a"), "IP:127.0.0.2,DNS:a.example");
  site_.issue(folder("b"), "DNS:b");
  PeerSockets a(options("a"));
  PeerSockets b(options("b"));
  const PeerAddress address = listen(a);
  EXPECT_THAT(dial(b, address), HasSubstr("its certificate is refused: IP address mismatch"));
  EXPECT_THAT(dial(b, {"localhost", address.port}),
              HasSubstr("no connection to localhost:" + std::to_string(address.port) +
                        ": its certificate is refused: hostname mismatch"));
  site_.issue(folder("a"), "DNS:localhost");
  EXPECT_EQ(dial(b, {"localhost", address.port}), "x");
}

TEST_F(PeerSocketsTest, TellsBothSidesThatAnAuthorityIsAnothers) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  const Authority elsewhere("elsewhere");
  elsewhere.issue(folder("b"), "IP:127.0.0.1");
  PeerSockets a(options("a"));
  PeerSockets b(options("b"));
  EXPECT_THAT(dial(b, listen(a)), HasSubstr("its certificate is refused: "));
  EXPECT_TRUE(logged("peers: refused a connection of 127.0.0.1:"));

  // The other way it is the listening side that does not believe: the dialer hears of it, too.
  Authority::believe(folder("b"), {&site_, &elsewhere});
  PeerSockets c(options("b"));
  EXPECT_THAT(dial(c, listen(a)), HasSubstr("no TLS: tlsv1 alert unknown ca"));
  EXPECT_TRUE(logged("peers: refused a connection of 127.0.0.1:"));
  EXPECT_TRUE(logged("its certificate is refused: "));
}

TEST_F(PeerSocketsTest, RefusesCertificatesThatAreOverOrNotYetValid) {
  site_.issue(folder("b"), "IP:127.0.0.1");
  PeerSockets b(options("b"));
  site_.issue(folder("a"), "IP:127.0.0.1");
  const PeerSockets::Options own = options("a");
  PeerSockets a(own);
  const PeerAddress address = listen(a);
  // Its own would not let a node begin with them: this is what it has when time has passed.
  const auto becomes = [&](long from, long until) {
    site_.issue(folder("later"), "IP:127.0.0.1", from, until);
    SSL_CTX* const context = own.certificates->current().get();
    SSL_CTX_use_certificate_chain_file(context, (folder("later") / "tls.crt").c_str());
    SSL_CTX_use_PrivateKey_file(context, (folder("later") / "tls.key").c_str(), SSL_FILETYPE_PEM);
  };
  becomes(-3600, -60);
  EXPECT_THAT(dial(b, address), HasSubstr("its certificate is refused: certificate has expired"));
  becomes(3600, 7200);
  EXPECT_THAT(dial(b, address), HasSubstr("its certificate is refused: certificate is not yet valid"));
}

TEST_F(PeerSocketsTest, TakesUpCertificatesThatWereReplaced) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  site_.issue(folder("b"), "IP:127.0.0.1");
  PeerSockets a(options("a"));
  PeerSockets b(options("b"));
  const PeerAddress address = listen(a);
  ASSERT_EQ(dial(b, address), "x");
  const Authority next("next");
  next.issue(folder("a"), "IP:127.0.0.1");
  EXPECT_THAT(dial(b, address), HasSubstr("its certificate is refused"));
  next.issue(folder("b"), "IP:127.0.0.1");
  EXPECT_EQ(dial(b, address), "x");
  // What is of no use does not replace what was.
  std::filesystem::resize_file(folder("a") / "tls.crt", 10);
  EXPECT_EQ(dial(b, address), "x");
}

TEST_F(PeerSocketsTest, NeedsAllThreeFiles) {
  const auto why_not = [this] {
    try {
      NodeCertificates(folder("a"), nullptr);
      return std::string("no error");
    } catch (const CertificateError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(why_not(), (folder("a") / "ca.crt").string() + ": no such file");
  site_.issue(folder("a"), "IP:127.0.0.1");
  EXPECT_EQ(why_not(), "no error");
  ::chmod((folder("a") / "tls.key").c_str(), 0644);
  EXPECT_THAT(why_not(), HasSubstr("tls.key: everybody may read this private key"));
  site_.issue(folder("other"), "IP:127.0.0.1");
  std::filesystem::rename(folder("other") / "tls.key", folder("a") / "tls.key");
  EXPECT_THAT(why_not(),
              HasSubstr("tls.key: not the private key in PEM of " + (folder("a") / "tls.crt").string()));
  std::filesystem::resize_file(folder("a") / "ca.crt", 0);
  EXPECT_THAT(why_not(), HasSubstr("ca.crt: no certificates in PEM"));
}

TEST_F(PeerSocketsTest, ItsOwnCertificateHasToBeForWhereItIsReached) {
  const auto why_not = [this](const std::string& names, const std::string& host) {
    site_.issue(folder("a"), names);
    try {
      NodeCertificates(folder("a"), nullptr, host);
      return std::string();
    } catch (const CertificateError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(
      why_not("DNS:b.example,IP:10.0.0.7,IP:fd00::7", "a.example"),
      (folder("a") / "tls.crt").string() +
          ": is for b.example, 10.0.0.7, fd00::7, and not for a.example, where other nodes are to reach "
          "this one (cluster.advertise; if that is empty, the host of cluster.listen)");
  for (const char* host : {"b.example", "B.Example", "10.0.0.7", "fd00::7", "fd00:0::7", ""})
    EXPECT_EQ(why_not("DNS:b.example,IP:10.0.0.7,IP:fd00::7", host), "") << host;
  EXPECT_THAT(why_not("IP:10.0.0.7", "10.0.0.8"), HasSubstr("and not for 10.0.0.8"));
  EXPECT_THAT(why_not("DNS:10.0.0.7", "10.0.0.7"), HasSubstr("and not for 10.0.0.7")) << "it is no name";
  EXPECT_THAT(why_not("email:a@b.example", "b.example"), HasSubstr("is for no name and no address, and not"));
  EXPECT_EQ(why_not("DNS:*.nodes.example", "cam-1.nodes.example"), "");
  EXPECT_THAT(why_not("DNS:*.nodes.example", "cam-1.city.nodes.example"),
              HasSubstr("is for *.nodes.example"));
  EXPECT_THAT(why_not("DNS:cam-*.example", "cam-1.example"), HasSubstr("and not for cam-1.example"));
}

TEST_F(PeerSocketsTest, OneForAnotherHostDoesNotReplaceTheOneFromBefore) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  site_.issue(folder("b"), "IP:127.0.0.1");
  PeerSockets::Options own = options("");
  own.certificates = std::make_shared<NodeCertificates>(folder("a"), own.log, "127.0.0.1");
  PeerSockets a(own);
  PeerSockets b(options("b"));
  const PeerAddress address = listen(a);
  site_.issue(folder("a"), "IP:127.0.0.2");
  EXPECT_EQ(dial(b, address), "x");
  EXPECT_TRUE(logged("peers: the certificates from before go on to be used: " +
                     (folder("a") / "tls.crt").string() + ": is for 127.0.0.2, and not for 127.0.0.1"));
  site_.issue(folder("a"), "IP:127.0.0.2,IP:127.0.0.1");
  EXPECT_EQ(dial(b, address), "x");
  EXPECT_TRUE(logged("were read again"));
}

TEST_F(PeerSocketsTest, WhatIsWrongWithNewOnesIsToldThoughNobodyConnects) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  PeerSockets::Options own = options("");
  own.certificates = std::make_shared<NodeCertificates>(folder("a"), own.log, "127.0.0.1");
  own.look = 10ms;
  const PeerSockets a(own);
  site_.issue(folder("a"), "IP:127.0.0.2");
  EXPECT_TRUE(logged("tls.crt: is for 127.0.0.2, and not for 127.0.0.1"));
  site_.issue(folder("a"), "IP:127.0.0.1");
  EXPECT_TRUE(logged("were read again"));
}

TEST_F(PeerSocketsTest, ItsOwnCertificateHasToBeOfTheAuthoritiesThatItBelieves) {
  const std::string certificate = (folder("a") / "tls.crt").string();
  const std::string not_of = certificate + ": is not of " + (folder("a") / "ca.crt").string() + ": ";
  const auto why_not = [this] {
    try {
      NodeCertificates(folder("a"), nullptr, "127.0.0.1");
      return std::string();
    } catch (const CertificateError& error) {
      return std::string(error.what());
    }
  };
  const Authority elsewhere("elsewhere");
  site_.issue(folder("a"), "IP:127.0.0.1");
  EXPECT_EQ(why_not(), "");
  Authority::believe(folder("a"), {&elsewhere});
  EXPECT_EQ(why_not(), not_of + "unable to get local issuer certificate");
  // One of the same name has another key.
  const Authority namesake("site");
  Authority::believe(folder("a"), {&namesake});
  EXPECT_EQ(why_not(), not_of + "certificate signature failure");
  Authority::believe(folder("a"), {&elsewhere, &site_});
  EXPECT_EQ(why_not(), "");
  const Authority between("between", site_);
  between.issue(folder("a"), "IP:127.0.0.1");
  EXPECT_EQ(why_not(), "") << "what lies between comes with it";
  Authority::believe(folder("a"), {&elsewhere});
  EXPECT_EQ(why_not(), not_of + "unable to get local issuer certificate (CN = between)");
  site_.issue(folder("a"), "IP:127.0.0.1", -3600, -60);
  EXPECT_THAT(why_not(), StartsWith(certificate + ": has expired: it was valid until "));
  site_.issue(folder("a"), "IP:127.0.0.1", 3600, 7200);
  EXPECT_THAT(why_not(), StartsWith(certificate + ": is not yet valid: it will be from "));
  // A node is a server and a client.
  for (const char* usage : {"serverAuth", "clientAuth"}) {
    site_.issue(folder("a"), "IP:127.0.0.1", -60, 3600, usage);
    EXPECT_THAT(why_not(), AllOf(StartsWith(not_of), HasSubstr("certificate purpose"))) << usage;
  }
  site_.issue(folder("a"), "IP:127.0.0.1", -60, 3600, "serverAuth,clientAuth");
  EXPECT_EQ(why_not(), "");
}

TEST_F(PeerSocketsTest, OneThatItsIssuersDoNotVouchForDoesNotReplaceTheOneFromBefore) {
  for (const char* node : {"a", "b"}) site_.issue(folder(node), "IP:127.0.0.1");
  PeerSockets::Options own = options("");
  own.certificates = std::make_shared<NodeCertificates>(folder("a"), own.log, "127.0.0.1");
  PeerSockets a(own);
  PeerSockets b(options("b"));
  const PeerAddress address = listen(a);
  const std::string kept = "peers: the certificates from before go on to be used: " + folder("a").string();
  const Authority next("next");
  next.issue(folder("a"), "IP:127.0.0.1");
  Authority::believe(folder("a"), {&site_});
  EXPECT_EQ(dial(b, address), "x");
  EXPECT_TRUE(logged(kept + "/tls.crt: is not of " + folder("a").string() +
                     "/ca.crt: unable to get local issuer certificate\n"));
  site_.issue(folder("a"), "IP:127.0.0.1", -3600, -60);
  EXPECT_EQ(dial(b, address), "x");
  EXPECT_TRUE(logged(kept + "/tls.crt: has expired: it was valid until "));
  site_.issue(folder("a"), "IP:127.0.0.1", 3600, 7200);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(dial(b, address), "x");
  const std::string not_yet = kept + "/tls.crt: is not yet valid: it will be from ";
  ASSERT_TRUE(logged(not_yet));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(log_.find(not_yet), log_.rfind(not_yet)) << "it is said once";
  EXPECT_EQ(log_.find("were read again"), std::string::npos);
}

TEST_F(PeerSocketsTest, OneThatIsNotYetValidIsTakenUpWhenItIs) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  PeerSockets::Options own = options("");
  own.certificates = std::make_shared<NodeCertificates>(folder("a"), own.log);
  // The machine's clock says when.
  site_.issue(folder("a"), "IP:127.0.0.1", 2, 3600);
  const auto is_taken_up = [this] {
    const std::lock_guard lock(mutex_);
    return log_.find("were read again") != std::string::npos;
  };
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!is_taken_up() && std::chrono::steady_clock::now() < end) own.certificates->current();
  EXPECT_TRUE(is_taken_up());
}

TEST_F(PeerSocketsTest, AuthoritiesAreReplacedOneAfterTheOther) {
  const Authority next("next");
  for (const char* node : {"a", "b"}) site_.issue(folder(node), "IP:127.0.0.1");
  PeerSockets a(options("a"));
  PeerSockets b(options("b"));
  const PeerAddress to_a = listen(a);
  const PeerAddress to_b = listen(b);
  const auto works = [&] {
    EXPECT_EQ(dial(b, to_a), "x");
    EXPECT_EQ(dial(a, to_b), "x");
  };
  // Both are believed, then each node has a certificate of the new one, then that alone is believed.
  for (const char* node : {"a", "b"}) {
    Authority::believe(folder(node), {&site_, &next});
    works();
  }
  for (const char* node : {"a", "b"}) {
    next.issue(folder(node), "IP:127.0.0.1");
    Authority::believe(folder(node), {&site_, &next});
    works();
  }
  for (const char* node : {"a", "b"}) {
    Authority::believe(folder(node), {&next});
    works();
  }
  site_.issue(folder("c"), "IP:127.0.0.1");
  Authority::believe(folder("c"), {&site_, &next});
  PeerSockets c(options("c"));
  EXPECT_THAT(dial(c, to_a), HasSubstr("no TLS: tlsv1 alert unknown ca"));
}

TEST_F(PeerSocketsTest, KeepsPlainTextOnThisMachine) {
  PeerSockets a(options(""));
  PeerSockets b(options(""));
  EXPECT_EQ(dial(b, listen(a)), "x");
  try {
    a.listen({"0.0.0.0", 0}, [](SecureSocket) {});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("0.0.0.0:0 is beyond this machine, and there are no certificates (cluster.tls_dir)"));
  }
  PeerSockets::Options told = options("");
  told.allow_plain_text = true;
  PeerSockets c(told);
  EXPECT_GT(c.listen({"0.0.0.0", 0}, [](SecureSocket) {}).port, 0);
}

TEST_F(PeerSocketsTest, SaysWhoDoesNotSpeakTls) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  PeerSockets a(options("a"));
  RawClient stranger(listen(a).port);
  stranger.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(logged("no TLS: http request"));
  PeerSockets plain(options(""));
  EXPECT_THAT(dial(a, listen(plain)), HasSubstr("no TLS: wrong version number"));
}

TEST_F(PeerSocketsTest, IsHeldUpByNobodyWhoSaysNothing) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  PeerSockets::Options few = options("a");
  few.handshakes = 2;
  few.patience = 60s;
  PeerSockets a(few);
  const PeerAddress address = listen(a);
  RawClient first(address.port);
  RawClient second(address.port);
  EXPECT_EQ(dial(a, address), "x");
  EXPECT_TRUE(logged("too many connections that say nothing"));
  // The first of them had to go.
  EXPECT_EQ(first.rest(), "");
}

TEST_F(PeerSocketsTest, GivesUpOnSilence) {
  site_.issue(folder("a"), "IP:127.0.0.1");
  PeerSockets::Options hasty = options("a");
  hasty.patience = 100ms;
  PeerSockets a(hasty);
  RawClient stranger(listen(a).port);
  EXPECT_TRUE(logged("no handshake within its time"));
  EXPECT_EQ(stranger.rest(), "");

  PeerSockets silent(options(""));
  const PeerAddress address =
      silent.listen({"127.0.0.1", 0}, [this](SecureSocket socket) { accepted_.put(std::move(socket)); });
  EXPECT_THAT(dial(a, address), HasSubstr("no connection within its time"));
}

TEST_F(PeerSocketsTest, SaysWhyThereIsNoConnection) {
  PeerSockets a(options(""));
  EXPECT_THAT(dial(a, {"127.0.0.1", 1}), HasSubstr("no connection to 127.0.0.1:1: Connection refused"));
  EXPECT_THAT(dial(a, {"no.such.name.invalid", 1}), HasSubstr("its name is unknown"));
}

TEST(PeerAddress, IsAHostAndAPort) {
  EXPECT_EQ(parse_peer("node-1.vigil:7400"), (PeerAddress{"node-1.vigil", 7400}));
  EXPECT_EQ(parse_peer("[::1]:7400"), (PeerAddress{"::1", 7400}));
  EXPECT_EQ(text_of({"::1", 7400}), "[::1]:7400");
  EXPECT_EQ(text_of({"10.0.0.1", 7400}), "10.0.0.1:7400");
  for (const char* wrong :
       {"", ":", "a", "a:", ":1", "a:b", "a:65536", "a:-1", "a:1x", "::1:7400", "a b:1", "[]:1", "tcp://a:1"})
    EXPECT_FALSE(parse_peer(wrong)) << wrong;
}

TEST(PeerAddress, OthersAreToldTheOneThatIsAdvertised) {
  EXPECT_EQ(told_address({"10.0.0.1", 7400}, ""), (PeerAddress{"10.0.0.1", 7400}));
  EXPECT_EQ(told_address({"0.0.0.0", 7400}, "node-1.vigil"), (PeerAddress{"node-1.vigil", 7400}));
  const PeerAddress of_six = told_address({"::", 7401}, "[fd00::7]");
  EXPECT_EQ(of_six, (PeerAddress{"fd00::7", 7401}));
  EXPECT_EQ(parse_peer(text_of(of_six)), of_six);
}

}  // namespace
}  // namespace vigil::cluster
