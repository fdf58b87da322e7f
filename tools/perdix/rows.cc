#include "perdix/rows.h"

#include <cstring>

#include <fmt/format.h>

namespace perdix::tool {
namespace {

constexpr std::size_t kBlock = 1 << 16;

void split_tabs(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.emplace_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return;
    line.remove_prefix(tab + 1);
  }
}

// Splits one row, which may go on over several lines, into fields.
class CsvSplitter {
 public:
  explicit CsvSplitter(std::vector<std::string>& fields) : fields_(fields) {
    fields_.assign(1, "");
  }

  // Adds a line without its newline; true if the row ends with it. If it doesn't, a quote is open
  // or text is misplaced.
  bool add(std::string_view line) {
    if (state_ == State::quoted) fields_.back() += '\n';
    for (const char c : line) add(c);
    if (state_ == State::quoted || misplaced_text_) return false;
    if (state_ == State::plain && fields_.back().ends_with('\r')) fields_.back().pop_back();
    return true;
  }

  bool misplaced_text() const { return misplaced_text_; }

 private:
  enum class State : std::uint8_t {
    plain,   // in a field without quotes
    quoted,  // inside of quotes
    closed,  // after a quote that ends the quotes or is the first of two
  };

  void add(char c) {
    if (state_ == State::quoted) {
      if (c == '"') {
        state_ = State::closed;
      } else {
        fields_.back() += c;
      }
    } else if (c == ',') {
      fields_.emplace_back();
      state_ = State::plain;
    } else if (c == '"' && (state_ == State::closed || fields_.back().empty())) {
      if (state_ == State::closed) fields_.back() += c;
      state_ = State::quoted;
    } else if (state_ == State::closed) {
      misplaced_text_ |= c != '\r';
    } else {
      fields_.back() += c;
    }
  }

  std::vector<std::string>& fields_;
  State state_ = State::plain;
  bool misplaced_text_ = false;
};

}  // namespace

RowReader::RowReader(Source& source, std::string name, RowFormat format)
    : source_(source), name_(std::move(name)), format_(format) {}

bool RowReader::next(Row& row) { return format_ == RowFormat::tsv ? next_tsv(row) : next_csv(row); }

void RowReader::refuse(std::uint64_t line, std::string_view what) const {
  throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", name_, line, what));
}

bool RowReader::refill() {
  buffer_.resize(kBlock);
  buffer_.resize(source_.read(buffer_.data(), kBlock));
  at_ = 0;
  return !buffer_.empty();
}

// The next line without its end. The last one need not have an end.
bool RowReader::take_line(std::string& line) {
  line.clear();
  if (at_ == buffer_.size() && !refill()) return false;
  ++line_;
  do {
    const char* begin = buffer_.data() + at_;
    const std::size_t left = buffer_.size() - at_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', left));
    const std::size_t length = end == nullptr ? left : static_cast<std::size_t>(end - begin);
    if (std::memchr(begin, '\0', length) != nullptr) {
      refuse(line_, "a NUL byte: is this a text file? (in TSV, write it as \\x00)");
    }
    line.append(begin, length);
    at_ += length + (end != nullptr);
    if (end != nullptr) break;
  } while (refill());
  return true;
}

bool RowReader::next_tsv(Row& row) {
  do {
    if (!take_line(text_)) return false;
    if (text_.ends_with('\r')) text_.pop_back();
  } while (text_.empty() && !takes_empty_lines_);
  row.line = line_;
  split_tabs(text_, row.fields);
  return true;
}

bool RowReader::next_csv(Row& row) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  do {
    if (!take_line(text_)) return false;
    if (line_ == 1 && text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  } while ((text_.empty() || text_ == "\r") && !takes_empty_lines_);
  row.line = line_;
  CsvSplitter splitter(row.fields);
  while (!splitter.add(text_)) {
    if (splitter.misplaced_text()) {
      refuse(line_, "text after a closing quote; a quote inside of a quoted field is doubled");
    }
    if (!take_line(text_)) refuse(row.line, "a quote that opens in this row is never closed");
  }
  return true;
}

}  // namespace perdix::tool
