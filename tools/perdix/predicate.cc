#include "perdix/predicate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "perdix/elf_values.h"
#include "perdix/notation.h"

namespace perdix::tool {
namespace {

using Op = ElfPredicate::Op;

struct Token {
  enum class Kind : std::uint8_t { word, column, value, symbol, end };

  Kind kind;
  std::string text;
  std::size_t position;  // from 1
};

[[noreturn]] void refuse(std::size_t position, std::string_view what) {
  throw Error(Errc::invalid_argument,
              fmt::format("in the conditions, at position {}: {}", position, what));
}

/// Splits the text into tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    const std::size_t begin = at_;
    if (begin == text_.size()) return {Token::Kind::end, "", begin + 1};
    const char c = text_[begin];
    if (c == '"') return {Token::Kind::column, quoted(c), begin + 1};
    if (c == '\'') return {Token::Kind::value, quoted(c), begin + 1};
    if (kSymbols.find(c) == std::string_view::npos) return {Token::Kind::word, word(), begin + 1};
    at_ += c != '(' && c != ')' && c != ',' && text_.substr(begin + 1, 1) == "=" ? 2 : 1;
    return {Token::Kind::symbol, std::string(text_.substr(begin, at_ - begin)), begin + 1};
  }

 private:
  static constexpr std::string_view kSymbols = "=<>(),";

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != '\'' && text_[at_] != '"' &&
           kSymbols.find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted(char quote) {
    const std::size_t begin = at_;
    std::string inside;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote && text_.substr(at_ + 1, 1) != std::string_view(&quote, 1)) {
        ++at_;
        return unescaped(inside, begin);
      }
      if (text_[at_] == quote) ++at_;
      inside += text_[at_];
    }
    refuse(begin + 1, "a quote that opens here is never closed");
  }

  static std::string unescaped(const std::string& inside, std::size_t begin) {
    try {
      return unescape(inside);
    } catch (const Error& error) {
      refuse(begin + 1, error.what());
    }
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

constexpr std::array<std::pair<std::string_view, Op>, 6> kOperators = {{{"=", Op::equal},
                                                                        {"==", Op::equal},
                                                                        {"<", Op::less},
                                                                        {"<=", Op::at_most},
                                                                        {">", Op::greater},
                                                                        {">=", Op::at_least}}};

class Parser {
 public:
  Parser(std::string_view text, const std::vector<ElfColumn>& columns)
      : lexer_(text), columns_(columns), token_(lexer_.next()) {}

  std::vector<ElfPredicate> parse() {
    std::vector<ElfPredicate> predicates;
    if (token_.kind == Token::Kind::end) return predicates;
    predicates.push_back(condition());
    while (token_.kind != Token::Kind::end) {
      if (!take_keyword("and")) refuse(token_.position, "'and' is expected here, or the end");
      predicates.push_back(condition());
    }
    return predicates;
  }

 private:
  ElfPredicate condition() {
    const ElfColumn& column = take_column();
    if (take_keyword("between")) {
      ElfValue lower = take_value(column);
      if (!take_keyword("and")) refuse(token_.position, "'and' and a second bound are expected");
      return ElfPredicate::between(column.name, std::move(lower), take_value(column));
    }
    if (take_keyword("in")) return ElfPredicate::in(column.name, take_list(column));
    const Op op = take_operator();
    return {column.name, op, {take_value(column)}};
  }

  const ElfColumn& take_column() {
    if (token_.kind != Token::Kind::word && token_.kind != Token::Kind::column)
      refuse(token_.position, "the name of a column is expected here");
    const auto found = std::find_if(columns_.begin(), columns_.end(), [&](const ElfColumn& column) {
      return column.name == token_.text;
    });
    if (found == columns_.end())
      refuse(token_.position, fmt::format("there is no column '{}'; the columns are {}",
                                          escape(token_.text), names()));
    advance();
    return *found;
  }

  Op take_operator() {
    if (take_keyword("prefix")) return Op::prefix;
    for (const auto& [symbol, op] : kOperators) {
      if (take_symbol(symbol)) return op;
    }
    refuse(token_.position, "one of = < <= > >= between in prefix is expected here");
  }

  ElfValue take_value(const ElfColumn& column) {
    if (token_.kind != Token::Kind::word && token_.kind != Token::Kind::value)
      refuse(token_.position, "a value is expected here");
    try {
      ElfValue value = parse_value(token_.text, column.type);
      advance();
      return value;
    } catch (const Error& error) {
      refuse(token_.position, fmt::format("column '{}': {}", escape(column.name), error.what()));
    }
  }

  std::vector<ElfValue> take_list(const ElfColumn& column) {
    if (!take_symbol("(")) refuse(token_.position, "a list in parentheses is expected here");
    std::vector<ElfValue> values;
    do {
      values.push_back(take_value(column));
    } while (take_symbol(","));
    if (!take_symbol(")")) refuse(token_.position, "',' or ')' is expected here");
    return values;
  }

  bool take_keyword(std::string_view keyword) {
    const auto same = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    };
    const std::string& text = token_.text;
    const bool is_it = token_.kind == Token::Kind::word &&
                       std::equal(text.begin(), text.end(), keyword.begin(), keyword.end(), same);
    if (is_it) advance();
    return is_it;
  }

  bool take_symbol(std::string_view symbol) {
    const bool is_it = token_.kind == Token::Kind::symbol && token_.text == symbol;
    if (is_it) advance();
    return is_it;
  }

  void advance() { token_ = lexer_.next(); }

  std::string names() const {
    std::string names;
    for (const ElfColumn& column : columns_)
      names += (names.empty() ? "" : ", ") + escape(column.name);
    return names;
  }

  Lexer lexer_;
  const std::vector<ElfColumn>& columns_;
  Token token_;
};

}  // namespace

std::vector<ElfPredicate> parse_predicates(std::string_view text,
                                           const std::vector<ElfColumn>& columns) {
  return Parser(text, columns).parse();
}

}  // namespace perdix::tool
