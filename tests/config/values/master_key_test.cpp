#include "config/values/master_key.h"

#include <string>

#include <gtest/gtest.h>

namespace vigil::config {
namespace {

TEST(MasterKey, Its64DigitsAreNoPath) {
  const std::string digits = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
  for (const std::string& key : {digits, digits + "\n", "  " + digits, "/etc/vigil/" + digits})
    EXPECT_TRUE(is_master_key_for_path(key)) << key;
  for (const std::string& path :
       {std::string(), std::string(" \n"), digits.substr(1), digits + '0', digits + ".key",
        "g" + digits.substr(1), digits + "/key", digits.substr(32) + '/' + digits.substr(32)})
    EXPECT_FALSE(is_master_key_for_path(path)) << path;
}

}  // namespace
}  // namespace vigil::config
