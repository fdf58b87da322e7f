#include <perdix/tips_c.h>
#include <perdix/tips_indexes_c.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc < 2 || perdix_tips_add_indexes() < 0) return 1;
  perdix_pool* const pool = perdix_pool_open_or_create(argv[1], NULL);
  perdix_tips* crates = NULL;
  if (pool != NULL)
    crates = perdix_tips_open(pool, "crates", "tips:art", PERDIX_U64, PERDIX_BYTES);
  if (crates == NULL) return fprintf(stderr, "%s\n", perdix_last_error()), 1;
  perdix_tips_put(crates, perdix_u64(7), perdix_bytes("two crates of pears", 19));
  char text[32];
  perdix_datum found;
  if (perdix_tips_get(crates, perdix_u64(7), &found, text, sizeof text) == 1)
    printf("%.*s\n", (int)found.size, text);
  perdix_tips_close(crates);
  return perdix_pool_close(pool) == 1 ? 0 : 1;
}
