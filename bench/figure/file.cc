#include "figure/file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "figure/jobs.h"
#include "figure/metrics.h"
#include "systems/systems.h"

namespace perdix::bench {
namespace {

using Keys = std::vector<std::string_view>;

const Keys kFileKeys = {"title", "about", "notes", "systems", "settings", "published", "figure"};
const Keys kRunKeys = {"axes", "set", "load", "phases", "group", "row", "needs", "only"};
const Keys kFigureKeys = {"name",    "title",  "build",   "systems",   "columns",
                          "plotted", "curves", "average", "published", "run",
                          "check",   "axes",   "set",     "load",      "phases",
                          "group",   "row",    "needs",   "only"};

/// A table of the file. Each function takes a key and says in which line a value is wrong.
class TableReader {
 public:
  TableReader(const toml::table& table, const std::string& file, const Keys& keys)
      : table_(table), file_(file) {
    for (const auto& [key, value] : table)
      require(std::ranges::find(keys, key.str()) != keys.end(), key.source(), "unknown key",
              key.str(), keys);
  }

  Place place() const { return place_of(table_.source()); }
  const std::string& file() const { return file_; }
  bool has(std::string_view key) const { return table_.contains(key); }

  std::string text(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) place().refuse(fmt::format("'{}' is missing", key));
    return text_of(key, *node);
  }
  std::string text_or(std::string_view key, std::string otherwise) const {
    return has(key) ? text(key) : otherwise;
  }

  /// One of the words.
  std::string word(std::string_view key, const Keys& words) const {
    const std::string chosen = text(key);
    require(std::ranges::find(words, chosen) != words.end(), table_.get(key)->source(),
            fmt::format("no {}", key), chosen, words);
    return chosen;
  }

  std::vector<std::string> texts(std::string_view key,
                                 std::vector<std::string> otherwise = {}) const {
    if (!has(key)) return otherwise;
    std::vector<std::string> all;
    for_each(key, [&](const toml::node& node) { all.push_back(text_of(key, node)); });
    return all;
  }

  std::vector<Value> values(std::string_view key) const {
    std::vector<Value> all;
    for_each(key, [&](const toml::node& node) { all.push_back(Value(text_of(key, node))); });
    return all;
  }

  bool flag(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean())
      place_of(node->source()).refuse(fmt::format("'{}' is true or false", key));
    return node->as_boolean()->get();
  }

  double number(std::string_view key, double otherwise) const {
    if (!has(key)) return otherwise;
    const Value value(text(key));
    if (!value.is_number())
      place_of(table_.get(key)->source()).refuse(fmt::format("'{}' is a number", key));
    return value.number();
  }

  /// A table of names.
  Names names(std::string_view key) const {
    Names all;
    if (has(key)) {
      const toml::node& node = *table_.get(key);
      if (!node.is_table()) place_of(node.source()).refuse(fmt::format("'{}' is a table", key));
      for (const auto& [name, value] : *node.as_table())
        all.emplace(name.str(), Value(text_of(name.str(), value)));
    }
    return all;
  }

  /// Calls visit(name, table) for each table in a table, in the order of the file.
  template <class Visit>
  void each_table(std::string_view key, Visit visit) const {
    if (!has(key)) return;
    const toml::node& node = *table_.get(key);
    if (!node.is_table()) place_of(node.source()).refuse(fmt::format("'{}' is a table", key));
    std::vector<std::pair<toml::source_position, std::string>> order;
    for (const auto& [name, value] : *node.as_table())
      order.emplace_back(name.source().begin, name.str());
    std::ranges::sort(order);
    for (const auto& [at, name] : order) visit(name, as_table(name, *node.as_table()->get(name)));
  }

  /// Calls visit(node) for each element of an array, or for the value itself.
  template <class Visit>
  void for_each(std::string_view key, Visit visit) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    if (!node->is_array()) return visit(*node);
    for (const toml::node& element : *node->as_array()) visit(element);
  }

  const toml::table& as_table(std::string_view key, const toml::node& node) const {
    if (!node.is_table()) place_of(node.source()).refuse(fmt::format("'{}' is a table", key));
    return *node.as_table();
  }

  Place place_of(const toml::source_region& region) const {
    return {file_, static_cast<std::size_t>(region.begin.line)};
  }

  std::string text_of(std::string_view key, const toml::node& node) const {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    place_of(node.source()).refuse(fmt::format("'{}' is a text or a number", key));
  }

 private:
  void require(bool known, const toml::source_region& region, std::string_view what,
               std::string_view word, const Keys& words) const {
    if (known) return;
    place_of(region).refuse(
        fmt::format("{} '{}'; choose from: {}", what, word, fmt::join(words, ", ")));
  }

  const toml::table& table_;
  const std::string& file_;
};

