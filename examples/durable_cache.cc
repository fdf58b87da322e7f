// A cache of results that take long to compute. It survives restarts, also by `kill -9`: each
// number is factorized once, whichever run asks for it first.
//
//   durable_cache FILE NUMBER...
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

#include <perdix/perdix.h>

namespace {

std::string factorize(std::uint64_t number) {
  std::string factors;
  for (std::uint64_t divisor = 2; number > 1; ++divisor) {
    if (divisor > number / divisor) divisor = number;  // the rest is a prime
    for (; number % divisor == 0; number /= divisor) factors += ' ' + std::to_string(divisor);
  }
  return factors;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return std::cerr << "usage: durable_cache FILE NUMBER...\n", 2;
  const auto pool = perdix::Pool::open_or_create(argv[1]);
  perdix::HashMap<std::uint64_t, std::string> cache(pool, "factors");  // a hash index
  for (int i = 2; i < argc; ++i) {
    const std::uint64_t number = std::stoull(argv[i]);
    const auto cached = cache.get(number);
    const std::string factors = cached ? *cached : factorize(number);
    if (!cached) cache.put(number, factors);
    std::cout << number << ':' << factors << (cached ? " (cached)\n" : "\n");
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
