#include <stdio.h>
#include <string.h>

#include "table.h"

static int fail(void) {
  fprintf(stderr, "%s\n", perdix_last_error());
  return 1;
}

int main(int count, char** arguments) {
  if (count != 2) return 1;
  const perdix_tips_plugin* const plugins[] = {&hash_table};
  const perdix_pool_options options = {.plugins = plugins, .plugin_count = 1};
  perdix_pool* const pool = perdix_pool_open_or_create(arguments[1], &options);
  if (pool == NULL) return fail();
  perdix_tips* const crates =
      perdix_tips_open(pool, "crates", "tips:user:table", PERDIX_U64, PERDIX_BYTES);
  if (crates == NULL) return fail();

  static const char kPears[] = "two crates of pears";
  if (perdix_tips_put(crates, perdix_u64(42), perdix_bytes(kPears, strlen(kPears))) < 0)
    return fail();

  char text[64];
  perdix_datum found;
  if (perdix_tips_get(crates, perdix_u64(42), &found, text, sizeof text) != 1) return fail();
  printf("%.*s\n", (int)found.size, text);
  perdix_tips_close(crates);
  return perdix_pool_close(pool) == 1 ? 0 : fail();
}
