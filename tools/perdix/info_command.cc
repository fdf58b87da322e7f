#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "perdix/commands.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"
#include "terminal/format.h"

namespace perdix::tool {
namespace {

using nlohmann::json;
using terminal::format_bytes;
using terminal::format_count;
using terminal::format_nanoseconds;

struct IndexFacts {
  IndexInfo info;
  std::optional<IndexStats> stats;
};

// What an index counts while it comes back is the part that is back, so this waits for all of it.
IndexStats stats_of(const Index& index) {
  index.size();
  return index.stats();
}

// None of an index that this program can't open, since it doesn't know the engine.
std::optional<IndexStats> stats_of(const Pool& pool, const IndexInfo& info) {
  if (info.model != DataModel::pairs) return std::nullopt;
  try {
    return stats_of(*Index::open(pool, info.name));
  } catch (const Error& error) {
    if (error.code() != Errc::unsupported) throw;
    return std::nullopt;
  }
}

std::vector<IndexFacts> index_facts(const Pool& pool, bool with_stats) {
  std::vector<IndexFacts> all;
  for (const IndexInfo& info : pool.indexes()) {
    IndexFacts facts{info, std::nullopt};
    if (with_stats) facts.stats = stats_of(pool, info);
    all.push_back(facts);
  }
  return all;
}

const char* name_of(Durability durability) {
  return durability == Durability::power ? "power" : "process";
}

// Names may hold any bytes; what is no UTF-8 is replaced, as JSON can't hold it, and what is not
// ASCII is escaped, as a terminal may act on it.
std::string to_string(const json& value) {
  return value.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

/// Others have no workers.
bool is_of_tips(const IndexStats& stats) { return stats.tips.workers > 0; }

json to_json(const TipsStats& stats) {
  return {{"cache_hits", stats.cache_hits},     {"cache_misses", stats.cache_misses},
          {"cached_bytes", stats.cached},       {"waiting", stats.waiting},
          {"replays", stats.replays},           {"replayed", stats.replayed},
          {"max_waiting", stats.max_waiting},   {"workers", stats.workers},
          {"workers_used", stats.workers_used}, {"reclamations", stats.reclamations},
          {"undo_records", stats.undo_records}, {"undo_saved", stats.undo_saved}};
}

json to_json(const IndexFacts& index) {
  json out = {{"name", index.info.name},
              {"engine", index.info.engine},
              {"holds", perdix::to_string(index.info.model)}};
  if (index.info.model == DataModel::pairs) {
    out["keys"] = perdix::to_string(index.info.key_kind);
    out["values"] = perdix::to_string(index.info.value_kind);
  }
  if (index.stats) {
    out["pairs"] = index.stats->pairs;
    out["leaves"] = index.stats->leaves;
    out["pm_bytes"] = index.stats->pm_bytes;
    out["dram_bytes"] = index.stats->dram_bytes;
    out["recovery_seconds"] = index.stats->recovery_seconds;
    out["resumed"] = index.stats->resumed;
    out["resumption_seconds"] = index.stats->resumption_seconds;
    if (is_of_tips(*index.stats)) out["tips"] = to_json(index.stats->tips);
  }
  return out;
}

json to_json(const Pool& pool, const std::vector<IndexFacts>& indexes) {
  const PoolInfo info = pool.info();
  json out = {{"path", info.path.string()},
              {"format_version", info.format_version},
              {"size", info.size},
              {"allocated", info.allocated},
              {"max_size", info.max_size},
              {"durability", name_of(info.durability)},
              {"domain", info.domain},
              {"dax", info.dax},
              {"huge_pages", pool.huge_pages()},
              {"was_clean", info.was_clean},
              {"may_copy_on_write", info.may_copy_on_write},
              {"in_memory", info.in_memory},
              {"unfinished_drops", json::array()},
              {"indexes", json::array()}};
  for (const UnfinishedDrop& drop : info.unfinished_drops)
    out["unfinished_drops"].push_back({{"name", drop.index.name}, {"why", drop.why}});
  for (const IndexFacts& index : indexes) out["indexes"].push_back(to_json(index));
  return out;
}

std::string size_text(std::uint64_t bytes) {
  return fmt::format("{} ({} bytes)", format_bytes(static_cast<double>(bytes)),
                     format_count(bytes));
}

void write_pool(Output& out, const Pool& pool) {
  const PoolInfo info = pool.info();
  const auto line = [&](const char* what, const std::string& text) {
    out.write(fmt::format("{:<12}{}\n", what, text));
  };
  line("pool", printable(info.path.string()));
  line("format", std::to_string(info.format_version));
  line("size", size_text(info.size));
  line("allocated", size_text(info.allocated));
  line("max size", size_text(info.max_size));
  line("durability", name_of(info.durability));
  line("domain", info.domain);
  line("mapping", fmt::format("{}, {}", info.dax ? "DAX" : "no DAX",
                              pool.huge_pages() ? "huge pages" : "4 KiB pages"));
  if (info.may_copy_on_write) {
    line("warning",
         "its file is copied on write or shares space with another one: on a full disk a write may "
         "end the process (SIGBUS)");
  }
  if (info.in_memory && info.durability == Durability::power)
    line("warning", "its file lies in memory (tmpfs), which keeps nothing over a power failure");
  for (const UnfinishedDrop& drop : info.unfinished_drops)
    line("dropped", fmt::format("{}, but still occupies space: {}", drop.index.name, drop.why));
  line("last close", info.was_clean ? "clean" : "none: a crash was repaired by this opening");
}

std::string resumed_text(const IndexStats& stats) {
  return fmt::format("{:.0f} % in {}", stats.resumed * 100,
                     format_nanoseconds(stats.resumption_seconds * 1e9));
}

std::string tips_text(const TipsStats& stats) {
  return fmt::format(
      "cache: {} hits, {} misses, {}; replay: {} writes in {}, at most {} together, {} wait for "
      "space, "
      "workers {}; logs: {} reclamations, {} undo records, {} saved",
      format_count(stats.cache_hits), format_count(stats.cache_misses),
      format_bytes(static_cast<double>(stats.cached)), format_count(stats.replayed),
      format_count(stats.replays), format_count(stats.max_waiting), format_count(stats.waiting),
      stats.workers, format_count(stats.reclamations), format_count(stats.undo_records),
      format_count(stats.undo_saved));
}

void write_indexes(Output& out, const std::vector<IndexFacts>& indexes, bool with_stats) {
  out.write(fmt::format("{:<12}{}\n", "indexes", indexes.size()));
  if (indexes.empty()) return;
  std::size_t width = 12;  // of engines
  for (const IndexFacts& index : indexes)
    width = std::max(width, escape(index.info.engine).size() + 2);
  out.write(fmt::format("\n  {:<24}{:<{}}{:<8}{:<8}", "name", "engine", width, "keys", "values"));
  if (with_stats)
    out.write(fmt::format("{:>14}{:>12}{:>12}{:>12}{:>12}{:>20}", "pairs", "leaves", "PM", "DRAM",
                          "opened in", "resumed"));
  out.write("\n");
  for (const IndexFacts& index : indexes) {
    const bool pairs = index.info.model == DataModel::pairs;
    out.write(fmt::format(
        "  {:<24}{:<{}}{:<8}{:<8}", escape(index.info.name), escape(index.info.engine), width,
        pairs ? perdix::to_string(index.info.key_kind) : perdix::to_string(index.info.model),
        pairs ? perdix::to_string(index.info.value_kind) : ""));
    if (const auto& stats = index.stats) {
      out.write(fmt::format(
          "{:>14}{:>12}{:>12}{:>12}{:>12}{:>20}", format_count(stats->pairs),
          format_count(stats->leaves), format_bytes(static_cast<double>(stats->pm_bytes)),
          format_bytes(static_cast<double>(stats->dram_bytes)),
          format_nanoseconds(stats->recovery_seconds * 1e9), resumed_text(*stats)));
      if (is_of_tips(*stats)) out.write(fmt::format("\n    {}", tips_text(stats->tips)));
    }
    out.write("\n");
  }
}

}  // namespace

ExitStatus info(const InfoOptions& o) {
  const Pool pool = Pool::open(o.pool, with_plugins());
  const std::vector<IndexFacts> indexes = index_facts(pool, o.stats);
  Output out;
  if (o.json) {
    out.write(to_string(to_json(pool, indexes)));
  } else {
    write_pool(out, pool);
    write_indexes(out, indexes, o.stats);
  }
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
