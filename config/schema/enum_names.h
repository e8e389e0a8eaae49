// What the values of enumerations are called in the configuration file.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "config/settings.h"

namespace vigil::config {

template <class E>
using EnumNames = std::span<const std::pair<std::string_view, E>>;

inline constexpr std::array<std::pair<std::string_view, Pace>, 2> kPaceNames = {
    {{"realtime", Pace::realtime}, {"fast", Pace::fast}}};
inline constexpr std::array<std::pair<std::string_view, Transport>, 2> kTransportNames = {
    {{"tcp", Transport::tcp}, {"udp", Transport::udp}}};
inline constexpr std::array<std::pair<std::string_view, Role>, 2> kRoleNames = {
    {{"detect", Role::detect}, {"record", Role::record}}};
inline constexpr std::array<std::pair<std::string_view, Severity>, 2> kSeverityNames = {
    {{"detection", Severity::detection}, {"alert", Severity::alert}}};
inline constexpr std::array<std::pair<std::string_view, LogLevel>, 5> kLogLevelNames = {
    {{"debug", LogLevel::debug},
     {"info", LogLevel::info},
     {"warn", LogLevel::warn},
     {"error", LogLevel::error},
     {"off", LogLevel::off}}};
inline constexpr std::array<std::pair<std::string_view, LogFormat>, 2> kLogFormatNames = {
    {{"text", LogFormat::text}, {"json", LogFormat::json}}};

inline constexpr std::array<std::pair<std::string_view, ConfigurationFrom>, 2> kConfigurationFromNames = {
    {{"file", ConfigurationFrom::file}, {"registry", ConfigurationFrom::registry}}};

inline constexpr std::array<std::pair<std::string_view, Pruning>, 6> kPruningNames = {
    {{"none", Pruning::none},
     {"codecsight", Pruning::codecsight},
     {"reference", Pruning::reference},
     {"dtd", Pruning::dtd},
     {"scene", Pruning::scene},
     {"changes", Pruning::changes}}};

inline constexpr std::array<std::pair<std::string_view, Refresh>, 6> kRefreshNames = {
    {{"all", Refresh::all},
     {"none", Refresh::none},
     {"codecsight", Refresh::codecsight},
     {"first-k", Refresh::first_k},
     {"random-k", Refresh::random_k},
     {"topk", Refresh::topk}}};

inline constexpr auto kPresetNames = [] {
  std::array<std::pair<std::string_view, Preset>, kPresets.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = {kPresets[i].name, static_cast<Preset>(i)};
  return names;
}();

inline constexpr std::array<std::pair<std::string_view, Eviction>, 2> kEvictionNames = {
    {{"value", Eviction::value}, {"lru", Eviction::lru}}};

constexpr EnumNames<Preset> names_of(Preset) {
  return kPresetNames;
}
constexpr EnumNames<Pruning> names_of(Pruning) {
  return kPruningNames;
}
constexpr EnumNames<Refresh> names_of(Refresh) {
  return kRefreshNames;
}
constexpr EnumNames<Pace> names_of(Pace) {
  return kPaceNames;
}
constexpr EnumNames<Transport> names_of(Transport) {
  return kTransportNames;
}
constexpr EnumNames<Role> names_of(Role) {
  return kRoleNames;
}
constexpr EnumNames<Severity> names_of(Severity) {
  return kSeverityNames;
}
constexpr EnumNames<LogLevel> names_of(LogLevel) {
  return kLogLevelNames;
}
constexpr EnumNames<LogFormat> names_of(LogFormat) {
  return kLogFormatNames;
}

constexpr EnumNames<ConfigurationFrom> names_of(ConfigurationFrom) {
  return kConfigurationFromNames;
}

constexpr EnumNames<Eviction> names_of(Eviction) {
  return kEvictionNames;
}

constexpr EnumNames<Quantization> names_of(Quantization) {
  return kQuantizationNames;
}

template <class E>
constexpr std::string_view name_of(E value) {
  for (const auto& [name, each] : names_of(value)) {
    if (each == value) return name;
  }
  return "?";
}

}  // namespace vigil::config
