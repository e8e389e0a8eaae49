#include <algorithm>

#include <gtest/gtest.h>

#include "services/command.h"

namespace vigil::services {
namespace {

class UnknownCommand : public testing::Test {
 protected:
  UnknownCommand() {
    root_.name("vigil");
    CLI::App* ask = root_.add_subcommand("ask");
    ask->add_option("VIDEO")->required();
    ask->add_option("QUESTION");
    CLI::App* bench = root_.add_subcommand("bench");
    bench->add_option("--fps", fps_)->check(above_zero());
    bench->add_option("--tokens", tokens_)->check(zero_or_more());
    bench->add_option("--threads", tokens_)->check(from_to(1, 64));
    bench->add_option("--output", output_)->check(one_of({"text", "json", "table"}));
    root_.add_subcommand("run")->add_option("--config")->required();
    root_.add_subcommand("model")->add_subcommand("check")->add_option("DIR");
  }

  /// The first line of what is said about a command line.
  std::string complaint(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
      root_.parse(std::move(words));
      return "";
    } catch (const CLI::ParseError& error) {
      const std::string lines = parse_complaint(root_, error);
      EXPECT_TRUE(lines.ends_with("\nRun with --help for more information.\n")) << lines;
      return lines.substr(0, lines.find('\n'));
    }
  }

  CLI::App root_;
  double fps_ = 0;
  int tokens_ = 0;
  std::string output_;
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

TEST_F(UnknownCommand, WordsTooManyStandInTheirOrder) {
  EXPECT_EQ(complaint({"ask", "gate.mp4", "Is", "there", "a", "car"}),
            "vigil ask: not expected: there a car; a question of several words needs quotes around it");
  EXPECT_EQ(complaint({"model", "check", "one", "two", "three"}),
            "vigil model check: not expected: two three");
}

TEST_F(UnknownCommand, AMisspelledOptionIsNamedBeforeTheOneThatIsMissing) {
  EXPECT_EQ(complaint({"run", "--confg", "u.yaml"}), "vigil run: no option --confg; did you mean --config?");
  EXPECT_EQ(complaint({"run", "--config", "u.yaml", "--colour=red"}), "vigil run: no option --colour=red");
  EXPECT_EQ(complaint({"run"}), "--config is required");
  EXPECT_EQ(complaint({"ask"}), "VIDEO is required");
}

TEST_F(UnknownCommand, SaysWhatIsExpectedInPlaceOfAValue) {
  EXPECT_EQ(complaint({"bench", "--fps", "2.5", "--tokens", "0", "--output", "table"}), "");
  EXPECT_EQ(complaint({"bench", "--fps", "abc"}), "--fps: expected a number above 0, not 'abc'");
  EXPECT_EQ(complaint({"bench", "--fps", "0"}), "--fps: expected a number above 0, not '0'");
  EXPECT_EQ(complaint({"bench", "--tokens", "nan"}),
            "--tokens: expected a number that is 0 or more, not 'nan'");
  EXPECT_EQ(complaint({"bench", "--tokens", "1.5"}), "--tokens: expected a whole number, not '1.5'");
  EXPECT_EQ(complaint({"bench", "--tokens", "99999999999"}),
            "--tokens: expected a number that is neither so large nor so small, not '99999999999'");
  EXPECT_EQ(complaint({"bench", "--threads", "64"}), "");
  EXPECT_EQ(complaint({"bench", "--threads", "65"}), "--threads: expected a number from 1 to 64, not '65'");
  EXPECT_EQ(complaint({"bench", "--threads", "many"}),
            "--threads: expected a number from 1 to 64, not 'many'");
  EXPECT_EQ(complaint({"bench", "--output", "xml"}), "--output: expected text, json or table, not 'xml'");
}

}  // namespace
}  // namespace vigil::services