/// Adds the place to what `call` throws.
template <class Call>
void check_at(const Place& place, Call call) {
  try {
    call();
  } catch (const Error& e) {
    place.refuse(e.what());
  }
}

std::vector<Coordinates> read_references(const TableReader& table, std::string_view key) {
  std::vector<Coordinates> references;
  table.for_each(key, [&](const toml::node& node) {
    Coordinates& reference = references.emplace_back();
    for (const auto& [name, value] : table.as_table(key, node))
      reference.emplace(name.str(), Value(table.text_of(name.str(), value)));
  });
  return references;
}

Column read_column(const TableReader& figure, const toml::node& node) {
  Column column;
  if (node.is_table()) {
    const TableReader table(*node.as_table(), figure.file(), {"name", "of", "to", "less"});
    column.name = table.text("name");
    column.metric = table.text("of");
    column.to = read_references(table, table.has("less") ? "less" : "to");
    if (table.has("less"))
      column.form = Column::Form::difference;
    else if (table.has("to"))
      column.form = Column::Form::ratio;
  } else {
    column.name = column.metric = figure.text_of("columns", node);
  }
  check_at(figure.place_of(node.source()), [&] { find_metric(column.metric); });
  return column;
}

PhaseSpec read_phase(const TableReader& run, const toml::node& node) {
  PhaseSpec phase;
  if (node.is_table()) {
    const TableReader table(*node.as_table(), run.file(),
                            {"do", "mix", "name", "count", "up_to", "times", "each"});
    phase.workloads = table.texts("do");
    for (const auto& [name, value] : table.names("mix")) phase.mix.emplace(name, value.text());
    phase.name = table.text_or("name", phase.name);
    phase.count = table.text_or("count", "operations");
    phase.up_to = table.text_or("up_to", "");
    phase.times = table.text_or("times", "");
    phase.each = table.texts("each");
    if (phase.workloads.empty() == phase.mix.empty())
      table.place().refuse("a phase has either 'do' or 'mix'");
  } else {
    phase.workloads = {run.text_of("phases", node)};
    phase.count = "operations";
  }
  check_at(run.place_of(node.source()), [&] {
    for (const std::string& name : phase.workloads) find_workload(name);
    for (const auto& [operation, percent] : phase.mix) operation_of(operation);
  });
  return phase;
}

/// `run` has what the table does not say.
void read_run(const TableReader& table, RunSpec& run) {
  run.place = table.place();
  run.axes = table.texts("axes", run.axes);
  for (const auto& [name, value] : table.names("set"))
    run.fixed.insert_or_assign(name, value.text());
  run.load = table.text_or("load", run.load);
  if (table.has("phases")) run.phases.clear();
  table.for_each("phases",
                 [&](const toml::node& node) { run.phases.push_back(read_phase(table, node)); });
  run.group = table.text_or("group", run.group);
  run.row = table.text_or("row", run.row);
  run.needs = table.texts("needs", run.needs);
  run.only = table.texts("only", run.only);
}

CheckSpec read_check(const TableReader& table) {
  CheckSpec check{table.place(),
                  table.text("claim"),
                  table.text("column"),
                  table.names("of"),
                  table.names("to"),
                  {},
                  {}};
  if (table.has("at_least")) check.at_least = table.number("at_least", 0);
  if (table.has("at_most")) check.at_most = table.number("at_most", 0);
  if (check.at_least.has_value() == check.at_most.has_value())
    table.place().refuse("a check has either 'at_least' or 'at_most'");
  return check;
}

void read_runs(const TableReader& table, FigureSpec& figure) {
  RunSpec common;
  common.group = "{phase}";
  common.row = "{system}";
  read_run(table, common);
  table.for_each("run", [&](const toml::node& node) {
    RunSpec& run = figure.runs.emplace_back(common);
    read_run(TableReader(table.as_table("run", node), table.file(), kRunKeys), run);
  });
  if (figure.runs.empty()) figure.runs.push_back(common);
  for (const RunSpec& run : figure.runs)
    if (run.phases.empty()) run.place.refuse("'phases' is missing");
}

