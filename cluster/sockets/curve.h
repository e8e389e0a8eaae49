// Who may subscribe: CURVE keys of ZeroMQ, and the list of clients that a server lets in.
#pragma once

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <zmq.hpp>

namespace vigil::cluster {

/// A key or its file that is not what it should be. The message names the file and never the key.
class KeyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Both in Z85, 40 characters. The secret half is for sockets only: it does not belong into a message or log.
struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

KeyPair make_key_pair();

/// Writes the secret key to `file`, readable by its owner alone, and the public key to `file`.pub. Throws
/// KeyError if one of them exists.
void write_key_files(const std::filesystem::path& file, const KeyPair& keys);

/// The pair whose secret key lies in this file, which must be open to its owner alone. Lines that start with
/// '#' are comments. If `file`.pub is there, it has to be of the same pair. Throws KeyError.
KeyPair read_secret_key(const std::filesystem::path& file);

/// A public key: the text itself if it is one, otherwise what lies in the file of this name. Throws KeyError.
std::string read_public_key(const std::string& key_or_file);

struct CurveServer {
  KeyPair keys;
  /// Public keys of the clients that are let in; nobody else is.
  std::vector<std::string> allow;
};

struct CurveClient {
  KeyPair keys;
  /// The server's public key.
  std::string server_key;
};

/// To be called before the socket is bound or connected.
void use_curve(zmq::socket_t& socket, const CurveServer& server);
void use_curve(zmq::socket_t& socket, const CurveClient& client);

/// Where the handshakes of a context's server sockets wait to be answered (a REP socket, bound before them).
inline constexpr const char* kHandshakes = "inproc://zeromq.zap.01";

/// Answers the next one, if one waits (ZAP 1.0). A key that is let in is the User-Id of all that comes by it.
void answer_handshake(zmq::socket_t& requests,
                      const std::function<bool(const std::string& public_key)>& allowed);

/// Answers the handshakes of a context's server sockets from its list (ZAP 1.0), in a thread of its own, so
/// that a client that knocks waits for nobody. To be made before the sockets are bound; ends with the object,
/// which has to go before the context.
class AllowList {
 public:
  AllowList(zmq::context_t& context, const std::vector<std::string>& public_keys);
  ~AllowList();
  AllowList(const AllowList&) = delete;
  AllowList& operator=(const AllowList&) = delete;

 private:
  zmq::socket_t stop_;
  std::thread thread_;
};

}  // namespace vigil::cluster
