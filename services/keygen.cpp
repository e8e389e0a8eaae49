// vigil keygen: a pair of CURVE keys, for a server or for a client.
#include <filesystem>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "cluster/sockets/curve.h"
#include "services/command.h"

namespace vigil::services {

void add_keygen(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("keygen", "Make a pair of keys for encrypted events");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "where the secret key goes; the public one goes to FILE.pub")
      ->required();
  command->footer(
      "Prints the public key. Of a server, it is what `vigil watch --server-key` takes, and the secret key's "
      "file is\n"
      "alerts.curve.secret_key_file; of a client, it goes into the server's alerts.curve.allow, and the "
      "secret key's\n"
      "file is what `vigil watch --key-file` takes.");
  command->callback([file, &chosen] {
    chosen = [file] {
      if (file->empty()) throw UsageError("FILE must not be empty");
      const cluster::KeyPair keys = cluster::make_key_pair();
      cluster::write_key_files(*file, keys);
      std::cout << keys.public_key << '\n';
      return static_cast<int>(kDone);
    };
  });
}

}  // namespace vigil::services
