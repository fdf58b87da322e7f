#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <libpmemobj.h>

#include <perdix/error.h>

#include "alloc/calloc.h"
#include "common/command_line.h"
#include "common/options.h"
#include "common/place.h"
#include "common/report.h"
#include "special/pmemobj_environment.h"
#include "special/special.h"
#include "terminal/format.h"
#include "ycsb/progress.h"

namespace perdix::bench {
namespace {

constexpr std::uint64_t kPoolSize = std::uint64_t{1} << 30;
constexpr std::size_t kFifoLength = 10'000;
constexpr std::array<std::size_t, 3> kFifoSizes = {64, 256, 1120};
constexpr std::uint64_t kMaxThreads = 4;

/// The memory of Calloc: a file that is fully allocated and already unlinked.
class FileSpace final : public detail::alloc::Space {
 public:
  FileSpace(const std::filesystem::path& directory, detail::pm::Domain domain)
      : pm_(domain, domain != detail::pm::Domain::cpu_cache) {
    const std::filesystem::path path = directory / "calloc";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ::posix_fallocate(file, 0, kPoolSize) != 0) {
      throw std::runtime_error("no room for " + path.string());
    }
    void* memory =
        ::mmap(nullptr, kPoolSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    ::close(file);
    std::filesystem::remove(path);
    if (memory == MAP_FAILED) throw std::runtime_error("the pool can't be mapped");
    base_ = static_cast<std::byte*>(memory);
  }
  ~FileSpace() override { ::munmap(base_, kPoolSize); }

  std::byte* base() const override { return base_; }
  std::uint64_t size() const override { return kPoolSize; }
  std::uint64_t max_size() const override { return kPoolSize; }
  void extend(std::uint64_t) override {
    throw Error(Errc::out_of_space, "the benchmark's pool is full");
  }
  const detail::pm::Persister& pm() const override { return pm_; }
  detail::epoch::Reclaimer& reclaimer() const override { return reclaimer_; }

 private:
  std::byte* base_ = nullptr;
  detail::pm::Persister pm_;
  mutable detail::epoch::Reclaimer reclaimer_;
};

/// Each system has links, which refer to a block or to none, and sets and clears them.
template <detail::pm::Domain kDomain>
class CallocSystem {
 public:
  using Link = std::uint64_t;

  explicit CallocSystem(const std::filesystem::path& directory) : space_(directory, kDomain) {
    detail::alloc::Calloc::format(space_);
    calloc_ = std::make_unique<detail::alloc::Calloc>(space_);
  }

  /// `count` links in the pool.
  Link* links(std::size_t count) {
    detail::alloc::Session session = calloc_->session();
    const detail::pm::Offset block = session.reserve(count * sizeof(Link));
    Link* links = reinterpret_cast<Link*>(space_.base() + block);
    std::fill(links, links + count, 0);
    session.log();
    session.finish();
    return links;
  }

  void allocate(Link& link, std::size_t bytes) {
    detail::alloc::Session session = calloc_->session();
    const detail::pm::Offset block = session.reserve(bytes);
    session.commit_when(link, ~std::uint64_t{0}, block);
    session.log();
    space_.pm().publish(link, block);
    session.finish();
  }

  void free(Link& link) {
    detail::alloc::Session session = calloc_->session();
    session.free(link);
    session.commit_when(link, ~std::uint64_t{0}, 0);
    session.log();
    space_.pm().publish(link, 0);
    session.finish();
  }

 private:
  FileSpace space_;
  std::unique_ptr<detail::alloc::Calloc> calloc_;
};

class PmemobjSystem {
 public:
  using Link = PMEMoid;

  explicit PmemobjSystem(const std::filesystem::path& directory) {
    const std::filesystem::path path = directory / "pmemobj";
    pool_ = pmemobj_create(path.c_str(), "bench", kPoolSize, 0600);
    if (pool_ == nullptr) throw std::runtime_error(pmemobj_errormsg());
    std::filesystem::remove(path);
  }
  ~PmemobjSystem() { pmemobj_close(pool_); }

  Link* links(std::size_t count) {
    PMEMoid block = OID_NULL;
    if (pmemobj_zalloc(pool_, &block, count * sizeof(Link), 0) != 0) throw std::bad_alloc();
    return static_cast<Link*>(pmemobj_direct(block));
  }

  void allocate(Link& link, std::size_t bytes) {
    if (pmemobj_alloc(pool_, &link, bytes, 0, nullptr, nullptr) != 0) throw std::bad_alloc();
  }
  void free(Link& link) { pmemobj_free(&link); }

 private:
  PMEMobjpool* pool_;
};

class MallocSystem {
 public:
  using Link = void*;

  explicit MallocSystem(const std::filesystem::path&) {}

  Link* links(std::size_t count) {
    links_.push_back(std::make_unique<Link[]>(count));
    return links_.back().get();
  }
  void allocate(Link& link, std::size_t bytes) {
    link = std::malloc(bytes);
    asm volatile("" : : "r"(link) : "memory");  // or the compiler leaves out malloc and free
  }
  void free(Link& link) {
    std::free(link);
    link = nullptr;
  }

