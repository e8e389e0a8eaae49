// What tables for people are made of.
#pragma once

#include <string>
#include <vector>

namespace vigil::actors {

using Row = std::vector<std::string>;

std::string number(double value, int decimals = 0);
/// "45 s", "12 min", "3.5 h", "2.1 d".
std::string span(double seconds);
/// What came from outside must not steer the terminal.
std::string plain(std::string text);
/// The first row has the heads; all rows have as many cells. Ends with a line's end.
std::string table(const std::vector<Row>& rows);

}  // namespace vigil::actors
