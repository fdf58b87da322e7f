// The program of writer.c in C++, with an index in C++: see there.
//
// INDEX is "list" (integer keys, string values), "strings" (the same list, the other way round), or
// "broken" (it writes no undo records, which the test must notice).
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <perdix/perdix.h>

#include "install/outside/list.h"

namespace {

using U64 = std::uint64_t;

constexpr std::uint32_t kThreads = 4;
constexpr U64 kKeys = 600, kLongest = 200;

struct Forgetful : perdix::tips::Durable {
  static void add(const void*, std::size_t) {}
};
template <class Memory, class Keys>
class BrokenList : public SortedList<Forgetful, Keys> {};

using Lists = perdix::tips::User<"list", SortedList>;
using BrokenLists = perdix::tips::User<"broken", BrokenList>;

/// What the parent reads.
struct Record {
  std::uint32_t thread;
  std::uint32_t done;
  U64 key;
  U64 value;
};

void send(const Record& record) {
  if (::write(STDOUT_FILENO, &record, sizeof record) != sizeof record) ::_exit(0);
}

/// Ends the program.
void require(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << what << std::endl;
  ::_exit(1);
}

template <class T>
T datum(U64 number) {
  if constexpr (std::is_same_v<T, U64>) {
    return number;
  } else {
    const std::string digits = std::to_string(number);
    return std::string(20 - digits.size(), '0') + digits + std::string(number % kLongest, 'v');
  }
}

U64 number_of(U64 number) { return number; }
U64 number_of(std::string_view text) {
  const U64 number = std::strtoull(std::string(text).c_str(), nullptr, 10);
  require(datum<std::string>(number) == text, "a string is damaged");
  return number;
}

perdix::Pool open_pool(const char* path) {
  perdix::PoolOptions options;
  options.max_size = U64{1} << 30;
  options.durability = perdix::Durability::process;
  options.plugins = Lists::plugins();
  for (const perdix::tips::Plugin* plugin : BrokenLists::plugins())
    options.plugins.push_back(plugin);
  return perdix::Pool::open_or_create(path, options);
}

template <class Plugin, class K, class V>
void write_forever(perdix::Tips<Plugin, K, V>& index, std::uint32_t thread, U64 seed) {
  U64 random = (seed * kThreads + thread + 1) * 0x9e37'79b9'7f4a'7c15;
  for (U64 value = (seed << 32) + thread;;) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const bool erases = random % 4 == 0;
    const U64 key = random / 4 % (kKeys / kThreads) * kThreads + thread;
    Record record{thread, 0, key, 0};
    if (!erases) record.value = value += kThreads;
    send(record);
    if (erases) {
      index.erase(datum<K>(key));
    } else {
      index.put(datum<K>(key), datum<V>(record.value));
    }
    record.done = 1;
    send(record);
  }
}

template <class Plugin, class K, class V>
void write(const char* path, const char* name, U64 seed) {
  const perdix::Pool pool = open_pool(path);
  perdix::Tips<Plugin, K, V> index(pool, name);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { write_forever(index, i, seed); });
  for (std::thread& thread : threads) thread.join();
}

template <class Plugin, class K, class V>
void dump(const char* path, const char* name) {
  perdix::Pool pool = open_pool(path);
  {
    const perdix::Tips<Plugin, K, V> index(pool, name);
    std::map<U64, U64> shown;
    index.scan({}, [&](const auto& key, const auto& value) {
      require(shown.emplace(number_of(key), number_of(value)).second, "a key is shown twice");
      return true;
    });
    for (U64 i = 0; i < kKeys; ++i) {
      const auto value = index.get(datum<K>(i));
      require(value.has_value() == shown.contains(i) && (!value || number_of(*value) == shown[i]),
              "get() differs from scan()");
    }
    for (const auto& [key, value] : shown) std::cout << key << ' ' << value << '\n';
    require(index.size() == shown.size(), "size() differs from scan()");
    const perdix::CheckReport report = index.check();
    require(report.ok(), report.ok() ? "" : report.problems.front());
  }
  const perdix::CheckReport report = pool.check();
  require(report.ok(), report.ok() ? "" : report.problems.front());
  require(report.unknown.empty(), "not all of the pool was checked");
  pool.close();
}

template <class Plugin, class K, class V>
void run(int count, char** arguments) {
  if (count == 5)
    write<Plugin, K, V>(arguments[2], arguments[3], std::strtoull(arguments[4], nullptr, 10));
  else
    dump<Plugin, K, V>(arguments[2], arguments[3]);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 4) return 2;
  const std::string_view index = arguments[3];
  if (index == "list") run<Lists, U64, std::string>(count, arguments);
  if (index == "strings") run<Lists, std::string, U64>(count, arguments);
  if (index == "broken") run<BrokenLists, U64, std::string>(count, arguments);
  return 0;
} catch (const std::exception& error) {
  require(false, error.what());
  return 1;
}