 private:
  std::vector<std::unique_ptr<Link[]>> links_;
};

struct AllocConfig : RunOptions {
  std::uint64_t operations = 1'000'000;  ///< pairs of an allocation and a free, of each thread
  std::vector<std::uint64_t> threads = {1, 2};
};

void validate(const AllocConfig& config) {
  const auto in_range = [](std::uint64_t threads) { return threads > 0 && threads <= kMaxThreads; };
  if (config.operations == 0 || config.repeat == 0 || config.threads.empty() ||
      !std::ranges::all_of(config.threads, in_range)) {
    throw Error(Errc::invalid_argument,
                fmt::format("operations and rounds must be above 0, threads between 1 and {}",
                            kMaxThreads));
  }
}

/// Nanoseconds until all threads have called work(thread), by its operations.
template <class Work>
double measure(std::uint64_t threads, std::uint64_t operations, Work work) {
  std::barrier ready(static_cast<std::ptrdiff_t>(threads + 1));
  std::vector<std::jthread> workers;
  for (std::uint64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      ready.arrive_and_wait();
      work(t);
    });
  }
  ready.arrive_and_wait();
  const auto begin = std::chrono::steady_clock::now();
  workers.clear();
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / static_cast<double>(operations);
}

/// Measures one system with one number of threads.
template <class System>
class AllocTrial {
  using Link = typename System::Link;

 public:
  AllocTrial(const AllocConfig& config, const std::filesystem::path& directory,
             std::uint64_t threads)
      : config_(config), threads_(threads), system_(directory) {
    for (std::uint64_t t = 0; t < threads; ++t) links_.push_back(system_.links(kFifoLength));
  }

  /// Allocates a block and frees it immediately.
  double pair(std::size_t bytes) {
    return measure(threads_, config_.operations, [&](std::uint64_t thread) {
      Link& link = links_[thread][0];
      for (std::uint64_t i = 0; i < config_.operations; ++i) {
        system_.allocate(link, bytes);
        system_.free(link);
      }
    });
  }

  /// Allocates a block, and frees the one that was allocated 10,000 ago.
  double fifo() {
    const auto size_of = [](std::uint64_t i) { return kFifoSizes[i % kFifoSizes.size()]; };
    for (Link* links : links_)
      for (std::size_t i = 0; i < kFifoLength; ++i) system_.allocate(links[i], size_of(i));
    const double time = measure(threads_, config_.operations, [&](std::uint64_t thread) {
      for (std::uint64_t i = 0; i < config_.operations; ++i) {
        Link& link = links_[thread][i % kFifoLength];
        system_.free(link);
        system_.allocate(link, size_of(i));
      }
    });
    for (Link* links : links_)
      for (std::size_t i = 0; i < kFifoLength; ++i) system_.free(links[i]);
    return time;
  }

 private:
  const AllocConfig& config_;
  const std::uint64_t threads_;
  System system_;
  std::vector<Link*> links_;
};

template <class System>
void add_rows(const AllocConfig& config, const std::filesystem::path& parent,
              const std::string& name, Figure& figure) {
  for (const std::uint64_t threads : config.threads) {
    config.check_stop();
    config.show({fmt::format("{} allocations, {}", name, threads_text(threads)), 0, 1});
    const ScratchDirectory directory(parent);
    AllocTrial<System> trial(config, directory.path(), threads);
    const auto add = [&](const std::string& what, double nanoseconds) {
      figure.rows.push_back(
          {fmt::format("{}, {}", what, threads_text(threads)), name, {nanoseconds}});
    };
    for (const std::size_t bytes : {64, 1120})
      add(fmt::format("pair of {} B", bytes), trial.pair(bytes));
    add("fifo", trial.fifo());
  }
}

Figure compare(const AllocConfig& config, const std::filesystem::path& parent) {
  using enum detail::pm::Domain;
  Figure figure{"alloc", "An allocation and a free", {{"time", Unit::nanoseconds}}, {}};
  add_rows<MallocSystem>(config, parent, "malloc", figure);
  add_rows<CallocSystem<cpu_cache>>(config, parent, "Calloc, eADR", figure);
  add_rows<CallocSystem<memory_controller>>(config, parent, "Calloc, ADR", figure);
  add_rows<PmemobjSystem>(config, parent, "libpmemobj", figure);
  return by_group(std::move(figure));
}

Report run(const AllocConfig& config) {
  const ScratchDirectory scratch(config.parent(2 * kPoolSize));
  Report report = report_of("Allocators", scratch.path(), config.repeat);
  report.settings = {
      {"operations", config.operations}, {"threads", config.threads}, {"repeat", config.repeat}};
  report.sizes = terminal::format_count(config.operations) + " operations a thread";
  report.figures = medians_of(config.repeat, [&](std::uint64_t) {
    return std::vector<Figure>{compare(config, scratch.path())};
  });
  return report;
}

constexpr const char* kDescription =
    "What it takes Calloc, libpmemobj's allocator and malloc to allocate and free. The persistent\n"
    "ones link each block to a word of the pool and unlink it, crash-atomically.\n\n"
    "  pair   allocate a block and free it immediately\n"
    "  fifo   allocate a block of 64, 256 or 1120 bytes, free the one allocated 10,000 ago";

constexpr const char* kFooter =
    "libpmemobj takes the CPU's caches for persistent (eADR), with PMEM_NO_FLUSH=0 in the\n"
    "environment it writes lines back (ADR).";

}  // namespace

int run_alloc(int argc, char** argv) {
  set_pmemobj_up(argc, argv);
  CLI::App app(kDescription, "perdix-bench special alloc");
  app.footer(kFooter);
  AllocConfig config;
  add_count(app, "--operations", config.operations, "Allocations of each thread");
  add_counts(app, "--threads", config.threads, "Numbers of threads, up to 4")->default_str("1,2");
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  return run_program(app, argc, argv, config, progress_display);
}

}  // namespace perdix::bench
