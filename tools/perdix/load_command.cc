#include <fmt/format.h>

#include "perdix/commands.h"
#include "perdix/load_rows.h"
#include "perdix/new_index.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"
#include "terminal/format.h"
#include "terminal/interrupt.h"
#include "terminal/progress.h"

namespace perdix::tool {
namespace {

using terminal::format_count;

RowFormat format_of(const LoadOptions& o) {
  return o.format.value_or(o.file.ends_with(".csv") ? RowFormat::csv : RowFormat::tsv);
}

// In CSV, quotes do the work of escapes.
Notation notation_of(const LoadOptions& o) {
  if (o.hex) return Notation::hex;
  return o.plain || format_of(o) == RowFormat::csv ? Notation::plain : Notation::escaped;
}

// One load: rows of a source into an index, until the end, an error or an interrupt.
class Loader {
 public:
  Loader(const LoadOptions& options, const std::atomic<bool>& stop)
      : options_(options),
        stop_(stop),
        pool_(Pool::open(options.target.pool, with_plugins())),
        made_(pool_, options.target.index),
        source_(options.file, stop),
        reader_(source_, source_.name(), format_of(options)),
        rows_to_store_(reader_, options.header, stop),
        notation_(notation_of(options)) {}

  void run() {
    refuse_silence();
    index_ = open_or_create(pool_, options_.target.index, spec());
    const auto style = terminal::progress_style(options_.progress ? terminal::ProgressStyle::log
                                                                  : terminal::ProgressStyle::none);
    terminal::ProgressBar bar(style, "loading " + escape(options_.target.index), "rows",
                              source_.size());
    while (next_row()) {
      store_row();
      made_.keep();
      ++rows_;
      bar.update(source_.bytes_read(), rows_);
    }
    if (stop_) interrupted();
    made_.keep();  // an index without rows, of an empty file
    description_ = describe();
    index_.reset();
    pool_.close();
  }

  std::uint64_t rows() const { return rows_; }

  /// The index, once run() has returned.
  const std::string& description() const { return description_; }

 private:
  std::string describe() const {
    const IndexInfo& info = index_->info();
    return fmt::format("index '{}' ({}, {} -> {})", escape(info.name), escape(info.engine),
                       to_string(info.key_kind), to_string(info.value_kind));
  }

  // A dump that fails before its first line leaves nothing; an empty file may be meant.
  void refuse_silence() const {
    if (options_.file != "-" || source_.bytes_read() > 0 || stop_) return;
    throw Error(Errc::invalid_argument,
                "standard input is empty; see whether the command that writes to it failed");
  }

  // What the command line leaves open is as the first line of a dump says.
  IndexSpec spec() const {
    IndexSpec spec = options_.spec;
    const std::optional<DumpHeader>& dump = rows_to_store_.dump();
    if (!dump) return spec;
    spec.engine = spec.engine.value_or(dump->engine);
    spec.keys = spec.keys.value_or(dump->keys);
    spec.values = spec.values.value_or(dump->values);
    return spec;
  }

  // An interrupt ends the source early, so the row that was read then may be a part of one.
  bool next_row() { return !stop_ && rows_to_store_.next(row_) && !stop_; }

  const std::string& column(std::uint64_t number) const {
    if (number <= row_.fields.size()) return row_.fields[number - 1];
    throw Error(Errc::invalid_argument,
                fmt::format("the row has {} column{}, but column {} is wanted", row_.fields.size(),
                            row_.fields.size() == 1 ? "" : "s", number));
  }

  void store_row() {
    try {
      const std::string value =
          options_.value_column == 0 ? std::to_string(row_.line) : column(options_.value_column);
      index_->put(to_bytes(column(options_.key_column), index_->info().key_kind, notation_),
                  to_bytes(value, index_->info().value_kind, notation_));
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("{}:{}: {} ({})", source_.name(), row_.line, e.what(),
                                        stored_before()));
    }
  }

  std::string stored_before() const {
    if (rows_ == 0) return "nothing was stored";
    return fmt::format("{} rows before it are in the index", format_count(rows_));
  }

  [[noreturn]] void interrupted() const {
    if (rows_ == 0)
      throw Error(Errc::io_error, "interrupted; nothing was stored: run the command again");
    throw Error(
        Errc::io_error,
        fmt::format("interrupted; {} rows were acknowledged and are in {}; run the command again "
                    "to load the rest",
                    format_count(rows_), describe()));
  }

  const LoadOptions& options_;
  const std::atomic<bool>& stop_;
  Pool pool_;
  NewIndex made_;
  std::unique_ptr<Index> index_;
  FileSource source_;
  RowReader reader_;
  LoadRows rows_to_store_;
  Notation notation_;
  Row row_;
  std::string description_;
  std::uint64_t rows_ = 0;
};

}  // namespace

ExitStatus load(const LoadOptions& options) {
  const std::atomic<bool>& stop = terminal::catch_interrupts();
  const auto begin = std::chrono::steady_clock::now();
  Loader loader(options, stop);
  loader.run();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Output out;
  out.write(fmt::format(
      "{} rows loaded into {} in {:.2f} s, {} rows/s\n", format_count(loader.rows()),
      loader.description(), seconds,
      format_count(static_cast<std::uint64_t>(static_cast<double>(loader.rows()) / seconds))));
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
