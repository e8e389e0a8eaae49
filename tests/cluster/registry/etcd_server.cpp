#include "tests/cluster/registry/etcd_server.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace vigil::cluster::testing {

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  std::array<char, 512> bytes{};
  while (const std::size_t size = std::fread(bytes.data(), 1, bytes.size(), pipe))
    text.append(bytes.data(), size);
  ::pclose(pipe);
  return text;
}

// Below those that the system gives to whoever asks for any: a test beside this one could be given it first.
std::vector<int> free_ports(std::size_t count) {
  std::random_device random;
  std::uniform_int_distribution<int> choose(20000, 32767);
  std::vector<int> ports;
  std::vector<base::Descriptor> held;
  while (ports.size() < count) {
    const int port = choose(random);
    base::Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(probe.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) continue;
    ports.push_back(port);
    held.push_back(std::move(probe));
  }
  return ports;
}

std::string no_etcd() {
  for (const std::string program : {"etcd", "etcdctl", "setpriv", "openssl"})
    if (output_of("command -v " + program).empty())
      return program + " is not installed (scripts/dependencies installs it)";
  return "";
}

EtcdServer::EtcdServer(Options options) : options_(std::move(options)) {
  const std::vector<int> ports = free_ports(3);
  if (options_.port == 0) options_.port = ports[0];
  if (options_.peer_port == 0) options_.peer_port = ports[1];
  other_port_ = ports[2];
  start();
}

EtcdServer::~EtcdServer() {
  kill();
  // What it said is gone with its folder.
  if (::testing::Test::HasFailure() || std::uncaught_exceptions() != 0) std::cerr << log();
}

std::string EtcdServer::cluster() const {
  return options_.cluster.empty() ? options_.name + '=' + peer_url() : options_.cluster;
}

void EtcdServer::start() {
  const std::string url = options_.scheme + "://" + endpoint();
  std::vector<std::string> command = {"setpriv",
                                      "--pdeathsig",
                                      "KILL",
                                      "etcd",
                                      "--name",
                                      options_.name,
                                      "--data-dir",
                                      folder_ / "data",
                                      "--listen-client-urls",
                                      url,
                                      "--advertise-client-urls",
                                      url,
                                      "--listen-peer-urls",
                                      peer_url(),
                                      "--initial-advertise-peer-urls",
                                      peer_url(),
                                      "--initial-cluster",
                                      cluster(),
                                      "--heartbeat-interval",
                                      "50",
                                      "--election-timeout",
                                      "500",
                                      "--grpc-keepalive-min-time",
                                      "100ms",
                                      "--logger",
                                      "zap"};
  command.insert(command.end(), options_.more.begin(), options_.more.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string log = folder_ / "log";
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const int error = ::posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start etcd");
}

void EtcdServer::kill() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = 0;
}

void EtcdServer::signal(int number) const {
  ::kill(process_, number);
}

void EtcdServer::wait() const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string said;
  while ((said = ctl("endpoint health")).find("is healthy") == std::string::npos)
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("etcd: " + said + log());
}

std::string EtcdServer::ctl(const std::string& arguments) const {
  return output_of("ETCDCTL_API=3 etcdctl --endpoints " + options_.scheme + "://" + endpoint() + ' ' +
                   options_.client + ' ' + arguments);
}

void EtcdServer::save(const std::string& file) const {
  const std::string said = ctl("snapshot save " + file);
  if (!std::filesystem::exists(file)) throw std::runtime_error("no backup: " + said);
}

void EtcdServer::restore(const std::string& file, const std::string& token) {
  std::filesystem::remove_all(folder_ / "data");
  const std::string said =
      ctl("snapshot restore " + file + " --name " + options_.name + " --data-dir " + (folder_ / "data") +
          " --initial-cluster " + cluster() + " --initial-advertise-peer-urls " + peer_url() +
          " --initial-cluster-token " + token);
  if (!std::filesystem::exists(folder_ / "data")) throw std::runtime_error("not restored: " + said);
}

std::string EtcdServer::log() const {
  std::ifstream stream(folder_ / "log");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace vigil::cluster::testing
