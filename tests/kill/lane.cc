#include "kill/lane.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include <perdix/perdix.h>

namespace perdix::test::kill {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr auto kSlice = microseconds(500);
constexpr std::size_t kRememberedOpens = 32;
constexpr std::uint64_t kRoundsOfPool = 16;  // of a workload, until it begins with an empty pool

std::string pool_path(const TempDir& folder) { return (folder.path() / "pool").string(); }

}  // namespace

void Tally::add(const Tally& other) {
  kills += other.kills;
  kills_in_open += other.kills_in_open;
  verifications += other.verifications;
  acknowledged += other.acknowledged;
  slowest_open = std::max(slowest_open, other.slowest_open);
}

Lane::Lane(const Plan& plan)
    : plan_(plan),
      rng_(mix(plan.seed) + 1),
      folder_(plan.domain),
      expectation_(Expectation::of(plan_)) {
  create_pool();
}

void Lane::create_pool() { Pool::create(pool_path(folder_), pool_options(plan_)).close(); }

bool Lane::run_round() {
  kill_one(Victim::writer);
  // Recovery must survive being killed too, several times in a row.
  while (problems_.empty() && rng_.once_in(2)) kill_one(Victim::opener);
  // Sometimes the next writer works on what the kill left, before it has been verified.
  if (problems_.empty() && !(rng_.once_in(4) && expectation_->may_go_on())) {
    verify();
    const bool many = tally_.verifications % kRoundsOfPool == 0;
    if (problems_.empty() && many && plan_.workload()) begin_anew();
  }
  if (!problems_.empty()) folder_.keep();
  return problems_.empty();
}

// Creations are killed, too. The seed is another, and the steps are few again.
void Lane::begin_anew() {
  drop_all();
  std::filesystem::remove(pool_path(folder_));
  create_pool();
  ++plan_.seed;
  expectation_ = Expectation::of(plan_);
  clean_ = true;
}

bool Lane::finish() {
  verify();
  if (problems_.empty()) drop_all();
  if (!problems_.empty()) folder_.keep();
  return problems_.empty();
}

std::vector<std::string> Lane::child_arguments(const std::string& role) const {
  auto arguments = plan_.arguments();
  for (const std::string& argument :
       {std::string("--role"), role, std::string("--round"), std::to_string(round_),
        std::string("--steps"), std::to_string(expectation_->steps()), std::string("--pool"),
        pool_path(folder_)}) {
    arguments.push_back(argument);
  }
  return arguments;
}

void Lane::kill_one(Victim victim) {
  const bool writer = victim == Victim::writer;
  if (writer) expectation_->begin_round(++round_);
  const bool was_clean = clean_;
  opening_ = opened_ = finished_ = false;
  Process child(child_arguments(writer ? "write" : "open"));
  wait_and_kill(child, victim);
  std::vector<Record> rest;
  while (child.receive(rest, kHang)) {
  }
  take(rest, false);
  const int status = child.wait();
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    problem(fmt::format("a {} process ended by itself, wait status {:#x}",
                        writer ? "write" : "open", status));
  }
  ++tally_.kills;
  if (!opened_) ++tally_.kills_in_open;
  clean_ = was_clean && !opening_;
  if (writer) expectation_->end_round(opened_);
  for (const std::string& text : expectation_->problems()) problem(text);
  tally_.acknowledged += expectation_->take_acknowledged();
}

