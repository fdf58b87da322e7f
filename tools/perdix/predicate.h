// The conditions of `perdix elf query`:
//
//   conditions  condition { and condition }
//   condition   COLUMN ( = | == | < | <= | > | >= ) VALUE
//               COLUMN between VALUE and VALUE
//               COLUMN in ( VALUE { , VALUE } )
//               COLUMN prefix VALUE
//
// COLUMN is a word, or any text in double quotes. VALUE is a word, or any text in single quotes; in
// quotes a doubled quote stands for one, and \t \n \r \\ \xHH for bytes. A word ends before a space
// or one of = < > ( ) , ' ". Keywords may be in capitals.
#pragma once

#include <string_view>
#include <vector>

#include <perdix/elf_table.h>

namespace perdix::tool {

/// Empty text has no conditions. Throws perdix::Error invalid_argument with the position, from 1.
std::vector<ElfPredicate> parse_predicates(std::string_view text,
                                           const std::vector<ElfColumn>& columns);

}  // namespace perdix::tool
