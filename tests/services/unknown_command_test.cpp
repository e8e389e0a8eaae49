#include <gtest/gtest.h>

#include "services/command.h"

namespace vigil::services {
namespace {

class UnknownCommand : public testing::Test {
 protected:
  UnknownCommand() {
    root_.name("vigil");
    root_.add_subcommand("ask")->add_option("VIDEO");
    root_.add_subcommand("model")->add_subcommand("check")->add_option("DIR");
  }

  CLI::App root_;
};

TEST_F(UnknownCommand, NamesTheFirstWordThatIsNone) {
  EXPECT_EQ(unknown_command(root_, {"bogus", "ask"}), "vigil: no command 'bogus'; vigil --help lists them");
  EXPECT_EQ(unknown_command(root_, {""}), "vigil: no command ''; vigil --help lists them");
  EXPECT_EQ(unknown_command(root_, {"model", "bogus"}),
            "vigil model: no command 'bogus'; vigil model --help lists them");
}

TEST_F(UnknownCommand, LeavesArgumentsAndOptionsToTheCommand) {
  EXPECT_EQ(unknown_command(root_, {}), std::nullopt);
  EXPECT_EQ(unknown_command(root_, {"model"}), std::nullopt);
  EXPECT_EQ(unknown_command(root_, {"model", "--help"}), std::nullopt);
  EXPECT_EQ(unknown_command(root_, {"ask", "bogus"}), std::nullopt);
  EXPECT_EQ(unknown_command(root_, {"model", "check", "bogus"}), std::nullopt);
}

}  // namespace
}  // namespace vigil::services
