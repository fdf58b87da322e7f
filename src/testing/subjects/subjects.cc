#include "testing/subjects/subjects.h"

#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <perdix/index.h>

#include "index/test_options.h"
#include "testing/engine_traits.h"
#include "testing/subjects/calloc_subject.h"
#include "testing/subjects/elf_subject.h"
#include "testing/subjects/elf_table_subject.h"
#include "testing/subjects/index_subject.h"
#include "testing/subjects/ledger_subject.h"
#include "testing/subjects/log_upkeep_subject.h"
#include "testing/subjects/lost_entries_subject.h"
#include "testing/subjects/pool_subject.h"
#include "testing/subjects/small_fastfair_subject.h"
#include "testing/subjects/stale_chain_subject.h"
#include "testing/subjects/tips_of_subject.h"
#include "testing/subjects/wal_subject.h"

namespace perdix::testing {

namespace {

constexpr std::uint64_t kSmallBudget = 1000;
constexpr std::uint64_t kSmallBudgetOfCceh = 30'000;
constexpr std::uint64_t kSmallBudgetOfFastFair = 1'000;
constexpr std::uint64_t kSmallBudgetOfSkipList = 1'500;
/// Engines with a cached path, and their budgets.
constexpr std::array kCached = {std::pair("cceh", kSmallBudgetOfCceh),
                                std::pair("fastfair", std::uint64_t{1500}),
                                std::pair("skiplist", kUnlimited)};
constexpr std::array kTechniques = {std::pair("b", Technique::b), std::pair("bo", Technique::bo)};

/// Nothing happens outside the steps, so that a session can be run again.
IndexOptions options_for(const std::string& engine, std::uint64_t dram_budget = 0) {
  IndexOptions options = detail::index::options_or_defaults(engine_traits(engine).small);
  detail::index::set_if_there(options, engine, "dram_budget", dram_budget);
  options.resume_in_background = false;
  return options;
}

IndexOptions in_foreground(detail::index::NamedOptions named) {
  IndexOptions options = named();
  options.resume_in_background = false;
  return options;
}

using MakeSubject = std::function<decltype(make_index_subject)>;

/// An engine with all kinds of keys and values, opened in one way.
void add_kinds(std::vector<SubjectEntry>& all, const std::string& name, const std::string& engine,
               const IndexOptions& options, const MakeSubject& make = make_index_subject,
               unsigned threads = 4) {
  for (const Kind key : {Kind::u64, Kind::bytes}) {
    for (const Kind value : {Kind::u64, Kind::bytes}) {
      const IndexInfo info{"index", engine, key, value};
      all.push_back({fmt::format("{}:{}:{}", name, to_string(key), to_string(value)), threads,
                     [info, options, make](detail::pm::Domain domain) {
                       return make(info, options, domain);
                     }});
    }
  }
}

/// An ElimDa that begins with other options.
void add_moved(std::vector<SubjectEntry>& all, const std::string& name, const IndexOptions& first,
               const IndexOptions& options) {
  add_kinds(all, name, "elimda", options,
            [first](const IndexInfo& info, const IndexOptions& then, detail::pm::Domain domain) {
              return make_moved_index_subject(info, first, then, domain);
            });
}

void add_with_technique(std::vector<SubjectEntry>& all, const std::string& engine,
                        std::uint64_t dram_budget, std::string_view name, Technique technique) {
  IndexOptions options = options_for(engine, dram_budget);
  detail::index::set_if_there(options, engine, "technique", technique);
  add_kinds(all, fmt::format("{}+{}", engine, name), engine, options);
}

}  // namespace

std::vector<SubjectEntry> subjects() {
  const auto calloc = [](CallocStart start) {
    return [start](detail::pm::Domain domain) { return make_calloc_subject(start, domain); };
  };
  std::vector<SubjectEntry> all = {{"calloc:any", 4, calloc(CallocStart::any)},
                                   {"calloc:full", 1, calloc(CallocStart::full)},
                                   {"pool", 1, make_pool_subject},
                                   {"wal", 4, make_wal_subject},
                                   {"nbtree-ledger", 4, make_ledger_subject},
                                   {"elf:points", 4, make_elf_subject},
                                   {"elf_table", 4, make_elf_table_subject}};
  for (SubjectEntry& entry : tips_of_subjects()) all.push_back(std::move(entry));
  for (const std::string& engine : Index::engines(plugins()))
    add_kinds(all, engine, engine, options_for(engine));
  for (const Kind kind : {Kind::u64, Kind::bytes}) {
    all.push_back(
        {fmt::format("fastfair+small:{0}:{0}", to_string(kind)), 4,
         [kind](detail::pm::Domain domain) { return make_small_fastfair_subject(kind, domain); }});
    all.push_back(
        {fmt::format("sptree+log:{0}:{0}", to_string(kind)), 4,
         [kind](detail::pm::Domain domain) { return make_log_upkeep_subject(kind, domain); }});
  }
  // Buffers for fewer leaves than there are, so that they also change hands.
  add_kinds(all, "sptree+buffers", "sptree", options_for("sptree", kSmallBudget));
  for (const auto& [name, technique] : kTechniques) {
    add_with_technique(all, "cceh", kSmallBudgetOfCceh, name, technique);
    add_with_technique(all, "fastfair", kSmallBudgetOfFastFair, name, technique);
    add_with_technique(all, "skiplist", kSmallBudgetOfSkipList, name, technique);
  }
  for (const auto& [engine, dram_budget] : kCached) {
    IndexOptions options = options_for(engine, dram_budget);
    detail::index::set_if_there(options, engine, "technique", Technique::boc);
    add_kinds(all, fmt::format("{}+boc", engine), engine, options);
  }
  for (const std::string& engine : Index::engines(plugins()))
    add_kinds(all, engine + "+full", engine, options_for(engine), make_full_index_subject, 1);
  const detail::index::EngineTraits& elimda = engine_traits("elimda");
  add_kinds(all, "elimda+growing", "elimda", in_foreground(elimda.growing));
  add_kinds(all, "elimda+straight", "elimda", in_foreground(elimda.straight));
  add_moved(all, "elimda+moved", options_for("elimda"), options_for("elimda"));
  add_moved(all, "elimda+drained", options_for("elimda"), in_foreground(elimda.straight));
  add_moved(all, "elimda+collected", in_foreground(elimda.straight), options_for("elimda"));
  add_kinds(all, "nbtree+lost", "nbtree", options_for("nbtree"), make_lost_entries_subject);
  all.push_back(
      {"sptree+stale:bytes:bytes", 4, [options = options_for("sptree")](detail::pm::Domain domain) {
         return make_stale_chain_subject(options, domain);
       }});
  return all;
}

}  // namespace perdix::testing
