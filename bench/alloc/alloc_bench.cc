// Measures the cost of allocating and freeing for Calloc, libpmemobj's allocator and malloc.
//
// The persistent ones link each block to a word of the pool and unlink it, crash-atomically. Both
// work on files on tmpfs. Calloc runs in two domains; libpmemobj's choice is made when the program
// starts: PMEM_NO_FLUSH=1 (the default here) corresponds to cpu_cache, PMEM_NO_FLUSH=0 to
// memory_controller.
//
//   pair   allocate a block and free it immediately
//   fifo   allocate a block of 64, 256 or 1120 bytes, free the one that was allocated 10,000 ago
//
//   alloc_bench [--benchmark_filter=...]
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <libpmemobj.h>

#include <perdix/error.h>

#include "alloc/calloc.h"

namespace perdix {
namespace {

constexpr std::uint64_t kPoolSize = std::uint64_t{1} << 30;
constexpr std::size_t kFifoLength = 10'000;
constexpr std::array<std::size_t, 3> kFifoSizes = {64, 256, 1120};
constexpr unsigned kMaxThreads = 4;

std::filesystem::path scratch_file(const char* name) {
  const std::filesystem::path shm = "/dev/shm";
  const auto folder = std::filesystem::exists(shm) ? shm : std::filesystem::temp_directory_path();
  return folder / ("perdix-alloc-bench-" + std::to_string(::getpid()) + "-" + name);
}

/// The memory of Calloc: a file that is fully allocated and already unlinked.
class FileSpace final : public detail::alloc::Space {
 public:
  explicit FileSpace(detail::pm::Domain domain)
      : pm_(domain, domain != detail::pm::Domain::cpu_cache) {
    const std::filesystem::path path = scratch_file("calloc");
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

  CallocSystem() : space_(kDomain) {
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

  PmemobjSystem() {
    const std::filesystem::path path = scratch_file("pmemobj");
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

  Link* links(std::size_t count) {
    links_.push_back(std::make_unique<Link[]>(count));
    return links_.back().get();
  }
  void allocate(Link& link, std::size_t bytes) {
    link = std::malloc(bytes);
    benchmark::DoNotOptimize(link);
  }
  void free(Link& link) {
    std::free(link);
    link = nullptr;
    benchmark::ClobberMemory();
  }

 private:
  std::vector<std::unique_ptr<Link[]>> links_;
};

/// One system for all threads of a run, with links for each. Static, because the library takes
/// plain functions.
template <class System>
struct Bench {
  using Link = typename System::Link;

  static inline std::unique_ptr<System> system;
  static inline std::array<Link*, kMaxThreads> links_of_thread;

  static void set_up(const benchmark::State&) {
    system = std::make_unique<System>();
    for (Link*& links : links_of_thread) links = system->links(kFifoLength);
  }
  static void tear_down(const benchmark::State&) { system.reset(); }

  static void pair(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    Link& link = links_of_thread[state.thread_index()][0];
    for (auto _ : state) {
      system->allocate(link, bytes);
      system->free(link);
    }
  }

  static void fifo(benchmark::State& state) {
    Link* links = links_of_thread[state.thread_index()];
    for (std::size_t i = 0; i < kFifoLength; ++i) {
      system->allocate(links[i], kFifoSizes[i % kFifoSizes.size()]);
    }
    std::size_t next = 0;
    for (auto _ : state) {
      system->free(links[next % kFifoLength]);
      system->allocate(links[next % kFifoLength], kFifoSizes[next % kFifoSizes.size()]);
      ++next;
    }
    for (std::size_t i = 0; i < kFifoLength; ++i) system->free(links[i]);
  }

  static void add(const std::string& name) {
    const auto register_one = [](const std::string& full_name, void (*run)(benchmark::State&)) {
      return benchmark::RegisterBenchmark(full_name.c_str(), run)
          ->Setup(set_up)
          ->Teardown(tear_down)
          ->ThreadRange(1, 2)
          ->UseRealTime();
    };
    register_one(name + "/pair", pair)->Arg(64)->Arg(1120);
    register_one(name + "/fifo", fifo);
  }
};

using CallocCpuCache = CallocSystem<detail::pm::Domain::cpu_cache>;
using CallocMemoryController = CallocSystem<detail::pm::Domain::memory_controller>;

/// libpmemobj reads its settings before main(): starts the program again with them.
void set_pmemobj_up(char** arguments) {
  if (std::getenv("PMEM_IS_PMEM_FORCE") != nullptr) return;
  ::setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  ::setenv("PMEM_NO_FLUSH", "1", 0);
  ::execv("/proc/self/exe", arguments);
}

}  // namespace
}  // namespace perdix

int main(int argc, char** argv) {
  perdix::set_pmemobj_up(argv);
  benchmark::Initialize(&argc, argv);
  perdix::Bench<perdix::MallocSystem>::add("malloc");
  perdix::Bench<perdix::CallocCpuCache>::add("calloc_cpu_cache");
  perdix::Bench<perdix::CallocMemoryController>::add("calloc_memory_controller");
  perdix::Bench<perdix::PmemobjSystem>::add("pmemobj");
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
