#include "testing/subjects/pool_subject.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pm/access.h"
#include "pm/file.h"
#include "pool/layout.h"
#include "pool/pool_core.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

constexpr std::uint64_t kNames = 6;
constexpr const char* kPool = "pool";

enum Action : unsigned { kCreate, kReopen, kAdd, kSetRoot, kDrop, kActions };

std::string text_of(const IndexInfo& info, std::uint64_t root) {
  return fmt::format("{}:{}:{} {}", info.engine, to_string(info.key_kind),
                     to_string(info.value_kind), root);
}

std::string with_root(const std::string& text, const std::string& root) {
  return text.substr(0, text.rfind(' ') + 1) + root;
}

/// An index of the name has these, so that entries differ in more than the name.
IndexInfo info_of(const std::string& name, const std::string& engine) {
  const bool odd = name.back() % 2 != 0;
  return {name, engine, odd ? Kind::u64 : Kind::bytes, odd ? Kind::bytes : Kind::u64};
}

class OpenedPool final : public Opened {
 public:
  OpenedPool(Medium& medium, detail::pm::Domain domain) : medium_(medium), domain_(domain) {
    try {
      open();
    } catch (const Error& error) {
      if (error.code() != Errc::not_a_pool) throw;
    }
  }

  State contents() override {
    if (core_ == nullptr) return {};
    State state{{kPool, fmt::format("{} bytes", core_->size())}};
    for (const IndexInfo& info : core_->indexes())
      state[info.name] =
          text_of(info, detail::pm::load(core_->open_existing_index(info.name)->root()));
    return state;
  }

  Problems check() override {
    if (core_ == nullptr) return check_refused();
    CheckReport report;
    core_->allocator().check(report);
    if (core_->allocator().bytes_allocated() != 0)
      report.problems.push_back("blocks are allocated, and there is no engine");
    return report.problems;
  }

  StepResult apply(const Step& step) override {
    if (step.action == kCreate) return create();
    if (core_ == nullptr) return StepResult::write(false);
    switch (step.action) {
      case kReopen: reopen(); return StepResult::write(false);
      case kAdd: return StepResult::write(add(info_of(step.key, step.value)));
      case kSetRoot: return StepResult::write(set_root(step.key, std::stoull(step.value)));
      default: return StepResult::write(drop(step.key));
    }
  }

  Problems close() override {
    finish_drops();
    if (core_ != nullptr) core_->close();
    core_.reset();
    return {};
  }

 private:
  void open() {
    core_ = detail::pool::PoolCore::open(medium_.path(), pool_options(domain_));
    for (detail::pool::IndexHandle& handle : core_->dropping())
      core_->finish_drop(std::move(handle));
  }

  void reopen() {
    close();
    open();
  }

  /// A process that finds the file must be able to tell what it is.
  Problems check_refused() const {
    std::uint64_t magic = 0;
    std::memcpy(&magic, medium_.bytes(), sizeof magic);
    if (magic == detail::pool::kCreationMagic || blank()) return {};
    return {"a creation that was interrupted is not marked as one"};
  }

  /// Of what a creation writes.
  bool blank() const {
    const std::byte* const bytes = medium_.bytes();
    return std::all_of(bytes, bytes + detail::alloc::kLanesEnd,
                       [](std::byte byte) { return byte == std::byte{0}; });
  }

  /// As with any file that is there already, what an earlier creation left must be removed first.
  StepResult create() {
    if (core_ != nullptr) return StepResult::write(false);
    if (!blank()) return StepResult::refusal();
    medium_.empty();  // the creation gives it its length, and zeros
    core_ = detail::pool::PoolCore::create(detail::pm::File::open(medium_.path()),
                                           pool_options(domain_));
    return StepResult::write(true);
  }

  bool has(const std::string& name) const {
    const std::vector<IndexInfo> all = core_->indexes();
    return std::any_of(all.begin(), all.end(),
                       [&](const IndexInfo& info) { return info.name == name; });
  }

  bool add(const IndexInfo& info) {
    if (has(info.name)) return false;
    core_->open_index(info.name, info.engine, info.key_kind, info.value_kind);
    return true;
  }

  bool set_root(const std::string& name, std::uint64_t root) {
    const std::optional<detail::pool::IndexHandle> handle = core_->open_existing_index(name);
    if (!handle) return false;
    core_->pm().publish(handle->root(), root);  // the commit, as an engine makes it
    return true;
  }

  /// The index is gone for good when its drop has begun, whatever the engine does before its end.
  bool drop(const std::string& name) {
    if (!has(name)) return false;
    finish_drops();
    dropping_.push_back(core_->begin_drop(name));
    return true;
  }

  /// Leaves the roots as they are: an engine may.
  void finish_drops() {
    for (detail::pool::IndexHandle& handle : dropping_) core_->finish_drop(std::move(handle));
    dropping_.clear();
  }

  Medium& medium_;
  detail::pm::Domain domain_;
  std::shared_ptr<detail::pool::PoolCore> core_;
  std::vector<detail::pool::IndexHandle> dropping_;
};

class PoolSubject final : public Subject {
 public:
  explicit PoolSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random&) override {
    std::memset(medium.bytes(), 0, medium.size());
    return {};
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedPool>(medium, domain_);
  }

  Step next_step(detail::util::Random& random, const State& state, unsigned, unsigned) override {
    if (!state.contains(kPool)) return {kCreate, kPool, fmt::format("{} bytes", kPoolSize)};
    if (random.one_in(6)) return {kReopen, "", ""};
    const std::string name = fmt::format("index {}", random.below(kNames));
    if (state.contains(name) && random.one_in(2))
      return {kSetRoot, name, std::to_string(1 + random.below(1000))};
    if (state.contains(name)) return {kDrop, name, ""};
    return {kAdd, name, fmt::format("engine {}", random.below(1000))};
  }

  Effects effects(const Step& step, const State& state) const override {
    const bool there = state.contains(step.key);
    if (step.action == kCreate) return there ? Effects{} : Effects{{step.key, step.value}};
    if (!state.contains(kPool)) return {};
    switch (step.action) {
      case kAdd:
        return there ? Effects{} : Effects{{step.key, text_of(info_of(step.key, step.value), 0)}};
      case kSetRoot:
        return there ? Effects{{step.key, with_root(state.at(step.key), step.value)}} : Effects{};
      case kDrop: return there ? Effects{{step.key, std::nullopt}} : Effects{};
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, kActions> kCalls = {"create", "reopen", "add",
                                                                 "set_root", "drop"};
    return fmt::format("{}({})", kCalls[step.action], step.key);
  }

 private:
  detail::pm::Domain domain_;
};

}  // namespace

std::unique_ptr<Subject> make_pool_subject(detail::pm::Domain domain) {
  return std::make_unique<PoolSubject>(domain);
}

}  // namespace perdix::testing
