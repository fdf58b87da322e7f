// A figure file: experiments as data. docs/benchmarks.md describes its keys.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "figure/names.h"

namespace perdix::bench {

/// Part of a file, for messages about it.
struct Place {
  std::string file;
  std::size_t line = 0;

  /// Throws perdix::Error invalid_argument: "elimda.toml:12: message".
  [[noreturn]] void refuse(const std::string& message) const;
};

/// A name whose values are options of the command: --records 1M, --threads 1,2.
struct Setting {
  std::string name;
  std::string about;
  std::vector<Value> values;
  bool is_list = false;    ///< otherwise it has one value
  bool is_number = false;  ///< otherwise words as well
  double min = 0;
  double max = 1LL << 40;
};

/// Coordinates of rows. Each row has a value for some of the names of a figure.
using Coordinates = Names;

/// A column of a figure.
struct Column {
  enum class Form { plain, ratio, difference };

  std::string name;
  std::string metric;
  Form form = Form::plain;
  /// The rows that a ratio or a difference is to have the coordinates of the row, but for these.
  /// It is to the one with the highest value.
  std::vector<Coordinates> to;
};

/// Part of a run: a workload, or a mix of operations, on the index of the run.
struct PhaseSpec {
  std::vector<std::string> workloads;      ///< one after the other; empty: `mix`
  std::map<std::string, std::string> mix;  ///< percent by operation
  std::string name = "{do}";               ///< {phase}, a text with names
  std::string count;                       ///< operations
  std::string up_to;                       ///< instead of `count`: until there are as many pairs
  std::string times;                       ///< how often; {time} is 1, 2, ...
  std::vector<std::string> each;           ///< once for each value of these settings
};

/// An index for each combination of the axes' values, and what is done with it.
struct RunSpec {
  Place place;
  std::vector<std::string> axes;             ///< names of settings
  std::map<std::string, std::string> fixed;  ///< values of other names
  std::string load;                          ///< pairs before the first phase; may be empty
  std::vector<PhaseSpec> phases;
  std::string group;
  std::string row;
  std::vector<std::string> needs;  ///< what a system must have
  std::vector<std::string> only;   ///< patterns of the names of systems; empty: all
};

/// A statement about the rows of a figure: the value of one, or its ratio to another.
struct CheckSpec {
  Place place;
  std::string claim;
  std::string column;
  Coordinates of;
  Coordinates to;  ///< where these differ from `of`; empty: the value itself
  std::optional<double> at_least, at_most;
};

struct FigureSpec {
  enum class Build { any, normal, instrumented };

  Place place;
  std::string name;
  std::string title;
  Build build = Build::any;  ///< only an instrumented build has a meter; its times mean nothing
  std::vector<std::string> systems;  ///< empty: those of the file
  std::vector<Column> columns;
  std::size_t plotted = 1;
  bool curves = false;     ///< the distribution of latencies is plotted
  bool average = false;    ///< a last row for each system has the mean of the others
  bool published = false;  ///< rows of FigureFile::published stand beside those measured
  std::vector<RunSpec> runs;
  std::vector<CheckSpec> checks;
};

/// A row that was measured elsewhere.
struct Published {
  Coordinates at;
  std::map<std::string, double> values;  ///< by metric
};

struct FigureFile {
  std::string title;
  std::string about;
  std::vector<std::string> notes;
  std::vector<std::string> systems;
  std::vector<Setting> settings;
  std::vector<Published> published;
  std::vector<FigureSpec> figures;
};

/// Reads a file. Throws perdix::Error, which says in which line something is wrong and what may be
/// there.
FigureFile read_figure_file(const std::filesystem::path& path);

}  // namespace perdix::bench
