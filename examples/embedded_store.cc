// A store of strings in one file. Each run carries out one command and keeps what it stores:
//
//   embedded_store FILE put KEY VALUE | get KEY | erase KEY | list PREFIX
#include <iostream>
#include <string>
#include <vector>

#include <perdix/perdix.h>

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv, argv + argc);
  const std::string command = words.size() > 3 ? words[2] : "";
  if (command.empty() || words.size() != (command == "put" ? 5 : 4)) {
    std::cerr << "usage: embedded_store FILE put KEY VALUE | get KEY | erase KEY | list PREFIX\n";
    return 2;
  }
  const auto pool = perdix::Pool::open_or_create(words[1]);
  perdix::SpTree<std::string, std::string> store(pool, "store");
  const std::string& key = words[3];

  if (command == "put") {
    store.put(key, words[4]);  // is durable when it returns
  } else if (command == "get") {
    const auto value = store.get(key);
    if (!value) return 1;
    std::cout << *value << '\n';
  } else if (command == "erase") {
    if (!store.erase(key)) return 1;
  } else if (command == "list") {
    for (const auto& [name, value] : store.prefix(key)) std::cout << name << '=' << value << '\n';
  }
} catch (const perdix::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