// Waits until the child opens the pool, chooses a moment within or after that, and kills.
void Lane::wait_and_kill(Process& child, Victim victim) {
  const auto hang = Clock::now() + kHang;
  const auto receive = [&](nanoseconds patience) {
    std::vector<Record> records;
    const bool open = child.receive(records, std::chrono::duration_cast<microseconds>(patience));
    take(records, false);
    return open && problems_.empty();
  };
  while (!opening_) {
    const bool goes_on = receive(kHang);
    if (goes_on && Clock::now() <= hang) continue;
    if (goes_on) problem("a process hangs before it opens the pool");
    return child.kill();
  }
  const bool in_open = victim == Victim::opener || rng_.once_in(6);
  if (in_open) {
    const auto longest = static_cast<std::uint64_t>(typical_open().count()) * 11 / 10;
    std::this_thread::sleep_for(nanoseconds(rng_.below(longest + 1)));
    return child.kill();
  }
  while (!opened_) {
    if (!receive(kHang) || Clock::now() > hang) {
      if (problems_.empty()) problem("a process hangs while it opens the pool");
      return child.kill();
    }
  }
  const auto end = Clock::now() + plan_.time_to_run(rng_);
  for (auto now = Clock::now(); now < end; now = Clock::now()) {  // keeps the pipe from filling up
    std::this_thread::sleep_for(std::min<nanoseconds>(end - now, kSlice));
    if (!receive(nanoseconds(0))) break;
  }
  child.kill();
}

void Lane::verify() {
  // Recovery changes the pool; a failure is looked at in what the kill left.
  std::filesystem::copy_file(pool_path(folder_), pool_path(folder_) + ".killed",
                             std::filesystem::copy_options::overwrite_existing);
  opening_ = opened_ = finished_ = false;
  auto arguments = child_arguments("verify");
  const bool close = rng_.once_in(2);
  // A check that is the first to open what the kill has left.
  const bool check = rng_.once_in(4);
  arguments.insert(arguments.end(), {"--close", close ? "1" : "0", "--check", check ? "1" : "0"});
  Process child(arguments);
  std::vector<Record> records;
  const auto hang = Clock::now() + kHang;
  bool open = true;
  while (open && Clock::now() < hang) open = child.receive(records, kHang);
  take(records, true);
  if (open) {
    problem(opened_ ? "verification hangs" : "a process hangs while it opens the pool");
    return;
  }
  const int status = child.wait();
  if (!finished_ && problems_.empty()) {
    problem(fmt::format("verification crashed, wait status {:#x}", status));
  }
  for (const std::string& text : expectation_->problems()) problem(text);
  ++tally_.verifications;
  clean_ = close;
}

void Lane::drop_all() {
  Pool pool = Pool::open(pool_path(folder_), pool_options(plan_));
  for (const IndexInfo& info : pool.indexes()) pool.drop(info.name);
  pool.close();
  pool = Pool::open(pool_path(folder_), pool_options(plan_));
  if (pool.info().allocated != 0) {
    problem(fmt::format("{} bytes are allocated in a pool without indexes", pool.info().allocated));
  }
  pool.close();
}

void Lane::take(const std::vector<Record>& records, bool verifying) {
  for (const Record& record : records) {
    switch (record.type) {
      case Record::Type::opening: opening_ = true; break;
      case Record::Type::finished: finished_ = true; break;
      case Record::Type::opened:
        opened_ = true;
        if (clean_) break;
        opens_.push_back(nanoseconds(record.payload));
        tally_.slowest_open = std::max(tally_.slowest_open, opens_.back());
        break;
      case Record::Type::text: {
        std::string piece(sizeof record.payload, '\0');
        std::memcpy(piece.data(), &record.payload, piece.size());
        text_ += piece;
        break;
      }
      case Record::Type::problem: problem(std::exchange(text_, {}).substr(0, record.number)); break;
      default: verifying ? expectation_->verify(record) : expectation_->add(record);
    }
  }
}

nanoseconds Lane::typical_open() {
  if (opens_.empty()) return milliseconds(3);
  if (opens_.size() > kRememberedOpens)
    opens_.erase(opens_.begin(), opens_.end() - kRememberedOpens);
  return opens_[rng_.below(opens_.size())];
}

void Lane::problem(std::string text) {
  if (!problems_.empty() && problems_.back() == text) return;
  problems_.push_back(fmt::format("{} (round {}; the pool as the kill left it: {}.killed)",
                                  std::move(text), round_, pool_path(folder_)));
}

}  // namespace perdix::test::kill
