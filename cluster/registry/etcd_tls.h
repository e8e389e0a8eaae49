// Certificates of a client of etcd: read, checked, read again when they change; and why a handshake failed.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace vigil::cluster {

/// Options that are of no use: one line.
class RegistryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct EtcdTlsFiles {
  /// In PEM. Who issues the servers' certificates.
  std::filesystem::path ca_file;
  /// Both or none: what the servers want to see of a client.
  std::filesystem::path cert_file;
  std::filesystem::path key_file;
};

/// Not thread-safe.
class EtcdTls {
 public:
  struct Material {
    std::string ca;
    std::string cert;
    std::string key;
    friend bool operator==(const Material&, const Material&) = default;
  };

  /// Throws RegistryError: a file that is missing or no PEM, a key that is not the certificate's or that
  /// everybody may read. `log` may be empty.
  EtcdTls(EtcdTlsFiles files, std::function<void(const std::string&)> log);

  /// For a new connection: what the files hold now. While that is of no use, what they held before goes on to
  /// be used, and the log says so.
  const Material& current();

  /// Why a handshake with this server fails, in a few words; nothing if it does not, or if that cannot be
  /// told in 300 ms, for which it blocks at most. `address`: in numbers, with a port. `endpoint`: with the
  /// name that the certificate should have.
  std::optional<std::string> why_not(const std::string& address, const std::string& endpoint) const;

 private:
  const EtcdTlsFiles files_;
  const std::function<void(const std::string&)> log_;
  Material material_;
  /// What was of no use, so that the log says so once.
  std::string complaint_;
};

}  // namespace vigil::cluster
