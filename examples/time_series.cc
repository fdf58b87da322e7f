// A series of measurements, ordered by time. Each run adds a day of them, prints the means of the
// last three hours, and erases what is older than two days.
//
//   time_series FILE
#include <algorithm>
#include <cstdint>
#include <iostream>

#include <perdix/perdix.h>

constexpr std::uint64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;  // in seconds

std::uint64_t measure(std::uint64_t time) { return 10 + time / kHour % 24; }  // a temperature

int main(int argc, char** argv) try {
  if (argc != 2) return std::cerr << "usage: time_series FILE\n", 2;
  const auto pool = perdix::Pool::open_or_create(argv[1]);
  perdix::SpTree<std::uint64_t, std::uint64_t> series(pool, "temperature");

  const auto last = series.last();
  const std::uint64_t begin = last ? last->first + kMinute : 0;
  const std::uint64_t end = begin + kDay;
  for (std::uint64_t time = begin; time < end; time += kMinute) series.put(time, measure(time));

  for (std::uint64_t hour = end - 3 * kHour; hour < end; hour += kHour) {
    std::uint64_t sum = 0, count = 0;
    for (const auto& [time, value] : series.range(hour, hour + kHour)) sum += value, ++count;
    std::cout << "hour " << hour / kHour << ": " << sum / count << " degrees\n";
  }
  const std::uint64_t erased = series.erase_range(0, end - std::min(end, 2 * kDay));
  std::cout << erased << " erased, " << series.size() << " left\n";
} catch (const perdix::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
