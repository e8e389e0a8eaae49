#include "cluster/membership/config_agreement.h"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include "base/json_line.h"

namespace vigil::cluster {
namespace {

using nlohmann::json;

constexpr std::size_t kRemembered = 32;
/// A node that has told that it has read one may be told to run by it when it has read the next ones.
constexpr std::size_t kKept = 8;
constexpr std::size_t kShown = 12;

bool runs(const NodeRecord& node) {
  return node.state != NodeState::joining;
}

/// Those who have a say.
std::vector<const NodeRecord*> voters(const std::map<std::string, NodeRecord>& nodes) {
  std::vector<const NodeRecord*> all;
  std::vector<const NodeRecord*> running;
  for (const auto& [name, node] : nodes) {
    all.push_back(&node);
    if (runs(node)) running.push_back(&node);
  }
  return running.empty() ? all : running;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

}  // namespace

std::string print(const FleetConfig& config) {
  return base::json_line({{"hash", config.hash}, {"version", config.version}, {"before", config.before}});
}

FleetConfig parse_config(std::string_view text) {
  try {
    const json read = json::parse(text);
    FleetConfig config{read.at("hash"), read.at("version"), {}};
    if (read.contains("before")) config.before = read.at("before").get<std::vector<std::string>>();
    if (config.hash.empty() || config.version == 0) throw std::runtime_error("it is empty");
    return config;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no configuration of a fleet: ") + error.what());
  }
}

std::string content_hash(std::string_view content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(content.data(), content.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL computes no SHA-256");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += "0123456789abcdef"[digest[i] >> 4U];
    text += "0123456789abcdef"[digest[i] & 15U];
  }
  return text;
}

std::string shown_hash(const std::string& hash) {
  return hash.substr(0, kShown);
}

FleetConfig current_config(const std::map<std::string, NodeRecord>& nodes,
                           const std::optional<FleetConfig>& registered) {
  FleetConfig current = registered.value_or(FleetConfig{});
  for (const auto& [name, node] : nodes) {
    if (node.config_version <= current.version || node.config.empty()) continue;
    current.version = node.config_version;
    if (!current.hash.empty() && current.hash != node.config)
      current.before.insert(current.before.begin(), current.hash);
    std::erase(current.before, node.config);
    current.hash = node.config;
  }
  return current;
}

std::vector<std::string> pending(const std::map<std::string, NodeRecord>& nodes,
                                 const std::optional<FleetConfig>& registered) {
  const FleetConfig current = current_config(nodes, registered);
  const auto all = voters(nodes);
  std::set<std::string> wanted;
  for (const NodeRecord* node : all)
    if (node->config_seen != current.hash && !node->config_seen.empty()) wanted.insert(node->config_seen);
  std::vector<std::string> lines;
  for (const std::string& hash : wanted) {
    std::vector<std::string> behind;
    /// Who has it, by fault.
    std::map<std::string, std::vector<std::string>> faults;
    for (const NodeRecord* node : all) {
      if (node->config_seen != hash) {
        behind.push_back(node->name);
      } else if (!node->config_fault.empty()) {
        faults[node->config_fault].push_back(node->name);
      }
    }
    std::string line = "configuration " + shown_hash(hash) + " is not applied: ";
    for (const auto& [fault, names] : faults) line += listed(names) + " cannot take it: " + fault + "; ";
    if (!behind.empty()) line += "not read by " + listed(behind) + "; ";
    if (line.ends_with("; ")) line.resize(line.size() - 2);
    if (behind.empty() && faults.empty()) {
      if (std::ranges::find(current.before, hash) == current.before.end() || runs(*all.front())) continue;
      line += "the fleet had it before version " + std::to_string(current.version) + ", and nobody runs that";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void ConfigAgreement::read(const std::string& hash, const std::string& fault) {
  seen_ = hash;
  fault_ = fault;
  if (!fault.empty()) return;
  std::erase(read_, hash);
  read_.push_back(hash);
  if (read_.size() > kKept) read_.pop_front();
}

void ConfigAgreement::see(const std::map<std::string, NodeRecord>& nodes,
                          const std::optional<FleetConfig>& registered) {
  nodes_ = nodes;
  registered_ = registered;
}

bool ConfigAgreement::has_read(const std::string& hash) const {
  return std::ranges::find(read_, hash) != read_.end();
}

FleetConfig ConfigAgreement::current() const {
  FleetConfig current = current_config(nodes_, registered_);
  return running_.version > current.version ? running_ : current;
}

std::optional<FleetConfig> ConfigAgreement::take() {
  FleetConfig now = current();
  if (now.version == 0 || (now.version == running_.version && now.hash == running_.hash)) return std::nullopt;
  if (!has_read(now.hash)) return std::nullopt;
  running_ = now;
  return now;
}

bool ConfigAgreement::is_in_force() const {
  const FleetConfig now = current();
  return now.version > 0 && running_.version == now.version && running_.hash == now.hash;
}

bool ConfigAgreement::may_plan() const {
  if (is_in_force()) return true;
  return std::ranges::none_of(nodes_,
                              [this](const auto& node) { return node.first != node_ && runs(node.second); });
}

std::optional<FleetConfig> ConfigAgreement::proposal() const {
  FleetConfig now = current();
  // Of a registry that knows less than the nodes do.
  if (now.version > 0 && (!registered_ || registered_->version < now.version)) return now;
  // Who waits, or has not told yet what it is at, does not know either who has followed the fleet's next one:
  // of what nodes told before it would make another.
  const auto own = nodes_.find(node_);
  if (own == nodes_.end() || !may_plan()) return std::nullopt;
  NodeRecord told = own->second;
  tell(told);
  if (told != own->second) return std::nullopt;
  const auto all = voters(nodes_);
  const std::string& wanted = all.front()->config_seen;
  const bool agreed = std::ranges::all_of(
      all, [&](const NodeRecord* node) { return node->config_seen == wanted && node->config_fault.empty(); });
  if (!agreed || wanted.empty() || wanted == now.hash) return std::nullopt;
  const bool is_older = std::ranges::find(now.before, wanted) != now.before.end();
  if (is_older && !runs(*all.front())) return std::nullopt;
  FleetConfig next{wanted, now.version + 1, now.before};
  if (!now.hash.empty()) next.before.insert(next.before.begin(), now.hash);
  std::erase(next.before, wanted);
  if (next.before.size() > kRemembered) next.before.resize(kRemembered);
  return next;
}

std::string ConfigAgreement::waits() const {
  if (is_in_force()) return {};
  const FleetConfig now = current();
  if (now.version == 0)
    return "the fleet has no configuration yet: it begins when all nodes that are there have read the same";
  const std::string fleet =
      "the fleet's is " + shown_hash(now.hash) + " (version " + std::to_string(now.version) + ')';
  if (!fault_.empty()) return fleet + ", and this node cannot take " + shown_hash(seen_) + ": " + fault_;
  const bool is_older = std::ranges::find(now.before, seen_) != now.before.end();
  return fleet + ", and this node has read " + shown_hash(seen_) +
         (is_older ? ", which the fleet had before: it waits for a newer file"
                   : ": it waits until its file says the same, or the fleet takes it");
}

void ConfigAgreement::tell(NodeRecord& record) const {
  record.config = running_.hash;
  record.config_version = running_.version;
  record.config_seen = seen_;
  record.config_fault = fault_;
  if (record.state != NodeState::draining)
    record.state = is_in_force() ? NodeState::ready : NodeState::joining;
}

}  // namespace vigil::cluster
