// A server of etcd that a test starts, on ports and in a folder of its own.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "tests/temporary_folder.h"

namespace vigil::cluster::testing {

/// What a shell says to a command, both streams.
std::string output_of(const std::string& command);

/// Different ports of this machine that nobody listens on.
std::vector<int> free_ports(std::size_t count);

/// Why the tests cannot start etcd; empty if they can.
std::string no_etcd();

/// One server, by itself unless the options say more; killed with the object, and with the test.
class EtcdServer {
 public:
  struct Options {
    std::string name = "one";
    /// 0: any.
    int port = 0;
    int peer_port = 0;
    /// NAME=URL,…; empty: it is alone.
    std::string cluster = {};
    /// Scheme and files of what clients talk to.
    std::string scheme = "http";
    std::vector<std::string> more = {};
    /// Other arguments of etcdctl.
    std::string client = {};
  };

  EtcdServer() : EtcdServer(Options()) {}
  explicit EtcdServer(Options options);
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(options_.port); }

  /// As it was when it was killed, with its data.
  void start();
  void kill();
  /// To another port, and back the next time; while it is not running.
  void move() { std::swap(options_.port, other_port_); }
  void signal(int number) const;

  /// Waits until it has a part in its cluster; throws if it does not.
  void wait() const;

  /// What etcdctl says.
  std::string ctl(const std::string& arguments) const;

  /// Of what the server keeps, a backup in this file; and back to it (while it is not running), as one who
  /// restores a cluster does it.
  void save(const std::string& file) const;
  void restore(const std::string& file, const std::string& token = "etcd-cluster");

  std::string log() const;

 private:
  std::string peer_url() const { return "http://127.0.0.1:" + std::to_string(options_.peer_port); }
  std::string cluster() const;

  Options options_;
  int other_port_ = 0;
  const TemporaryFolder folder_;
  pid_t process_ = 0;
};

}  // namespace vigil::cluster::testing