FigureSpec read_figure(const TableReader& table) {
  FigureSpec figure;
  figure.place = table.place();
  figure.name = table.text("name");
  figure.title = table.text("title");
  if (table.has("build"))
    figure.build = table.word("build", {"normal", "instrumented"}) == "normal"
                       ? FigureSpec::Build::normal
                       : FigureSpec::Build::instrumented;
  figure.systems = table.texts("systems");
  table.for_each("columns", [&](const toml::node& node) {
    figure.columns.push_back(read_column(table, node));
  });
  if (figure.columns.empty()) table.place().refuse("'columns' is missing");
  figure.plotted =
      std::min(static_cast<std::size_t>(table.number("plotted", 1)), figure.columns.size());
  figure.curves = table.flag("curves");
  figure.average = table.flag("average");
  figure.published = table.flag("published");
  read_runs(table, figure);
  table.for_each("check", [&](const toml::node& node) {
    figure.checks.push_back(
        read_check(TableReader(table.as_table("check", node), table.file(),
                               {"claim", "column", "of", "to", "at_least", "at_most"})));
  });
  return figure;
}

Setting read_setting(const std::string& name, const TableReader& table) {
  Setting setting;
  setting.name = name;
  setting.about = table.text("about");
  setting.is_list = table.has("values");
  if (setting.is_list == table.has("value"))
    table.place().refuse("a setting has either 'value' or 'values'");
  setting.values = table.values(setting.is_list ? "values" : "value");
  setting.is_number = std::ranges::all_of(setting.values, &Value::is_number);
  setting.min = table.number("min", setting.min);
  setting.max = table.number("max", setting.max);
  return setting;
}

Published read_published(const TableReader& table) {
  Published row{table.names("at"), {}};
  for (const auto& [name, value] : table.names("values")) {
    check_at(table.place(), [&, &name = name] { find_metric(name); });
    row.values.emplace(name, value.number());
  }
  return row;
}

/// Refuses names that the file does not define.
void check_names(const FigureFile& file, const FigureSpec& figure) {
  const auto require_setting = [&](const RunSpec& run, const std::string& name) {
    if (std::ranges::find(file.settings, name, &Setting::name) == file.settings.end())
      run.place.refuse(fmt::format("no setting '{}' below [settings]", name));
  };
  for (const RunSpec& run : figure.runs) {
    for (const std::string& axis : run.axes) require_setting(run, axis);
    for (const PhaseSpec& phase : run.phases)
      for (const std::string& name : phase.each) require_setting(run, name);
    for (const std::string& need : run.needs)
      check_at(run.place, [&] { has_need(systems().front(), need); });
  }
  for (const CheckSpec& check : figure.checks)
    if (std::ranges::find(figure.columns, check.column, &Column::name) == figure.columns.end())
      check.place.refuse(fmt::format("the figure has no column '{}'", check.column));
}

FigureFile read(const toml::table& parsed, const std::string& name) {
  const TableReader table(parsed, name, kFileKeys);
  FigureFile file;
  file.title = table.text("title");
  file.about = table.text_or("about", "");
  file.notes = table.texts("notes");
  file.systems = table.texts("systems");
  table.each_table("settings", [&](const std::string& setting, const toml::table& values) {
    file.settings.push_back(read_setting(
        setting, TableReader(values, name, {"about", "value", "values", "min", "max"})));
  });
  table.for_each("published", [&](const toml::node& node) {
    file.published.push_back(
        read_published(TableReader(table.as_table("published", node), name, {"at", "values"})));
  });
  table.for_each("figure", [&](const toml::node& node) {
    file.figures.push_back(
        read_figure(TableReader(table.as_table("figure", node), name, kFigureKeys)));
    check_names(file, file.figures.back());
  });
  if (file.figures.empty()) Place{name, 1}.refuse("the file has no [[figure]]");
  return file;
}

}  // namespace

void Place::refuse(const std::string& message) const {
  throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", file, line, message));
}

FigureFile read_figure_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  try {
    return read(toml::parse_file(name), name);
  } catch (const toml::parse_error& e) {
    Place{name, static_cast<std::size_t>(e.source().begin.line)}.refuse(
        std::string(e.description()));
  }
}

}  // namespace perdix::bench
